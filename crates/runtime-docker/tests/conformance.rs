//! The contract, on a real engine.

#[path = "common/images.rs"]
#[expect(dead_code, reason = "the contract needs one image, the scenarios more")]
mod images;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use prx_conformance::{Driver, PosixSpelling, Task};
use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter, async_trait};
use prx_runtime_docker::DockerRuntime;

struct DockerDriver;

#[async_trait]
impl Driver for DockerDriver {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn config(&self) -> Config {
        let mut config = Config::default();
        config.runtime.docker.image = images::BUSYBOX.name.to_owned();
        config
    }

    async fn make(&self, config: &Config) -> Result<Arc<dyn RuntimeAdapter>> {
        Ok(Arc::new(DockerRuntime::new(config)?))
    }

    fn spell(&self, task: &Task) -> Option<ExecutionRequest> {
        PosixSpelling::default().spell(task)
    }

    /// A container takes a third of a second of a processor to start.
    fn trials_at_once(&self) -> usize {
        2
    }

    fn guest_path(&self, _directory: &Path) -> PathBuf {
        "/workspace".into()
    }

    fn ambient_variables(&self) -> &'static [&'static str] {
        &["HOME", "HOSTNAME", "PATH"]
    }

    fn set_literal(&self, config: &mut Config, name: &str, value: &str) -> bool {
        config
            .runtime
            .docker
            .env
            .insert(name.to_owned(), value.to_owned());
        true
    }

    fn unusable(&self) -> Option<Config> {
        let mut config = self.config();
        config.runtime.docker.socket = Some("/nowhere/docker.sock".to_owned());
        Some(config)
    }
}

fn main() -> ExitCode {
    // Where there is no engine, the suite itself says so.
    if images::docker(&["version"]).is_ok() {
        images::BUSYBOX.make().expect("the test image can be made");
    }
    prx_conformance::main(DockerDriver)
}
