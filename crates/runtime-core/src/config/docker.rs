//! `[runtime.docker]`

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::byte_size::ByteSize;
use super::check;
use super::config_path::ConfigPath;
use super::cpu_limit::CpuLimit;
use super::env_table::EnvTable;
use super::fault::Fault;

/// Less than this the engine refuses.
const MIN_MEMORY: ByteSize = ByteSize::mebibytes(6);

/// How a socket can be reached.
const SOCKET_SCHEMES: [&str; 5] = ["unix", "tcp", "http", "https", "npipe"];

/// One fresh container for every command.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
#[non_exhaustive]
pub struct DockerConfig {
    /// The image of the containers, as `[registry/]repository[:tag][@digest]`.
    ///
    /// Default: `"debian:bookworm-slim"`.
    pub image: String,

    /// The engine's socket: a path, or a `unix://`, `tcp://`, `http://`, `https://` or `npipe://`
    /// address.
    ///
    /// Default: none, which is `DOCKER_HOST` where that is set, else the first that answers of
    /// `/var/run/docker.sock` and the sockets of a rootless Docker and of Podman.
    #[cfg_attr(feature = "schema", schemars(example = &"/var/run/docker.sock"))]
    pub socket: Option<String>,

    /// The memory of a container, swap included, as a size; at least `6m`.
    ///
    /// Default: `"256m"`.
    pub memory_limit: ByteSize,

    /// The processor time of a container, in processors; at least 0.01.
    ///
    /// Default: `"1.0"`.
    pub cpu_limit: CpuLimit,

    /// The number of processes and threads in a container; at least 1.
    ///
    /// Default: `100`.
    pub pids_limit: u32,

    /// The network of the containers.
    ///
    /// Default: `"none"`.
    pub network: DockerNetwork,

    /// Whether the working directory of a command is mounted into its container, writable.
    ///
    /// Default: `true`.
    pub mount_workspace: bool,

    /// Where the working directory is mounted: an absolute path in the container, not `/`.
    ///
    /// Default: `"/workspace"`.
    pub workspace_mount_path: String,

    /// Whether an image that is missing is pulled. If not, a missing image is an error.
    ///
    /// Default: `true`.
    pub auto_pull: bool,

    /// Whether a container is removed when its command has ended. A container that is kept stays
    /// for inspection until `prx-runtime prune`.
    ///
    /// Default: `true`.
    pub auto_remove: bool,

    /// How long a pull may take, in seconds; at least 1. Pulls have this budget of their own and
    /// take nothing from the timeout of a command.
    ///
    /// Default: `300`.
    pub pull_timeout_secs: u64,

    /// The shell in the image that runs a command given as one line: an absolute path.
    ///
    /// Default: `"/bin/sh"`.
    pub shell: String,

    /// The user in the container: `auto`, a name, `uid` or `uid:gid`. `auto` is the owner of the
    /// working directory, or the user who runs the host where none is mounted, so that files
    /// written there are theirs; on a rootless engine it is root of the container, who is the user
    /// that runs the engine.
    ///
    /// Default: `"auto"`.
    pub user: String,

    /// The engine's runtime, such as `runsc` (gVisor), `crun` or `kata`.
    ///
    /// Default: none, which is the engine's own default.
    #[cfg_attr(feature = "schema", schemars(example = &"runsc"))]
    pub oci_runtime: Option<String>,

    /// Directories of the host; only they and what is below them may be mounted as a working
    /// directory.
    ///
    /// Default: `[]`, which is any directory but `/` and those of the system.
    #[cfg_attr(feature = "schema", schemars(example = ["~/projects"]))]
    pub allowed_workspace_roots: Vec<ConfigPath>,

    /// The size of the temporary file system at `/tmp`; it counts as memory of the container.
    ///
    /// Default: `"64m"`.
    pub tmpfs_size: ByteSize,

    /// How many containers are kept started in advance, waiting for a command. Each still runs one
    /// command only.
    ///
    /// Default: `0`.
    pub pool: usize,

    /// Variables set in every container, over those of the image and what `env_whitelist` lets
    /// through.
    ///
    /// Default: `{}`.
    #[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"PIP_NO_INPUT": "1"})))]
    pub env: EnvTable,

    /// The image for a tool, by the tool's name or by the name of the program it runs; all others
    /// use `image`.
    ///
    /// Default: `{}`.
    #[cfg_attr(feature = "schema", schemars(example = serde_json::json!({"python3": "python:3.12-slim"})))]
    pub tool_images: BTreeMap<String, String>,
}

/// The network of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum DockerNetwork {
    /// No network but loopback.
    #[default]
    None,
    /// The engine's bridge: out through the host, not in.
    Bridge,
    /// The network of the host itself, with all that listens there.
    Host,
}

impl DockerNetwork {
    /// The name in the configuration and in the Docker API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bridge => "bridge",
            Self::Host => "host",
        }
    }
}

