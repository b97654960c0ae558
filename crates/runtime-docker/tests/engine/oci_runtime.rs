//! Containers under another OCI runtime than the engine's own: gVisor, whose kernel is none of ours.

use std::os::unix::fs::MetadataExt;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::private::PrivateEngine;
use crate::support::{eventually, need_engine, sh_in, skipped};

#[tokio::test(flavor = "multi_thread")]
async fn gvisor_runs_a_command() {
    need_engine!();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let Some(runsc) = std::env::split_paths(&path)
        .map(|dir| dir.join("runsc"))
        .find(|file| file.is_file())
    else {
        skipped("there is no runsc here");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    // Of its ways to stop system calls, the one that every machine has; and no network, which older
    // ones set up only where they can tell the container's from the machine's.
    let settings = format!(
        r#"{{"runtimes": {{"runsc": {{"path": {runsc:?}, "runtimeArgs": ["--platform=ptrace", "--network=none"]}}}}}}"#
    );
    let Some(engine) = PrivateEngine::start(dir.path(), &settings, None) else {
        return;
    };
    engine.is_up().await;
    let mut config = engine.equip();
    config.runtime.docker.oci_runtime = Some("runsc".to_owned());
    let runtime = DockerRuntime::new(&config).unwrap();
    let line = "cat /proc/version; cp /bin/busybox file; chmod 4755 file; echo here; exit 3";
    let work = tempfile::tempdir().unwrap();
    let output = sh_in(&runtime, line, work.path()).await;
    assert_eq!(output.exit_code, 3, "{output:?}");
    let text = output.stdout.to_string();
    let here = std::fs::read_to_string("/proc/version").unwrap();
    assert!(
        text.ends_with("here\n") && !text.starts_with(&here),
        "{text}"
    );
    // What it does not keep from being made is said to be open.
    let file = work.path().join("file").metadata().unwrap();
    let open = &output.isolation.not_enforced;
    assert!(file.mode() & 0o4000 == 0 || open.iter().any(|what| what.contains("setuid")));
    let applied = &output.isolation.applied;
    assert!(
        applied.iter().any(|what| what.contains("runsc")),
        "{applied:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_runtime_that_is_gone_is_not_a_missing_program() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("gone");
    let settings = format!(r#"{{"runtimes": {{"gone": {{"path": {path:?}}}}}}}"#);
    let Some(engine) = PrivateEngine::start(dir.path(), &settings, None) else {
        return;
    };
    engine.is_up().await;
    let mut config = engine.equip();
    config.runtime.docker.oci_runtime = Some("gone".to_owned());
    let runtime = DockerRuntime::new(&config).unwrap();
    let work = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("ls").working_dir(work.path());
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    let text = error.to_string();
    assert!(text.contains(path.to_str().unwrap()), "{text}");
    assert!(text.contains("runtime.docker.oci_runtime"), "{text}");
    eventually("nothing is left", || {
        engine.ask(&["ps", "-aq"]).as_deref() == Ok("")
    })
    .await;
}
