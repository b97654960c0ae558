//! Each process is asked to end once: a program may take a second TERM for impatience.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage;

#[test]
fn in_the_group_and_outside_of_it() {
    stage::on_both_runtimes(|| async {
        let loops = "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 0.02; done";
        let asked = |who: &str| format!("trap \"echo {who}\" TERM; while :; do {loops}; done");
        let line = format!(
            "sh -c '{}' & setsid sh -c '{}' & {}",
            asked("member"),
            asked("stray"),
            asked("leader")
        );
        let request = ExecutionRequest::shell(line).timeout(Duration::from_secs(2));
        let output = stage::native_by("[runtime]\nkill_grace_ms = 800")
            .run(request)
            .await
            .unwrap();
        let said = output.stdout.to_string();
        let mut said: Vec<_> = said.lines().collect();
        said.sort_unstable();
        assert_eq!(said, ["leader", "member", "stray"]);
    });
}
