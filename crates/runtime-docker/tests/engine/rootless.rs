//! A Podman that another user than root runs: whose files are made in the workspace.

use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

use prx_runtime_core::{Error, ErrorKind, ExecutionOutput, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::images::BUSYBOX;
use crate::podman::{Podman, is_installed};
use crate::support::skipped;

/// Who runs it.
const USER: u32 = 1000;
/// Another one.
const OTHER: u32 = 4321;

/// `None`, with the reason printed, where there is none.
fn service() -> Option<Podman> {
    if !is_installed() || !rustix::process::geteuid().is_root() {
        prx_fixtures::skip("podman", "it needs podman, and root to become another user");
        return None;
    }
    let made = Podman::start_rootless(USER).and_then(|podman| {
        podman.make(&BUSYBOX)?;
        Ok(podman)
    });
    made.map_err(|error| prx_fixtures::skip("podman", format!("no rootless podman: {error}")))
        .ok()
}

async fn run(runtime: &DockerRuntime, dir: &Path) -> Result<ExecutionOutput, Error> {
    let request = ExecutionRequest::shell("id -u; echo text >file").working_dir(dir);
    runtime.run(request).await
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_those_of_who_runs_it() {
    let Some(podman) = service() else { return };
    let runtime = DockerRuntime::new(&podman.config()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    chown(dir.path(), Some(USER), Some(USER)).unwrap();
    let output = match run(&runtime, dir.path()).await {
        Ok(output) => output,
        // As on cgroup v1.
        Err(error) if error.kind() == ErrorKind::Refused => {
            skipped(&format!("it enforces no limits here: {error}"));
            return;
        }
        Err(error) => panic!("{error}"),
    };
    assert_eq!(output.stdout.to_string(), "0\n", "{output:?}");
    let file = dir.path().join("file").metadata().unwrap();
    assert_eq!(file.uid(), USER);
    let open = |output: &ExecutionOutput| output.isolation.to_string().contains("rootless");
    assert!(!open(&output), "{}", output.isolation);

    // Somebody else's workspace, where it can write all the same.
    chown(dir.path(), Some(OTHER), Some(OTHER)).unwrap();
    std::fs::remove_file(dir.path().join("file")).unwrap();
    std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let output = run(&runtime, dir.path()).await.unwrap();
    assert_eq!(dir.path().join("file").metadata().unwrap().uid(), USER);
    assert!(open(&output), "{}", output.isolation);
}
