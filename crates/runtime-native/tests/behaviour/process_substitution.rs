//! Process substitution: helpers of a shell that it does not wait for.

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::stage;

#[test]
fn readers_and_writers_beside_the_command_are_part_of_it() {
    if !std::path::Path::new("/bin/bash").exists() {
        println!("skipped: process substitution needs bash");
        return;
    }
    stage::on_both_runtimes(|| async {
        let line = "cat <(echo one) <(echo two); echo three > >(cat >&2); wait $!; exit 3";
        let output = stage::native()
            .run(ExecutionRequest::shell(line))
            .await
            .unwrap();
        assert_eq!(output.stdout.to_string(), "one\ntwo\n");
        assert_eq!(output.stderr.to_string(), "three\n");
        assert_eq!(output.exit_code, 3);
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.leftover_processes, 0);
    });
}
