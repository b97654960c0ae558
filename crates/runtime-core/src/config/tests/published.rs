//! The files that were published load as they stand.

use super::super::*;
use super::read;

/// The blocks of the published description, letter for letter.
const AUTO: &str = r#"
[runtime]
# Backend selection: "native" | "docker" | "wasm" | "auto"
backend = "auto"

# Global execution timeout (can be overridden per-tool).
default_timeout_secs = 60

# Maximum output size captured from stdout/stderr.
max_output_bytes = 1048576  # 1 MB

# Environment variable whitelist. Only these variables are
# passed to child processes (all backends).
env_whitelist = ["PATH", "HOME", "TERM", "LANG", "USER"]
"#;

const NATIVE: &str = r#"
[runtime.native]
# Shell to use for command execution.
shell = "/bin/bash"

# Additional environment variables to set.
[runtime.native.env]
RUSTFLAGS = "-D warnings"
"#;

const SANDBOX: &str = r#"
[security.sandbox]
backend = "bubblewrap"
allow_network = false
writable_paths = ["/tmp"]
"#;

const DOCKER: &str = r#"
[runtime.docker]
image = "debian:bookworm-slim"
socket = "/var/run/docker.sock"
memory_limit = "256m"
cpu_limit = "1.0"
pids_limit = 100
network = "none"          # "none" | "bridge" | "host"
mount_workspace = true
workspace_mount_path = "/workspace"
auto_pull = true
auto_remove = true
"#;

const WASM: &str = r#"
[runtime.wasm]
# WASM runtime engine: "wasmtime" | "wasmer"
engine = "wasmtime"

# Directory containing .wasm modules.
module_path = "~/.local/share/openprx/wasm/"

# WASI capabilities granted to WASM modules.
[runtime.wasm.capabilities]
filesystem_read = ["/workspace"]
filesystem_write = ["/tmp"]
network = false
env_vars = ["HOME", "USER"]

# Maximum execution time for a single WASM call.
timeout_secs = 30

# Maximum memory allocation for WASM modules.
max_memory_mb = 128
"#;

#[test]
fn every_block_alone_is_the_default_where_it_should_be() {
    let defaults = Config::default();
    assert_eq!(read(""), defaults);
    assert_eq!(read(AUTO), defaults);
    assert_eq!(read(WASM), defaults);

    let docker = read(DOCKER);
    assert_eq!(
        docker.runtime.docker.socket.as_deref(),
        Some("/var/run/docker.sock")
    );
    let mut without_socket = docker.clone();
    without_socket.runtime.docker.socket = None;
    assert_eq!(without_socket, defaults);
}

#[test]
fn all_blocks_together_load() {
    let config = read(&[AUTO, NATIVE, SANDBOX, DOCKER, WASM].concat());
    assert_eq!(config.runtime.native.env["RUSTFLAGS"], "-D warnings");
    assert_eq!(
        config.runtime.native.shell(),
        std::path::Path::new("/bin/bash")
    );
    assert_eq!(config.security.sandbox.backend, SandboxKind::Bubblewrap);
    assert_eq!(config.runtime.docker.memory_limit, ByteSize::mebibytes(256));
    assert_eq!(config.runtime.docker.cpu_limit.nano_cpus(), 1_000_000_000);
}

#[test]
fn each_published_choice_of_a_backend_loads() {
    for (backend, block) in [("native", NATIVE), ("docker", DOCKER), ("wasm", WASM)] {
        let config = read(&format!("[runtime]\nbackend = \"{backend}\"\n{block}"));
        assert_eq!(config.runtime.backend, backend);
    }
}

#[test]
fn wasm_limits_below_the_capabilities_are_the_sections_own() {
    let config = read("[runtime.wasm.capabilities]\ntimeout_secs = 5\nmax_memory_mb = 64\n");
    assert_eq!(config.runtime.wasm.timeout_secs, 5);
    assert_eq!(config.runtime.wasm.max_memory_mb, 64);
    assert_eq!(
        config.runtime.wasm.capabilities,
        WasmCapabilities::default()
    );

    let twice = "[runtime.wasm]\ntimeout_secs = 5\n[runtime.wasm.capabilities]\ntimeout_secs = 5\n";
    assert_eq!(read(twice).runtime.wasm.timeout_secs, 5);
}

#[test]
fn the_sample_of_the_design_loads() {
    let config = read(
        r#"
[runtime]
backend = "auto"
default_timeout_secs = 60
max_output_bytes = 1048576
env_whitelist = ["PATH", "HOME", "TERM", "LANG", "USER"]
kill_grace_ms = 100
max_concurrent = 8
minimum_isolation = "sandbox"

[runtime.native]
shell = "/bin/bash"
[runtime.native.env]

[runtime.docker]
image = "debian:bookworm-slim"
socket = "unix:///run/podman/podman.sock"
memory_limit = "256m"
cpu_limit = 1.5
pids_limit = 100
network = "none"
mount_workspace = true
workspace_mount_path = "/workspace"
auto_pull = true
auto_remove = true
shell = "/bin/sh"
user = "auto"
oci_runtime = "runsc"
allowed_workspace_roots = ["~/src"]
tmpfs_size = "64m"
pool = 2
[runtime.docker.tool_images]
python3 = "python:3.12-slim"

[runtime.wasm]
engine = "wasmer"
module_path = "~/.local/share/openprx/wasm/"
timeout_secs = 30
max_memory_mb = 128
[runtime.wasm.capabilities]
filesystem_read = ["/workspace"]
filesystem_write = ["/tmp"]
network = false
env_vars = ["HOME", "USER"]

[security.sandbox]
backend = "bubblewrap"
allow_network = false
writable_paths = ["/tmp"]
readonly_paths = ["/srv"]
hidden_paths = ["~/.ssh"]
level = "best-effort"
[security.resources]
max_memory_mb = 512
max_cpu_time_seconds = 60
max_subprocesses = 10
max_open_files = 256

[tools.custom.word-count]
type = "wasm"
module = "skill.wasm"
[tools.custom.word-count.capabilities]
network = false
"#,
    );
    assert_eq!(config.runtime.minimum_isolation, MinimumIsolation::Sandbox);
    assert_eq!(config.runtime.wasm.engine, WasmEngineKind::Wasmer);
    assert_eq!(config.security.sandbox.level, SandboxLevel::BestEffort);
    assert_eq!(config.security.resources.max_open_files, Some(256));
    assert_eq!(config.tools.custom["word-count"].kind, ToolKind::Wasm);
}

#[test]
fn output_can_be_bounded_by_a_size() {
    let config = read("[runtime]\nmax_output_bytes = \"1.5m\"\n");
    assert_eq!(config.runtime.max_output_bytes, 1_572_864);
}
