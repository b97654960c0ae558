//! What cannot be meant is refused before anything is created, each with an error of its own.

use prx_runtime_core::config::Config;
use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::requests::{Recorder, engine_socket};
use crate::support::{need_engine, runtime};

#[test]
fn a_configuration_that_cannot_be_meant() {
    for (line, names) in [
        ("image = \"Not An Image\"", "image"),
        ("image = \"../../containers/x\"", "image"),
        ("image = \"\"", "image"),
        ("memory_limit = \"256x\"", "memory_limit"),
        ("memory_limit = \"1k\"", "memory_limit"),
        ("cpu_limit = \"0\"", "cpu_limit"),
        ("pids_limit = 0", "pids_limit"),
        ("network = \"foo\"", "network"),
        (
            "workspace_mount_path = \"workspace\"",
            "workspace_mount_path",
        ),
        ("workspace_mount_path = \"/\"", "workspace_mount_path"),
        ("workspace_mount_path = \"/proc\"", "workspace_mount_path"),
        ("socket = \"docker.sock\"", "socket"),
        ("socket = \"https://engine:2376\"", "socket"),
        ("tool_images = { x = \"A B\" }", "tool_images"),
        ("env = { \"A=B\" = \"c\" }", "A=B"),
        ("shell = \"sh\"", "shell"),
        ("pool = 3", "pool"),
    ] {
        let made = Config::from_toml_str(&format!("[runtime.docker]\n{line}\n"), "config.toml")
            .and_then(|config| DockerRuntime::new(&config));
        let error = made.expect_err(line);
        assert_eq!(error.kind(), ErrorKind::InvalidConfig, "{line}: {error}");
        assert!(error.to_string().contains(names), "{line}: {error}");
    }
}

#[tokio::test]
async fn a_socket_where_nobody_listens() {
    let mut config = Config::default();
    config.runtime.docker.socket = Some("/nowhere/docker.sock".to_owned());
    let runtime = DockerRuntime::new(&config).unwrap();
    assert!(!runtime.is_available().await);
    let probe = runtime.probe().await;
    assert!(probe.detail.contains("/nowhere/docker.sock"), "{probe:?}");
    assert!(probe.hint.unwrap().contains("runtime.docker.socket"));
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("true").working_dir(dir.path());
    assert_eq!(
        runtime.run(request).await.unwrap_err().kind(),
        ErrorKind::Unavailable
    );
}

#[tokio::test]
async fn what_only_the_engine_knows() {
    need_engine!();
    let Some(engine) = engine_socket() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(engine, None);
    let runtime = runtime(&format!(
        "oci_runtime = \"no-such-runtime\"\nsocket = {:?}",
        recorder.socket()
    ));
    let request = || ExecutionRequest::program("true").working_dir(dir.path());
    let error = runtime.run(request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("`no-such-runtime`"), "{error}");
    assert_eq!(
        runtime.validate().await.unwrap_err().kind(),
        ErrorKind::Refused
    );
    let error = runtime
        .run(ExecutionRequest::program("true").working_dir("/"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    assert_eq!(recorder.count("POST /containers/create"), 0);
}
