//! What is left after every kind of end: nothing, at the latest after the next sweep.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Stdin};

use crate::images::{BUSYBOX, docker};
use crate::support::{container_of, count, eventually, image, need_engine, runtime, sh};

/// Says that this process is a host that will be killed, and in which directory it works.
const VICTIM: &str = "PRX_TEST_DOCKER_VICTIM";

fn containers_of(directory: &std::path::Path) -> usize {
    // The workspace of a container is the volume that it is found by.
    count(&format!("volume={}", directory.display()))
}

#[tokio::test]
async fn a_dropped_future_leaves_nothing() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    // At many moments: while the container is created, started, running.
    for delay in [0, 5, 15, 30, 60, 120, 240, 400] {
        let request = ExecutionRequest::program("sleep")
            .arg("60")
            .working_dir(dir.path());
        let run = runtime.run(request);
        let _ = tokio::time::timeout(Duration::from_millis(delay), run).await;
    }
    eventually("no container is left", || containers_of(dir.path()) == 0).await;
    drop(runtime);
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "no mark is left"
    );
}

#[test]
fn the_end_of_the_tokio_runtime_leaves_nothing() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let host = tokio::runtime::Runtime::new().unwrap();
    let id = host.block_on(async {
        let request = ExecutionRequest::program("cat")
            .stdin(Stdin::Piped)
            .working_dir(dir.path());
        let execution = runtime.spawn(request).await.unwrap();
        let id = execution.id();
        // Whoever holds it forgets it.
        std::mem::forget(execution);
        id
    });
    assert_eq!(count(&format!("name={}", container_of(id))), 1);
    drop(host);
    drop(runtime);
    let later = tokio::runtime::Runtime::new().unwrap();
    later.block_on(eventually("no container is left", || {
        count(&format!("name={}", container_of(id))) == 0
    }));
}

#[tokio::test]
async fn a_panic_leaves_nothing() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let task = {
        let (runtime, path) = (runtime.clone(), dir.path().to_owned());
        tokio::spawn(async move {
            let request = ExecutionRequest::program("cat")
                .stdin(Stdin::Piped)
                .working_dir(path);
            let _execution = runtime.spawn(request).await.unwrap();
            panic!("as a caller may");
        })
    };
    assert!(task.await.unwrap_err().is_panic());
    eventually("no container is left", || containers_of(dir.path()) == 0).await;
}

/// The part of the host that is killed: it runs commands one after the other. Does nothing when it
/// is run as a test.
#[tokio::test]
async fn victim() {
    let Some(directory) = std::env::var_os(VICTIM) else {
        return;
    };
    let runtime = runtime("");
    loop {
        let request = ExecutionRequest::program("sleep")
            .arg("0.05")
            .working_dir(&directory);
        let _ = runtime.run(request).await;
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program, as the host to be killed"
)]
fn start_victim(directory: &std::path::Path) -> Victim {
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "leftovers::victim", "--test-threads=1"])
        .env(VICTIM, directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    Victim(child)
}

/// Such a host. It ends with the test, however that ends.
struct Victim(Child);

impl Victim {
    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Victim {
    fn drop(&mut self) {
        self.kill();
    }
}

#[tokio::test]
async fn a_killed_host_leaves_nothing_after_the_next_sweep() {
    need_engine!();
    let runtime = runtime("");
    sh(&runtime, "true").await;
    let spared = tempfile::tempdir().unwrap();
    let mut living = start_victim(spared.path());
    for turn in 0..20_u64 {
        let dir = tempfile::tempdir().unwrap();
        let mut victim = start_victim(dir.path());
        eventually("the victim makes containers", || {
            containers_of(dir.path()) > 0
        })
        .await;
        // Another phase in every turn.
        tokio::time::sleep(Duration::from_millis(turn * 37 % 500)).await;
        victim.kill();
        // What the engine was asked for just then appears a moment later.
        eventually("nothing of the dead host is left", || {
            futures_block(runtime.sweep());
            containers_of(dir.path()) == 0
        })
        .await;
        let probe = container_names_of_the_living(spared.path());
        eventually("the living host goes on", || {
            container_names_of_the_living(spared.path()) != probe
        })
        .await;
    }
    assert!(
        living.0.try_wait().unwrap().is_none(),
        "the living host was not disturbed"
    );
    living.kill();
    eventually("nothing of the second host is left", || {
        futures_block(runtime.sweep());
        containers_of(spared.path()) == 0
    })
    .await;
}

#[tokio::test]
async fn what_runs_is_of_no_earlier_boot() {
    need_engine!();
    // As a clone of this machine would have it, whose socket is that of the same engine.
    let machine = std::fs::read_to_string("/etc/machine-id").unwrap_or_default();
    let host = format!("prx-runtime.host={}/another-boot", machine.trim());
    let owner = "prx-runtime.owner=1-1-1";
    let image = image(&BUSYBOX);
    let container = docker(&[
        "run",
        "-d",
        "--init",
        "--network",
        "none",
        "--label",
        &host,
        "--label",
        owner,
        image,
        "sleep",
        "60",
    ])
    .unwrap();
    let report = runtime("").sweep().await.unwrap();
    assert!(!report.removed.contains(&container), "{report:?}");
    docker(&["kill", &container]).unwrap();
    // Made since this machine was started: it may be that of a clone all the same.
    let report = runtime("").sweep().await.unwrap();
    assert!(!report.removed.contains(&container), "{report:?}");
    docker(&["rm", "-f", &container]).unwrap();
}

/// The containers that the living host has at this moment.
fn container_names_of_the_living(directory: &std::path::Path) -> String {
    let filter = format!("volume={}", directory.display());
    docker(&["ps", "-a", "--filter", &filter, "--format", "{{.Names}}"]).unwrap()
}

/// Waits for a sweep in a thread of its own.
fn futures_block(
    sweep: impl Future<Output = prx_runtime_core::Result<prx_runtime_docker::PruneReport>> + Send,
) {
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let runtime = tokio::runtime::Runtime::new().unwrap();
            // What an engine refuses to do at one moment, it does at the next.
            runtime.block_on(sweep).unwrap();
        });
    });
}
