//! Guests that do not end by themselves, or take what they can get. Each ends as it should, the
//! host's memory stays as it was, and on a runtime of one thread others go on meanwhile.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "only a part of it is needed here")]
mod common;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use common::{engine, place};
use prx_fixtures::Guest;
use prx_runtime_core::{
    ExecutionOutput, ExecutionRequest, RuntimeAdapter as _, Stdin, Termination,
};
use prx_runtime_wasmtime::WasmtimeRuntime;
use prx_wasm_trials::Place;

const TIMEOUT: Duration = Duration::from_secs(1);

/// Memory is looked at for the whole process, so these tests come one by one.
static TURN: Mutex<()> = Mutex::new(());

/// How much more memory the process may have afterwards, in KiB. Less than any guest may take.
const MORE_MEMORY: u64 = 48 << 10;

/// Runs `guest` on a runtime of one thread, where a timer and other guests want their turn, and
/// returns what it came to.
fn run(place: &Place, request: ExecutionRequest) -> ExecutionOutput {
    observed(place, |runtime| async move {
        runtime.run(request).await.unwrap()
    })
}

fn observed<F: Future<Output = ExecutionOutput>>(
    place: &Place,
    guest: impl FnOnce(WasmtimeRuntime) -> F,
) -> ExecutionOutput {
    let _turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let one_thread = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let local = tokio::task::LocalSet::new();
    let runtime = engine(place);
    let neighbour = place.request(Guest::HELLO.name(), &["x"]);
    local.block_on(&one_thread, async {
        // The neighbour is compiled, and the pool is as large as it gets.
        runtime.run(neighbour).await.unwrap();
        let before = resident_memory();
        let over = Rc::new(Cell::new(false));
        let ticks = tokio::task::spawn_local({
            let over = Rc::clone(&over);
            async move {
                let mut ticks = 0_u32;
                while !over.get() {
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    ticks += 1;
                }
                ticks
            }
        });
        let neighbours = tokio::task::spawn_local({
            let (over, runtime) = (Rc::clone(&over), runtime.clone());
            let workspace = place.workspace();
            async move {
                let mut done = 0_u32;
                while !over.get() {
                    let request = ExecutionRequest::program(Guest::HELLO.name());
                    let output = runtime.run(request.working_dir(&workspace)).await.unwrap();
                    assert_eq!(output.stdout.as_bytes(), b"hello\n");
                    done += 1;
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                done
            }
        });
        let begun = Instant::now();
        let output = guest(runtime.clone()).await;
        let took = begun.elapsed();
        over.set(true);
        let (ticks, neighbours) = (ticks.await.unwrap(), neighbours.await.unwrap());
        // A fraction of what an idle runtime would do, and far more than one that is held up.
        let fair = u32::try_from(took.as_millis() / 100).unwrap();
        assert!(ticks >= fair, "the timer fired {ticks} times in {took:?}");
        assert!(
            neighbours >= fair,
            "{neighbours} other guests ran in {took:?}"
        );
        let after = resident_memory();
        assert!(
            after < before + MORE_MEMORY,
            "the process had {before} KiB before the guest and has {after} KiB after it"
        );
        output
    })
}

/// The memory of this process that is in use, in KiB.
fn resident_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn assert_timed_out(output: &ExecutionOutput) {
    assert_eq!(output.termination, Termination::TimedOut);
    assert_eq!(output.exit_code, 124);
    assert!(output.duration >= TIMEOUT, "{:?}", output.duration);
    assert!(
        output.duration < TIMEOUT + Duration::from_millis(1500),
        "{:?}",
        output.duration
    );
}

#[test]
fn one_that_spins_is_ended() {
    let place = place();
    let output = run(&place, place.boxed(&["spin"]).timeout(TIMEOUT));
    assert_timed_out(&output);
}

#[test]
fn several_that_spin_are_ended() {
    let place = place();
    let output = observed(&place, |runtime| {
        let requests = [(); 3].map(|()| place.boxed(&["spin"]).timeout(TIMEOUT));
        async move {
            let [first, second, third] = requests.map(|request| runtime.run(request));
            let (first, second, third) = tokio::join!(first, second, third);
            for output in [first.unwrap(), second.unwrap()] {
                assert_eq!(output.termination, Termination::TimedOut);
            }
            third.unwrap()
        }
    });
    assert_timed_out(&output);
}

#[test]
fn one_that_sleeps_is_ended() {
    let place = place();
    let output = run(&place, place.boxed(&["sleep", "60000"]).timeout(TIMEOUT));
    assert_timed_out(&output);
}

#[test]
fn one_that_waits_for_stdin_is_ended() {
    let place = place();
    let (held, theirs) = tokio::io::duplex(64);
    let request = place
        .boxed(&["cat"])
        .timeout(TIMEOUT)
        .stdin(Stdin::Reader(Box::new(theirs)));
    let output = run(&place, request);
    assert_timed_out(&output);
    drop(held);
}

#[test]
fn one_of_another_kind_is_ended_too() {
    let place = place();
    for args in [&["spin"][..], &["sleep", "60000"]] {
        let request = place
            .request(Guest::BOX_COMPONENT.name(), args)
            .timeout(TIMEOUT);
        assert_timed_out(&run(&place, request));
    }
}

#[test]
fn one_that_takes_all_memory_and_knows_how_to_do_without_exits() {
    let place = place();
    let output = run(&place, place.boxed(&["grow"]));
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 0)
    );
    let bytes: u64 = output.stdout.to_text().trim().parse().unwrap();
    let limit = 128 << 20;
    assert!(
        bytes <= limit && bytes > limit - (4 << 20),
        "it had {bytes} bytes"
    );
}

#[test]
fn one_that_takes_all_memory_and_traps_is_out_of_memory() {
    let place = place();
    let output = run(&place, place.boxed(&["grow-trap"]));
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::OutOfMemory, 137)
    );
}

#[test]
fn one_that_traps_without_that_is_not_out_of_memory() {
    let place = place();
    let output = run(&place, place.boxed(&["trap"]));
    let Termination::Trapped(reason) = &output.termination else {
        panic!("{output:?}")
    };
    assert!(reason.contains("unreachable"), "{reason}");
    assert_eq!(output.exit_code, 134);
}

#[test]
fn one_with_three_memories_has_one_limit() {
    let mut place = place();
    place.config.runtime.wasm.max_memory_mb = 64;
    let output = run(&place, place.request(Guest::THREE_MEMORIES.name(), &["x"]));
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 64)
    );
}

#[test]
fn one_that_recurses_traps() {
    let place = place();
    let output = run(&place, place.boxed(&["recurse"]));
    // Whichever stack is the first to end: that of the machine, or the one in the guest's memory.
    let Termination::Trapped(reason) = &output.termination else {
        panic!("{output:?}")
    };
    assert!(
        reason.contains("call stack exhausted") || reason.contains("out of bounds"),
        "{reason}"
    );
    assert_eq!(output.exit_code, 134);
    let account = output.stderr.to_text();
    assert!(
        account.contains("wasm trap") && account.contains("wasm backtrace"),
        "{account}"
    );
}

#[test]
fn one_that_prints_a_gibibyte_is_heard_to_its_end() {
    let mut place = place();
    place.config.runtime.wasm.timeout_secs = 300;
    let bytes = 1_u64 << 30;
    let request = place.boxed(&["fill", &bytes.to_string(), "0"]);
    let output = run(&place, request.timeout(Duration::from_secs(300)));
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 0)
    );
    assert_eq!(output.stdout.total_bytes(), bytes);
    assert!(output.stdout.as_bytes().len() <= place.config.runtime.max_output_bytes);
}
