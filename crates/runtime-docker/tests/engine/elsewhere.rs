//! An engine that sees other files than we do: one with mounts of its own.

use std::path::Path;

use prx_runtime_core::config::Config;
use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::podman::Podman;
use crate::private::PrivateEngine;
use crate::support::{eventually, need_engine};

/// A directory that the engine of `config` does not see is refused by name; without it commands run.
async fn is_noticed(config: &mut Config, work: &Path) {
    let runtime = DockerRuntime::new(config).unwrap();
    let request = ExecutionRequest::program("true").working_dir(work);
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains("sees another file system"), "{text}");
    assert!(text.contains(work.to_str().unwrap()), "{text}");
    assert_eq!(
        std::fs::read_dir(work).unwrap().count(),
        0,
        "no mark is left"
    );

    let elsewhere = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("true").working_dir(elsewhere.path());
    assert!(runtime.run(request).await.unwrap().success());
    config.runtime.docker.mount_workspace = false;
    let runtime = DockerRuntime::new(config).unwrap();
    let output = runtime.run(ExecutionRequest::program("true")).await;
    assert!(output.unwrap().success());
}

#[tokio::test(flavor = "multi_thread")]
async fn docker_with_other_files_is_noticed() {
    need_engine!();
    let (dir, work) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let Some(engine) = PrivateEngine::start(dir.path(), "{}", Some(work.path())) else {
        return;
    };
    engine.is_up().await;
    is_noticed(&mut engine.equip(), work.path()).await;
    eventually("nothing is left", || {
        engine.ask(&["ps", "-aq"]).as_deref() == Ok("")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn podman_with_other_files_is_noticed() {
    let work = tempfile::tempdir().unwrap();
    let Some(podman) = Podman::for_test(Some(work.path())) else {
        return;
    };
    is_noticed(&mut podman.config(), work.path()).await;
    eventually("nothing is left", || {
        podman.ask(&["ps", "-aq"]).as_deref() == Ok("")
    })
    .await;
}
