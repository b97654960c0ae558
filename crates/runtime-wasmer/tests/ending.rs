//! Guests are ended, and nothing of them is left.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[expect(dead_code, reason = "only a part of it is needed here")]
mod common;

use std::time::{Duration, Instant};

use common::place;
use prx_fixtures::Guest;
use prx_runtime_core::{Stdin, Termination};

/// How many threads this process has that are of a guest.
fn guest_threads() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    tasks
        .filter_map(Result::ok)
        .filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok())
        .filter(|name| name.starts_with("prx-wasmer"))
        .count()
}

async fn no_guest_threads() {
    let begun = Instant::now();
    while guest_threads() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(10),
            "a thread was left"
        );
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Tests of one process see each other's threads, so these come one by one.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

#[tokio::test]
async fn one_that_spins_is_ended_a_hundred_times() {
    let _turn = TURN.lock().await;
    let place = place();
    let runtime = place.runtime();
    for _ in 0..100 {
        let timeout = Duration::from_millis(20);
        let output = runtime
            .run(place.boxed(&["spin"]).timeout(timeout))
            .await
            .unwrap();
        assert_eq!(output.termination, Termination::TimedOut);
        assert!(
            output.duration < timeout + Duration::from_millis(1500),
            "{:?}",
            output.duration
        );
    }
    no_guest_threads().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn many_that_spin_are_ended_together() {
    let _turn = TURN.lock().await;
    let place = place();
    let runtime = place.runtime();
    let guests: Vec<_> = (0..64)
        .map(|_| {
            let runtime = runtime.clone();
            let request = place.boxed(&["spin"]).timeout(Duration::from_millis(300));
            tokio::spawn(async move { runtime.run(request).await.unwrap() })
        })
        .collect();
    for guest in guests {
        assert_eq!(guest.await.unwrap().termination, Termination::TimedOut);
    }
    no_guest_threads().await;
}

#[tokio::test]
async fn one_that_waits_is_ended() {
    let _turn = TURN.lock().await;
    let place = place();
    let timeout = Duration::from_millis(100);
    let output = place
        .runtime()
        .run(place.boxed(&["sleep", "60000"]).timeout(timeout))
        .await;
    assert_eq!(output.unwrap().termination, Termination::TimedOut);
    let (held, theirs) = tokio::io::duplex(64);
    let request = place
        .boxed(&["cat"])
        .timeout(timeout)
        .stdin(Stdin::Reader(Box::new(theirs)));
    let output = place.runtime().run(request).await.unwrap();
    assert_eq!(output.termination, Termination::TimedOut);
    drop(held);
    no_guest_threads().await;
}

#[tokio::test]
async fn threads_are_as_many_as_before_after_a_hundred_guests() {
    let _turn = TURN.lock().await;
    let place = place();
    let runtime = place.runtime();
    for _ in 0..100 {
        let output = runtime
            .run(place.request(Guest::HELLO.name(), &["x"]))
            .await
            .unwrap();
        assert_eq!(output.stdout.as_bytes(), b"hello\n");
    }
    assert_eq!(guest_threads(), 0);
}
