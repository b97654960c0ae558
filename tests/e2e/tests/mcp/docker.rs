//! The server in a container: the same program, with the libraries that it needs beside it.

use std::path::Path;

use prx_runtime::config::Config;
use prx_runtime::{Execution, ExecutionRequest, Stdin, Termination, create_runtime};

use crate::client::{SERVER, connect, converse};
use crate::images::{BUSYBOX, ask, docker};

/// Whether an engine answers. Says why the test is skipped where none does.
fn engine() -> bool {
    let answer = docker(&["version"]);
    if let Err(reason) = &answer {
        prx_fixtures::skip("docker", reason);
    }
    answer.is_ok()
}

/// Copies the server and its libraries to `directory`; how they are started there. The image has a
/// shell and nothing that a dynamic program needs.
fn pack(directory: &Path) -> ExecutionRequest {
    std::fs::copy(SERVER, directory.join("server")).unwrap();
    let mut loader = None;
    for line in ask(&["ldd"], &[SERVER]).unwrap().lines() {
        // `libc.so.6 => /lib/libc.so.6 (0x…)`, and for the loader the path alone.
        let words: Vec<_> = line.split_whitespace().collect();
        let path = match words[..] {
            [_, "=>", path, ..] => path,
            [path, ..] if path.starts_with('/') => path,
            _ => continue,
        };
        let name = Path::new(path).file_name().unwrap();
        std::fs::copy(path, directory.join(name)).unwrap();
        if name.to_str().unwrap().starts_with("ld-") {
            loader = Some(name.to_str().unwrap().to_owned());
        }
    }
    let loader = loader.expect("a dynamic program has a loader");
    ExecutionRequest::program(format!("./{loader}"))
        .args(["--library-path", ".", "./server"])
        .working_dir(directory)
}

async fn start(directory: &Path) -> Execution {
    let mut config = Config::from_toml_str("[runtime]\nbackend = \"docker\"", "test.toml").unwrap();
    config.runtime.docker.image = BUSYBOX.make().unwrap().to_owned();
    create_runtime(&config)
        .await
        .unwrap()
        .spawn(pack(directory).stdin(Stdin::Piped))
        .await
        .unwrap()
}

/// The containers of an execution that are there.
fn containers(execution: &Execution) -> String {
    let name = format!("name=prx-{}", execution.id());
    docker(&["ps", "-aq", "--filter", &name]).unwrap()
}

#[tokio::test]
async fn a_session_works_and_ends() {
    if !engine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut execution = start(directory.path()).await;
    let client = connect(&mut execution).await;
    converse(&client).await;
    assert_ne!(containers(&execution), "");
    // The client hangs up, the server sees the end of its stdin and ends by itself.
    client.cancel().await.unwrap();
    let output = execution.wait().await.unwrap();
    assert_eq!(output.termination, Termination::Exited);
    assert_eq!(output.exit_code, 0);
    assert_eq!(containers(&execution), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_the_handle_leaves_nothing() {
    if !engine() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let mut execution = start(directory.path()).await;
    let client = connect(&mut execution).await;
    let name = format!("name=prx-{}", execution.id());
    drop(execution);
    // The client learns of it.
    client.waiting().await.unwrap();
    // Nothing is asserted about how long it takes: the bound only ends a broken test.
    for _ in 0..600 {
        if docker(&["ps", "-aq", "--filter", &name])
            .unwrap()
            .is_empty()
        {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the container is still there");
}
