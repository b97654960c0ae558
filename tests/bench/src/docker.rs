//! The Docker backend against the engine's own client: a container of its own for each command,
//! confined alike, its output read, removed afterwards.

#[path = "../../../crates/runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "a row needs one image, the tests more")]
mod images;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prx_runtime_core::config::{Config, DockerConfig};
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter as _};
use prx_runtime_docker::DockerRuntime;

use crate::harness::{Bench, Row};

/// Longer than a container takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The user of both: no root, whose commands we give a filter that the peer has not.
const USER: &str = "65534:65534";

const COLD: Row = Row {
    name: "docker: true, cold",
    peer: "docker run --rm, same flags",
    max_pairs: 50,
    bytes: None,
};

/// Every row of the Docker backend.
pub(crate) async fn rows(bench: &mut Bench) -> Result<()> {
    if !bench.wants(COLD.name) {
        return Ok(());
    }
    if let Err(reason) = images::docker(&["version"]) {
        bench.skip(COLD.name, format!("no engine answers: {reason}"));
        return Ok(());
    }
    let mut config = Config::default();
    images::BUSYBOX
        .make()?
        .clone_into(&mut config.runtime.docker.image);
    USER.clone_into(&mut config.runtime.docker.user);
    let workspace = workspace()?;
    let ours = DockerRuntime::new(&config)?;
    let flags = flags(&config.runtime.docker, workspace.path())?;
    bench
        .row(
            COLD,
            async || {
                let request = ExecutionRequest::program("true").working_dir(workspace.path());
                let output = ours.run(request.timeout(TIMEOUT)).await?;
                ensure!(output.success(), "the command failed: {output:?}");
                Ok(())
            },
            async || docker_run(&flags).await,
        )
        .await
}

/// A directory that [`USER`] can enter.
fn workspace() -> Result<tempfile::TempDir> {
    use std::os::unix::fs::PermissionsExt as _;
    let workspace = tempfile::tempdir()?;
    std::fs::set_permissions(workspace.path(), std::fs::Permissions::from_mode(0o755))?;
    Ok(workspace)
}

/// What `docker run` is told, so that its container is confined as ours are.
fn flags(config: &DockerConfig, workspace: &Path) -> Result<Vec<String>> {
    let workspace = workspace.to_str().context("a path that is no text")?;
    let target = &config.workspace_mount_path;
    let memory = config.memory_limit.as_u64();
    let words = [
        "run --rm --init --read-only --cap-drop ALL --security-opt no-new-privileges".to_owned(),
        "--log-driver none --no-healthcheck --ulimit core=0:0".to_owned(),
        format!(
            "--network {} --user {}",
            config.network.as_str(),
            config.user
        ),
        format!(
            "--memory {memory} --memory-swap {memory} --pids-limit {}",
            config.pids_limit
        ),
        format!("--cpus {} --workdir {target}", config.cpu_limit),
        format!(
            "--tmpfs /tmp:rw,exec,nosuid,nodev,mode=1777,size={}",
            config.tmpfs_size.as_u64()
        ),
    ];
    let words = words
        .iter()
        .flat_map(|words| words.split(' ').map(str::to_owned));
    let mount = format!("type=bind,source={workspace},target={target},bind-propagation=rprivate");
    let rest = ["--mount", &mount, "--entrypoint", "true", &config.image];
    Ok(words.chain(rest.map(str::to_owned)).collect())
}

/// What one does without us.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer we are measured against"
)]
async fn docker_run(flags: &[String]) -> Result<()> {
    let output = tokio::process::Command::new("docker")
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .await?;
    ensure!(
        output.status.success(),
        "the peer failed: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
