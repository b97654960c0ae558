//! Many, one after the other and at once.

use std::sync::Arc;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};
use tokio::task::JoinSet;

use crate::support::{need_engine, runtime, sh_in};

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_times_the_output_is_there() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    for turn in 0..200 {
        let output = sh_in(&runtime, "echo x", dir.path()).await;
        assert_eq!(output.stdout.as_bytes(), b"x\n", "turn {turn}: {output:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sixty_four_at_once() {
    need_engine!();
    let runtime = Arc::new(runtime(""));
    let dir = Arc::new(tempfile::tempdir().unwrap());
    let mut runs = JoinSet::new();
    for number in 0..64 {
        let (runtime, dir) = (Arc::clone(&runtime), Arc::clone(&dir));
        runs.spawn(async move {
            let request = ExecutionRequest::program("echo").arg(number.to_string());
            (number, runtime.run(request.working_dir(dir.path())).await)
        });
    }
    for (number, output) in runs.join_all().await {
        assert_eq!(output.unwrap().stdout.to_string(), format!("{number}\n"));
    }
}
