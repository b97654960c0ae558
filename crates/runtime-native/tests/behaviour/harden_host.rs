//! What `harden_host` stops and what it does not.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter};

use crate::stage;

/// In the host's environment, and on no whitelist.
const SECRET: &str = "PRX_TEST_HIDDEN=swordfish";

/// The host's environment, as a command of it sees it.
fn look() -> ExecutionOutput {
    let line = format!("cat /proc/{}/environ", std::process::id());
    let run = async { stage::native().run(ExecutionRequest::shell(line)).await };
    stage::current_thread().block_on(run).unwrap()
}

fn sees_the_secret(output: &ExecutionOutput) -> bool {
    output.stdout.to_string().contains(SECRET)
}

#[test]
fn a_command_of_the_same_user_is_shut_out() {
    let environment = ["env", SECRET];
    let as_nobody = [
        "setpriv",
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
    ];
    let launcher = if stage::is_root() && as_nobody_can_run_this() {
        [&environment[..], &as_nobody].concat()
    } else if stage::is_root() {
        println!("skipped: this program is where only root can run it");
        return;
    } else {
        environment.to_vec()
    };
    stage::alone_under(&launcher, a_command_of_the_same_user_is_shut_out, || {
        assert!(!stage::is_root());
        assert!(sees_the_secret(&look()), "it was closed before");
        let hardening = prx_runtime_native::harden_host().unwrap();
        assert!(hardening.not_dumpable);
        let output = look();
        assert!(!sees_the_secret(&output));
        assert_eq!(output.exit_code, 1);
        assert!(output.stderr.to_string().contains("Permission denied"));
    });
}

#[test]
fn a_command_of_root_is_not() {
    if !stage::is_root() {
        println!("skipped: this is about root");
        return;
    }
    stage::alone_under(&["env", SECRET], a_command_of_root_is_not, || {
        prx_runtime_native::harden_host().unwrap();
        assert!(sees_the_secret(&look()));
    });
}

#[test]
fn descriptors_of_the_host_are_not_inherited_any_more() {
    stage::alone(descriptors_of_the_host_are_not_inherited_any_more, || {
        let file = tempfile::tempfile().unwrap();
        rustix::io::fcntl_setfd(&file, rustix::io::FdFlags::empty()).unwrap();
        let number = std::os::fd::AsRawFd::as_raw_fd(&file);
        let is_inherited = || {
            let line = format!("test -e /proc/self/fd/{number}");
            let run = async { stage::native().run(ExecutionRequest::shell(line)).await };
            stage::current_thread().block_on(run).unwrap().success()
        };
        assert!(is_inherited());
        assert!(
            prx_runtime_native::harden_host()
                .unwrap()
                .descriptors_closed_on_exec
        );
        assert!(!is_inherited());
    });
}

/// Whether every directory on the way to this program lets others through.
fn as_nobody_can_run_this() -> bool {
    let exe = std::env::current_exe().unwrap();
    let open = |path: &Path| {
        std::fs::metadata(path).is_ok_and(|meta| meta.permissions().mode() & 0o001 != 0)
    };
    exe.ancestors().all(open)
}
