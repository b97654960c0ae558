//! A host that has children of its own keeps their exit statuses.

use std::sync::atomic::{AtomicBool, Ordering};

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage;

const EXECUTIONS: u32 = 500;

#[test]
fn their_statuses_are_not_taken_during_500_executions() {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let host = scope.spawn(|| {
            let mut children = 0;
            while !done.load(Ordering::Relaxed) {
                let code = children % 200;
                // `status` would panic with ECHILD if anybody else had taken it.
                let status = stage::process("sh")
                    .args(["-c", &format!("exit {code}")])
                    .status()
                    .unwrap();
                assert_eq!(status.code(), Some(code));
                children += 1;
            }
            children
        });
        stage::on_both_runtimes(|| async {
            let native = stage::native();
            for number in 0..EXECUTIONS / 2 {
                let code = number % 200;
                // With a child that outlives it every tenth time: the slow way out.
                let line = if number % 10 == 0 {
                    format!("sleep 3600 >/dev/null 2>&1 & exit {code}")
                } else {
                    format!("exit {code}")
                };
                let output = native.run(ExecutionRequest::shell(line)).await.unwrap();
                assert_eq!(output.exit_code, code.cast_signed());
            }
        });
        done.store(true, Ordering::Relaxed);
        assert!(host.join().unwrap() > 0);
    });
}
