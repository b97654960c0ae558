//! An engine that stops while a command runs, and comes again. A private one, with folders and a
//! socket of its own.

use std::time::{Duration, Instant};

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter, Stdin};
use prx_runtime_docker::DockerRuntime;
use rustix::process::Signal;

use crate::private::PrivateEngine;
use crate::support::{eventually, need_engine};

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stops_and_comes_again() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let Some(mut engine) = PrivateEngine::start(dir.path(), "{}", None) else {
        return;
    };
    engine.is_up().await;
    let runtime = DockerRuntime::new(&engine.equip()).unwrap();
    let work = tempfile::tempdir().unwrap();
    let echo = || {
        ExecutionRequest::program("echo")
            .arg("fine")
            .working_dir(work.path())
    };
    assert_eq!(
        runtime.run(echo()).await.unwrap().stdout.as_bytes(),
        b"fine\n"
    );

    let request = ExecutionRequest::program("cat")
        .stdin(Stdin::Piped)
        .working_dir(work.path());
    let mut execution = runtime.spawn(request).await.unwrap();
    let stopped = Instant::now();
    engine.stop(Signal::KILL);
    let error = execution.wait().await.expect_err("the engine is gone");
    assert_eq!(error.kind(), ErrorKind::Engine, "{error}");
    assert!(
        stopped.elapsed() < Duration::from_secs(30),
        "{:?}",
        stopped.elapsed()
    );
    let error = runtime.run(echo()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!runtime.is_available().await);

    // An engine that was killed leaves notes on processes that are gone.
    for note in ["pid", "exec/containerd/containerd.pid"] {
        let _ = std::fs::remove_file(dir.path().join(note));
    }
    engine = PrivateEngine::start(dir.path(), "{}", None).unwrap();
    engine.is_up().await;
    assert!(runtime.is_available().await);
    assert_eq!(
        runtime.run(echo()).await.unwrap().stdout.as_bytes(),
        b"fine\n"
    );
    eventually("what it left behind is gone", || {
        engine.ask(&["ps", "-aq"]).is_ok_and(|ids| ids.is_empty())
    })
    .await;
}
