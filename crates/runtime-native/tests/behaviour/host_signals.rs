//! Signal dispositions of the host that concern its children.

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};

use crate::stage;

fn set(signal: i32, disposition: libc::sighandler_t) {
    // SAFETY: neither disposition used here has a handler.
    let before = unsafe { libc::signal(signal, disposition) };
    assert_ne!(before, libc::SIG_ERR);
}

#[test]
fn a_host_that_ignores_sigchld_is_told() {
    stage::alone(a_host_that_ignores_sigchld_is_told, || {
        set(libc::SIGCHLD, libc::SIG_IGN);
        stage::on_both_runtimes(|| async {
            let error = stage::native()
                .run(ExecutionRequest::shell("exit 3"))
                .await
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Refused);
            assert!(error.message().contains("ignores SIGCHLD"), "{error}");
            assert!(error.hint().unwrap().contains("SIG_DFL"), "{error}");
        });
        set(libc::SIGCHLD, libc::SIG_DFL);
        let output = stage::current_thread()
            .block_on(async { stage::native().run(ExecutionRequest::shell("exit 3")).await });
        assert_eq!(output.unwrap().exit_code, 3);
    });
}

#[test]
fn a_host_that_ignores_sigpipe_does_not_pass_that_on() {
    stage::alone(a_host_that_ignores_sigpipe_does_not_pass_that_on, || {
        set(libc::SIGPIPE, libc::SIG_IGN);
        stage::on_both_runtimes(|| async {
            // A `yes` that ignored SIGPIPE would complain and exit with 1.
            let line = "(yes; echo $? >&2) | head -n 1";
            let output = stage::native()
                .run(ExecutionRequest::shell(line))
                .await
                .unwrap();
            assert_eq!(output.stdout.to_string(), "y\n");
            assert_eq!(output.stderr.to_string(), "141\n");
        });
    });
}
