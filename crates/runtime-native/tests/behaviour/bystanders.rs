//! Nothing that is not ours is ever signalled.

use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::Stdio;
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage::{self, Sleeper};

#[test]
fn processes_of_the_same_user_survive_every_ending() {
    stage::on_both_runtimes(|| async {
        // It lists every signal that it was sent. One in a group of its own, one in ours.
        let recorder = "trap 'echo hit' TERM INT HUP CONT USR1 USR2 QUIT; echo up; \
                        while read -r line; do :; done";
        let mut bystanders = [false, true].map(|own_group| {
            let mut command = stage::process("sh");
            command.args(["-c", recorder]);
            if own_group {
                command.process_group(0);
            }
            command
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .unwrap()
        });

        let native = stage::native_by("[runtime]\nkill_grace_ms = 100");
        let stray = Sleeper::new();
        let line = format!("setsid {} & trap '' TERM; sleep 3600", stray.line());
        let request = ExecutionRequest::shell(&line).timeout(Duration::from_millis(300));
        native.run(request).await.unwrap();
        drop(native.spawn(ExecutionRequest::shell(&line)).await.unwrap());
        let leaving = format!("setsid {} &", stray.line());
        native.run(ExecutionRequest::shell(leaving)).await.unwrap();
        stray.is_gone().await;

        for bystander in &mut bystanders {
            assert!(bystander.try_wait().unwrap().is_none(), "it was ended");
            drop(bystander.stdin.take());
            let mut said = String::new();
            let mut stdout = bystander.stdout.take().unwrap();
            std::io::Read::read_to_string(&mut stdout, &mut said).unwrap();
            assert_eq!(said, "up\n");
            assert_eq!(bystander.wait().unwrap().signal(), None);
        }
    });
}
