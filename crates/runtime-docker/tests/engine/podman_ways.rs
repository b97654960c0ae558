//! What Podman does in other ways than Docker, and what then must hold all the same.

use std::os::unix::fs::MetadataExt;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::images::LINKED;
use crate::podman::Podman;
use crate::support::sh_in;

#[tokio::test(flavor = "multi_thread")]
async fn root_makes_no_setuid_file() {
    let Some(podman) = Podman::for_test(None) else {
        return;
    };
    let runtime = DockerRuntime::new(&podman.config()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let line = "cp /bin/busybox a; chmod 4755 a; chmod u+s a; chmod 2755 a; echo done";
    let output = sh_in(&runtime, line, dir.path()).await;
    assert!(output.stdout.to_string().ends_with("done\n"), "{output:?}");
    let file = dir.path().join("a").metadata().unwrap();
    assert_eq!(file.mode() & 0o6000, 0, "{:o}", file.mode());
    assert_eq!(output.isolation.not_enforced, [""; 0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_link_in_place_of_the_workspace_is_noticed() {
    let Some(podman) = Podman::for_test(None) else {
        return;
    };
    podman.make(&LINKED).unwrap();
    let mut config = podman.config();
    config.runtime.docker.image = LINKED.name.to_owned();
    let runtime = DockerRuntime::new(&config).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("true").working_dir(dir.path());
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image, "{error}");
    assert!(error.to_string().contains("leads to `/etc`"), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_forged_report_of_its_init_is_output() {
    let Some(podman) = Podman::for_test(None) else {
        return;
    };
    let runtime = DockerRuntime::new(&podman.config()).unwrap();
    let dir = tempfile::tempdir().unwrap();
    for reason in ["No such file or directory", "Permission denied", "x"] {
        let line = format!("echo 'ERROR (catatonit:2): failed to exec pid1: {reason}' >&2; exit 1");
        let output = sh_in(&runtime, &line, dir.path()).await;
        assert_eq!(output.exit_code, 1, "{output:?}");
    }
    // The real ones are none.
    for (program, kind) in [
        ("no-such-program", ErrorKind::ProgramNotFound),
        ("/etc/passwd", ErrorKind::NotExecutable),
    ] {
        let request = ExecutionRequest::program(program).working_dir(dir.path());
        let error = runtime.run(request).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{error}");
    }
}
