//! What the scenarios share: the engine, images made on the spot, and the engine as others see it.

use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

use crate::images::{BUSYBOX, TestImage, docker};

/// Whether an engine answers. Says why the test is skipped where none does.
pub(crate) fn engine() -> bool {
    static ANSWER: OnceLock<Result<String, String>> = OnceLock::new();
    let answer = ANSWER.get_or_init(|| docker(&["version", "--format", "{{.Server.Version}}"]));
    if let Err(reason) = answer {
        prx_fixtures::skip("docker", reason);
    }
    answer.is_ok()
}

/// Skips the rest of a test where no engine answers.
macro_rules! need_engine {
    () => {
        if !crate::support::engine() {
            return;
        }
    };
}
pub(crate) use need_engine;

/// The name of an image, made where it is missing.
pub(crate) fn image(image: &TestImage) -> &'static str {
    image.make().unwrap()
}

/// A configuration with the common image and these lines in `[runtime.docker]`.
pub(crate) fn config(lines: &str) -> Config {
    let mut config =
        Config::from_toml_str(&format!("[runtime.docker]\n{lines}\n"), "test").unwrap();
    if !lines.contains("image =") {
        config.runtime.docker.image = image(&BUSYBOX).to_owned();
    }
    config
}

/// A runtime on it.
pub(crate) fn runtime(lines: &str) -> DockerRuntime {
    DockerRuntime::new(&config(lines)).unwrap()
}

/// Runs a line in a fresh directory.
pub(crate) async fn sh(runtime: &DockerRuntime, line: &str) -> ExecutionOutput {
    let dir = tempfile::tempdir().unwrap();
    sh_in(runtime, line, dir.path()).await
}

/// Runs a line in `dir`.
pub(crate) async fn sh_in(runtime: &DockerRuntime, line: &str, dir: &Path) -> ExecutionOutput {
    let request = ExecutionRequest::shell(line)
        .working_dir(dir)
        .timeout(Duration::from_secs(60));
    runtime.run(request).await.unwrap()
}

/// How many containers there are with that label.
pub(crate) fn count(filter: &str) -> usize {
    let ids = docker(&["ps", "-aq", "--filter", filter]).unwrap();
    ids.lines().count()
}

/// Waits until a fact holds. Not for how long something takes: the bound only ends a broken test.
pub(crate) async fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    for _ in 0..600 {
        if holds() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("never came true: {what}");
}

/// The name of an execution's container.
pub(crate) fn container_of(id: prx_runtime_core::ExecutionId) -> String {
    format!("prx-{id}")
}

/// Says why a scenario means nothing here.
#[expect(clippy::print_stdout, reason = "a skip states its reason")]
pub(crate) fn skipped(reason: &str) {
    println!("skipped: {reason}");
}
