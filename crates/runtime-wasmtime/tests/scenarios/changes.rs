//! When modules are compiled: once, off the command's clock, and again when they have changed.

use std::fmt::Write as _;
use std::fs;
use std::time::Duration;

use prx_fixtures::Guest;
use prx_runtime_core::{RuntimeAdapter as _, Stdin, Termination};

use crate::common::{engine, place};

/// A module that takes long to compile and no time to run.
fn slow_to_compile() -> Vec<u8> {
    let mut body = String::new();
    for turn in 0..400 {
        let _ = write!(
            body,
            "(local.set $a (i32.rotl (i32.mul (local.get $a) (i32.const {turn})) (local.get $b)))"
        );
        let _ = write!(
            body,
            "(local.set $b (i32.xor (local.get $a) (i32.const {})))",
            turn * 7
        );
    }
    let mut text = String::from(r#"(module (func (export "_start"))"#);
    for function in 0..150 {
        let _ = write!(
            text,
            r#"(func (export "f{function}") (param $a i32) (param $b i32) (result i32) {body} local.get $a)"#
        );
    }
    text.push(')');
    wat::parse_str(text).unwrap()
}

#[tokio::test]
async fn compiling_is_not_on_the_commands_clock() {
    let place = place().with_own_modules();
    fs::write(place.modules().join("slow.wasm"), slow_to_compile()).unwrap();
    let runtime = engine(&place);
    let timeout = Duration::from_millis(50);
    let output = runtime
        .run(place.request("slow", &["x"]).timeout(timeout))
        .await
        .unwrap();
    assert!(output.success(), "{output:?}");
    let compiled_in = runtime.compile("slow").await.unwrap().compiled_in.unwrap();
    assert!(
        compiled_in > timeout,
        "the module is too easy: {compiled_in:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn callers_at_once_compile_once() {
    let place = place().with_own_modules();
    fs::write(place.modules().join("slow.wasm"), slow_to_compile()).unwrap();
    let runtime = engine(&place);
    let calls: Vec<_> = (0..8)
        .map(|_| {
            let runtime = runtime.clone();
            tokio::spawn(async move { runtime.compile("slow").await.unwrap() })
        })
        .collect();
    let mut results = Vec::new();
    for call in calls {
        results.push(call.await.unwrap());
    }
    // Each one that was compiled for itself would have taken a time of its own.
    assert!(results[0].compiled_in.is_some());
    assert!(
        results.iter().all(|result| *result == results[0]),
        "{results:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn one_content_under_many_names_is_compiled_by_who_comes_first() {
    let place = place().with_own_modules().without_cache();
    let module = slow_to_compile();
    let names: Vec<_> = (0..16).map(|number| format!("slow{number}")).collect();
    for name in &names {
        fs::write(place.modules().join(format!("{name}.wasm")), &module).unwrap();
    }
    let runtime = engine(&place);
    let calls = names.into_iter().map(|name| {
        let runtime = runtime.clone();
        tokio::spawn(async move { runtime.compile(&name).await.unwrap().compiled_in.unwrap() })
    });
    let mut times = Vec::new();
    for call in calls.collect::<Vec<_>>() {
        times.push(call.await.unwrap());
    }
    times.sort_unstable();
    times.dedup();
    // As many as may compile at the same time.
    let most = std::thread::available_parallelism().map_or(2, |cpus| cpus.get().max(2));
    assert!(times.len() <= most, "{times:?}");
}

#[tokio::test]
async fn a_caller_that_goes_does_not_stop_the_others() {
    let place = place().with_own_modules();
    fs::write(place.modules().join("slow.wasm"), slow_to_compile()).unwrap();
    let runtime = place.runtime();
    let first = tokio::spawn({
        let (runtime, request) = (runtime.clone(), place.request("slow", &["x"]));
        async move { runtime.run(request).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(
        runtime
            .run(place.request("slow", &["x"]))
            .await
            .unwrap()
            .success()
    );
}

#[tokio::test]
async fn a_module_that_changes_is_picked_up() {
    let place = place().with_own_modules();
    let file = place.modules().join("m.wasm");
    let runtime = place.runtime();
    let hello = fs::read(Guest::HELLO.path()).unwrap();
    // Of the same length, so that only the content tells them apart.
    let mut other = hello.clone();
    let text = other
        .windows(5)
        .position(|window| window == b"hello")
        .unwrap();
    other[text..text + 5].copy_from_slice(b"world");
    for turn in 0..6 {
        let (bytes, said) = if turn % 2 == 0 {
            (&hello, "hello\n")
        } else {
            (&other, "world\n")
        };
        if turn < 3 {
            fs::write(&file, bytes).unwrap();
        } else {
            let new = place.modules().join("new");
            fs::write(&new, bytes).unwrap();
            fs::rename(&new, &file).unwrap();
        }
        for _ in 0..3 {
            let output = runtime.run(place.request("m", &["x"])).await.unwrap();
            assert_eq!(output.stdout.to_text(), said, "turn {turn}");
        }
    }
    fs::remove_file(&file).unwrap();
    runtime.run(place.request("m", &["x"])).await.unwrap_err();
}

#[tokio::test]
async fn a_module_that_is_replaced_while_it_runs_harms_nobody() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let place = place().with_own_modules();
    let file = place.modules().join("m.wasm");
    fs::copy(Guest::BOX.path(), &file).unwrap();
    let runtime = place.runtime();
    let request = place.request("m", &["echo-lines"]).stdin(Stdin::Piped);
    let mut running = runtime.spawn(request).await.unwrap();
    let mut stdin = running.stdin.take().unwrap();
    let mut stdout = running.stdout.take().unwrap();
    let mut answer = [0; 7];
    stdin.write_all(b"a\n").await.unwrap();
    stdout.read_exact(&mut answer).await.unwrap();

    // In place, which is the worst way to do it; and its compiled form is gone, too.
    fs::write(&file, fs::read(Guest::HELLO.path()).unwrap()).unwrap();
    fs::remove_dir_all(place.cache()).unwrap();
    let output = runtime.run(place.request("m", &["x"])).await.unwrap();
    assert_eq!(output.stdout.to_text(), "hello\n");

    stdin.write_all(b"b\n").await.unwrap();
    stdout.read_exact(&mut answer).await.unwrap();
    assert_eq!(&answer, b"echo:b\n");
    drop(stdin);
    let output = running.wait().await.unwrap();
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 0)
    );
}

#[tokio::test]
async fn no_thread_is_left_when_guests_have_ended() {
    let place = place();
    let runtime = place.runtime();
    runtime
        .run(place.boxed(&["spin"]).timeout(Duration::from_millis(50)))
        .await
        .unwrap();
    // The clock ends at its next tick.
    let ours = || {
        fs::read_dir("/proc/self/task").unwrap().any(|task| {
            let name = fs::read_to_string(task.unwrap().path().join("comm")).unwrap_or_default();
            name.starts_with("prx-wasm")
        })
    };
    let gone = async {
        while ours() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), gone)
        .await
        .unwrap();
}
