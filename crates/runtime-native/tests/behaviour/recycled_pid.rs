//! A pid that is given to another process while a guard of the old one still lives.

use std::os::unix::process::CommandExt;
use std::process::Stdio;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage;

#[test]
fn dropping_the_guard_does_not_hit_the_new_owner() {
    if !stage::is_root() {
        println!("skipped: only root may choose the next pid");
        return;
    }
    // In a PID namespace of its own, where nobody else takes the pid in between.
    let launcher = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"];
    stage::alone_under(
        &launcher,
        dropping_the_guard_does_not_hit_the_new_owner,
        || {
            let runtime = stage::current_thread();
            let (execution, pid) = runtime.block_on(async {
                let mut execution = stage::native()
                    .spawn(ExecutionRequest::shell("echo $$"))
                    .await
                    .unwrap();
                let mut text = String::new();
                let mut stdout = execution.stdout.take().unwrap();
                tokio::io::AsyncReadExt::read_to_string(&mut stdout, &mut text)
                    .await
                    .unwrap();
                let pid: u32 = text.trim().parse().unwrap();
                let gone = || !std::path::Path::new(&format!("/proc/{pid}")).exists();
                stage::until("the command is reaped", gone).await;
                (execution, pid)
            });
            std::fs::write("/proc/sys/kernel/ns_last_pid", (pid - 1).to_string()).unwrap();
            let mut bystander = stage::process("sleep")
                .arg("3600")
                .process_group(0)
                .stdout(Stdio::null())
                .spawn()
                .unwrap();
            assert_eq!(bystander.id(), pid, "the pid was not given out again");
            drop(execution);
            drop(runtime);
            assert!(bystander.try_wait().unwrap().is_none(), "it was signalled");
            bystander.kill().unwrap();
            bystander.wait().unwrap();
        },
    );
}
