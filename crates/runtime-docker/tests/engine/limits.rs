//! Bombs: each ends as it should, and the host does not notice.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::support::{need_engine, runtime, sh};

/// Takes more memory than there is.
const MEMORY_HOG: &str = "awk 'BEGIN { s = \"x\"; while (1) s = s s }'";
/// Docker begins to watch for that only once a container runs: one that ends at once may be a
/// `SIGKILL` to it, and to us.
const LATER: &str = "sleep 1";
/// As much, in the shell itself.
const MEMORY_BOMB: &str = "x=$(head -c 100000000 /dev/zero | base64); echo ${#x}";

#[tokio::test]
async fn out_of_memory_in_the_main_process() {
    need_engine!();
    let runtime = runtime("memory_limit = \"16m\"");
    let output = sh(&runtime, &format!("{LATER}; exec {MEMORY_HOG}")).await;
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::OutOfMemory, 137)
    );
}

#[tokio::test]
async fn out_of_memory_in_a_child_that_is_waited_for() {
    need_engine!();
    let runtime = runtime("memory_limit = \"16m\"");
    let output = sh(&runtime, &format!("{LATER}; {MEMORY_HOG}; exit $?")).await;
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::OutOfMemory, 137)
    );
}

#[tokio::test]
async fn a_command_that_survives_a_child_out_of_memory_has_its_own_code() {
    need_engine!();
    let runtime = runtime("memory_limit = \"16m\"");
    let output = sh(&runtime, &format!("{LATER}; {MEMORY_HOG}; exit 5")).await;
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 5)
    );
}

#[tokio::test]
async fn a_memory_bomb_takes_nothing_but_its_own() {
    need_engine!();
    let output = sh(&runtime("memory_limit = \"32m\""), MEMORY_BOMB).await;
    assert!(!output.stdout.to_string().starts_with('1'), "{output:?}");
}

#[tokio::test]
async fn a_stray_kill_is_no_lack_of_memory() {
    need_engine!();
    let output = sh(&runtime(""), "kill -9 $$; sleep 60").await;
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Signaled(9), 137)
    );
}

#[tokio::test]
async fn our_own_kill_is_a_deadline() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell("trap '' TERM; while :; do :; done")
        .working_dir(dir.path())
        .timeout(Duration::from_millis(500));
    let output = runtime.run(request).await.unwrap();
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::TimedOut, 124)
    );
}

#[tokio::test]
async fn a_fork_bomb_runs_into_its_limit() {
    need_engine!();
    let runtime = runtime("pids_limit = 20");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell("bomb() { bomb | bomb & }; bomb; sleep 60")
        .working_dir(dir.path())
        .timeout(Duration::from_secs(2));
    // What becomes of the bomb is its own affair; that there is an answer is ours.
    let output = runtime.run(request).await.unwrap();
    assert!(!output.success(), "{output:?}");
    let after = sh(&runtime, "echo fine").await;
    assert_eq!(after.stdout.as_bytes(), b"fine\n");
    let most = sh(&runtime, "for i in $(seq 40); do sleep 5 & done; wait").await;
    assert!(most.stderr.to_string().contains("fork"), "{most:?}");
}

#[tokio::test]
async fn an_output_bomb_is_counted_and_dropped() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell("yes").working_dir(dir.path());
    let output = runtime
        .run(
            request
                .timeout(Duration::from_secs(2))
                .max_output_bytes(1000),
        )
        .await
        .unwrap();
    assert_eq!(output.termination, Termination::TimedOut);
    assert!(output.stdout.total_bytes() > 1_000_000);
    assert_eq!(output.stdout.as_bytes().len(), 1000);
}

#[tokio::test]
async fn a_full_tmp_is_an_error_of_the_command() {
    need_engine!();
    let runtime = runtime("tmpfs_size = \"8m\"");
    let output = sh(
        &runtime,
        "head -c 20000000 /dev/zero >/tmp/fill; echo $?; df -k /tmp | tail -1",
    )
    .await;
    assert!(output.stdout.to_string().starts_with("1\n"), "{output:?}");
    assert!(output.stdout.to_string().contains("100%"), "{output:?}");
}

#[tokio::test]
async fn the_cpu_limit_is_in_force() {
    need_engine!();
    let line = "cat /sys/fs/cgroup/cpu.max 2>/dev/null || \
                echo $(cat /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/cpu/cpu.cfs_period_us)";
    let output = sh(&runtime("cpu_limit = 0.5"), line).await;
    assert_eq!(output.stdout.to_string(), "50000 100000\n");
}
