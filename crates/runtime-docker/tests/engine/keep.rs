//! Containers that are kept on purpose.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::images::docker;
use crate::support::{container_of, eventually, need_engine, runtime, sh};

#[tokio::test]
async fn a_kept_container_says_its_id() {
    need_engine!();
    let runtime = runtime("auto_remove = false");
    let output = sh(&runtime, "exit 3").await;
    assert_eq!(output.exit_code, 3);
    let id = output.kept.expect("it says where it is kept");
    let shown = docker(&["inspect", &id, "--format", "{{.Name}} {{.State.Running}}"]).unwrap();
    assert_eq!(
        shown,
        format!("/{} false", container_of(output.id.unwrap()))
    );
    // Its time is up within the minute that `sh` gives, and not now.
    let deadline = "{{index .Config.Labels \"prx-runtime.deadline\"}}";
    let deadline: u64 = docker(&["inspect", &id, "--format", deadline])
        .unwrap()
        .parse()
        .unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((now..now + 61).contains(&deadline), "{deadline}, now {now}");
    // Its owner lives: no sweep touches it, and it is not for a sweep at all.
    runtime.sweep().await.unwrap();
    docker(&["rm", &id]).unwrap();
}

#[tokio::test]
async fn one_that_is_ended_is_kept_as_well() {
    need_engine!();
    let runtime = runtime("auto_remove = false");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("sleep")
        .arg("60")
        .working_dir(dir.path());
    let output = runtime
        .run(request.timeout(std::time::Duration::from_millis(100)))
        .await
        .unwrap();
    assert_eq!(output.termination, Termination::TimedOut);
    let id = output.kept.unwrap();
    eventually("it has ended", || {
        docker(&["inspect", &id, "--format", "{{.State.Running}}"]).as_deref() == Ok("false")
    })
    .await;
    docker(&["rm", &id]).unwrap();
}

#[tokio::test]
async fn without_it_nothing_is_kept() {
    need_engine!();
    let output = sh(&runtime(""), "true").await;
    assert_eq!(output.kept, None);
    let container = container_of(output.id.unwrap());
    eventually("it is gone", || docker(&["inspect", &container]).is_err()).await;
}