impl fmt::Display for DockerNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Default for DockerConfig {
    fn default() -> Self {
        Self {
            image: "debian:bookworm-slim".to_owned(),
            socket: None,
            memory_limit: ByteSize::mebibytes(256),
            cpu_limit: CpuLimit::ONE,
            pids_limit: 100,
            network: DockerNetwork::None,
            mount_workspace: true,
            workspace_mount_path: "/workspace".to_owned(),
            auto_pull: true,
            auto_remove: true,
            pull_timeout_secs: 300,
            shell: "/bin/sh".to_owned(),
            user: "auto".to_owned(),
            oci_runtime: None,
            allowed_workspace_roots: Vec::new(),
            tmpfs_size: ByteSize::mebibytes(64),
            pool: 0,
            env: EnvTable::default(),
            tool_images: BTreeMap::new(),
        }
    }
}

impl DockerConfig {
    /// How long a pull may take.
    pub const fn pull_timeout(&self) -> Duration {
        Duration::from_secs(self.pull_timeout_secs)
    }

    pub(super) fn check(&self) -> Result<(), Fault> {
        check::image("image", &self.image)?;
        if let Some(socket) = &self.socket {
            check_socket(socket).map_err(|problem| Fault::at("socket", problem))?;
        }
        check_memory("memory_limit", self.memory_limit, MIN_MEMORY)?;
        check::positive("pids_limit", self.pids_limit.into())?;
        check_mount_path(&self.workspace_mount_path)
            .map_err(|problem| Fault::at("workspace_mount_path", problem))?;
        check::positive("pull_timeout_secs", self.pull_timeout_secs)?;
        if !self.shell.starts_with('/') {
            let problem = format!(
                "{:?} is no absolute path; expected one such as \"/bin/sh\"",
                self.shell
            );
            return Err(Fault::at("shell", problem));
        }
        check_word("user", &self.user, "\"auto\", a name, uid or uid:gid")?;
        if let Some(runtime) = &self.oci_runtime {
            check_word(
                "oci_runtime",
                runtime,
                "the name of a runtime of the engine",
            )?;
        }
        let roots = "allowed_workspace_roots";
        check::absolute_paths(roots, &self.allowed_workspace_roots)?;
        check::each(roots, &self.allowed_workspace_roots, |root| {
            if root.as_str().trim_end_matches('/').is_empty() {
                return Err(Fault::new(
                    "found \"/\", which is never mounted; expected directories below it",
                ));
            }
            Ok(())
        })?;
        check_memory("tmpfs_size", self.tmpfs_size, ByteSize(1))?;
        check::env_table(&self.env)?;
        check::images("tool_images", &self.tool_images)
    }
}

/// The engine counts bytes in an `i64`.
fn check_memory(key: &str, size: ByteSize, min: ByteSize) -> Result<(), Fault> {
    if size < min || i64::try_from(size.0).is_err() {
        let problem = format!(
            "found {size}, expected a size from {min} to {}",
            ByteSize(1 << 62)
        );
        return Err(Fault::at(key, problem));
    }
    Ok(())
}

fn check_word(key: &str, word: &str, expected: &str) -> Result<(), Fault> {
    check::not_empty(key, word, expected)?;
    if word.contains(|c: char| c.is_whitespace() || c.is_control()) {
        return Err(Fault::at(
            key,
            format!("{word:?} contains a blank; expected {expected}"),
        ));
    }
    Ok(())
}

fn check_socket(socket: &str) -> Result<(), String> {
    const EXPECTED: &str = "an absolute path, or an address that starts with unix://, tcp://, http://, https:// or npipe://";
    match socket.split_once("://") {
        Some((scheme, rest)) if SOCKET_SCHEMES.contains(&scheme) && !rest.is_empty() => Ok(()),
        None if socket.starts_with('/') => Ok(()),
        _ => Err(format!("found {socket:?}, expected {EXPECTED}")),
    }
}

/// A place in the container that a mount neither hides nor breaks.
fn check_mount_path(path: &str) -> Result<(), String> {
    if !path.starts_with('/') {
        return Err(format!(
            "{path:?} is no absolute path; expected one such as \"/workspace\""
        ));
    }
    let mut parts = path.split('/').filter(|part| !part.is_empty()).peekable();
    match parts.peek() {
        None => {
            return Err(
                "found \"/\", expected a directory below it such as \"/workspace\"".to_owned(),
            );
        }
        Some(&("proc" | "sys" | "dev")) => {
            return Err(format!(
                "{path:?} belongs to the system; expected one such as \"/workspace\""
            ));
        }
        Some(_) => {}
    }
    if parts.any(|part| part == ".." || part == ".") || path.contains('\0') {
        return Err(format!(
            "{path:?} contains `..`, `.` or a NUL byte; expected a plain path"
        ));
    }
    Ok(())
}
