//! Pulls, from a registry on loopback.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Duration;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use tokio::net::TcpStream;

use crate::images::docker;
use crate::registry::Registry;
use crate::requests::{Recorder, engine_socket};
use crate::support::{need_engine, runtime};

/// The name and the password of the registry, as the Docker configuration keeps them.
const AUTH: &str = "YW5hOnN3b3JkZmlzaA==";
/// Says that this process is one that pulls this image, with a Docker configuration of its own.
const PULLER: &str = "PRX_TEST_DOCKER_PULLER";

async fn runs(image: &str, timeout: Duration) -> Result<(), prx_runtime_core::Error> {
    let runtime = runtime(&format!("image = {image:?}"));
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("echo")
        .arg("pulled")
        .working_dir(dir.path());
    let output = runtime.run(request.timeout(timeout)).await?;
    assert_eq!(output.stdout.as_bytes(), b"pulled\n");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_image_is_pulled_once_for_all() {
    need_engine!();
    let Some(engine) = engine_socket() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let Some(registry) = Registry::start(dir.path(), false) else {
        return;
    };
    registry.push("once");
    let name = registry.name("once");
    let recorder = Recorder::start(engine, None);
    let settings = format!("image = {name:?}\nsocket = {:?}", recorder.socket());
    let runtime = runtime(&settings);
    runtime
        .image_available_or_pullable(Duration::from_secs(10))
        .await
        .unwrap();
    assert!(
        docker(&["image", "inspect", &name]).is_err(),
        "asking pulls nothing"
    );
    let work = tempfile::tempdir().unwrap();
    let run = || runtime.run(ExecutionRequest::program("true").working_dir(work.path()));
    let (a, b, c) = tokio::join!(run(), run(), run());
    assert!(a.unwrap().success() && b.unwrap().success() && c.unwrap().success());
    assert_eq!(recorder.count("POST /images/create"), 1);
    docker(&["rmi", &name]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_does_not_exist_is_an_error() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let Some(registry) = Registry::start(dir.path(), false) else {
        return;
    };
    let name = registry.name("no-such-image");
    let error = runs(&name, Duration::from_secs(5)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image);
    assert!(error.to_string().contains(&name), "{error}");
    let runtime = runtime(&format!("image = {name:?}"));
    let error = runtime
        .image_available_or_pullable(Duration::from_secs(10))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_pull_takes_nothing_from_the_command() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let Some(registry) = Registry::start(dir.path(), false) else {
        return;
    };
    registry.push("slow");
    // What comes from there waits for 5 s, once.
    let slow = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = slow.local_addr().unwrap().port();
    let target = registry.port;
    tokio::spawn(async move {
        let mut delay = Duration::from_secs(5);
        while let Ok((mut client, _)) = slow.accept().await {
            let wait = std::mem::take(&mut delay);
            tokio::spawn(async move {
                tokio::time::sleep(wait).await;
                let mut registry = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                let _ = tokio::io::copy_bidirectional(&mut client, &mut registry).await;
            });
        }
    });
    let name = format!("127.0.0.1:{port}/slow:1");
    runs(&name, Duration::from_secs(2)).await.unwrap();
    docker(&["rmi", &name]).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pull_has_a_budget_of_its_own() {
    need_engine!();
    // Accepts and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port();
    let runtime = runtime(&format!(
        "image = \"127.0.0.1:{port}/silent:1\"\npull_timeout_secs = 1"
    ));
    let dir = tempfile::tempdir().unwrap();
    let error = runtime
        .run(ExecutionRequest::program("true").working_dir(dir.path()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image);
    assert!(error.to_string().contains("pull_timeout_secs"), "{error}");
}

/// The part of a process that pulls with credentials. Does nothing when it is run as a test.
#[tokio::test(flavor = "multi_thread")]
async fn puller() {
    let Ok(name) = std::env::var(PULLER) else {
        return;
    };
    runs(&name, Duration::from_secs(10)).await.unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program with other credentials"
)]
fn pull_with(name: &str, config: &str) -> (bool, String) {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("config.json"), config).unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "pull::puller", "--nocapture"])
        .env(PULLER, name)
        .env("DOCKER_CONFIG", dir.path())
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned()
        + &String::from_utf8_lossy(&output.stdout);
    // What it says of its tests is none of ours.
    let text = text
        .replace("test result:", "its result:")
        .replace("running ", "it runs ");
    (output.status.success(), text)
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_come_from_the_docker_configuration() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let Some(open) = Registry::start(dir.path(), false) else {
        return;
    };
    open.push("locked");
    drop(open);
    let Some(locked) = Registry::start(dir.path(), true) else {
        return;
    };
    let name = locked.name("locked");
    let port = locked.port;
    let (pulled, text) = pull_with(&name, "{}");
    assert!(!pulled && text.contains("docker login"), "{text}");
    let (pulled, text) = pull_with(&name, r#"{"credsStore": "desktop"}"#);
    assert!(!pulled && text.contains("helper `desktop`"), "{text}");
    let config = format!(r#"{{"auths": {{"127.0.0.1:{port}": {{"auth": "{AUTH}"}}}}}}"#);
    let (pulled, text) = pull_with(&name, &config);
    assert!(pulled, "{text}");
    assert!(!text.contains("swordfish"), "{text}");
    docker(&["rmi", &name]).unwrap();
}
