//! What the scenarios share: the engine, images made on the spot, and the engine as others see it.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter};
use prx_runtime_docker::DockerRuntime;

/// A command line of the engine's own tool. Its standard output, or why it failed.
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the engine with its own tool"
)]
pub(crate) fn docker(args: &[&str]) -> Result<String, String> {
    let output = Command::new("docker")
        .args(args)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("docker: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Whether an engine answers. Prints why the test is skipped where none does.
///
/// # Panics
///
/// Where none does and `PRX_REQUIRE_BACKENDS` asks for one.
pub(crate) fn engine() -> bool {
    static ANSWER: OnceLock<Result<String, String>> = OnceLock::new();
    let answer = ANSWER.get_or_init(|| docker(&["version", "--format", "{{.Server.Version}}"]));
    let Err(reason) = answer else { return true };
    let required = std::env::var("PRX_REQUIRE_BACKENDS").unwrap_or_default();
    assert!(
        !required
            .split(',')
            .any(|backend| backend.trim() == "docker"),
        "the docker backend is required and no engine answers: {reason}"
    );
    println!("skipped: no engine answers: {reason}");
    false
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

/// What the test image has besides the shell: applets of busybox.
const APPLETS: [&str; 44] = [
    "ash", "awk", "base64", "cat", "chmod", "chown", "cp", "cut", "date", "dd", "df", "echo",
    "env", "false", "find", "grep", "head", "id", "ip", "kill", "ln", "ls", "mkdir", "mknod",
    "mount", "mv", "nc", "printf", "ps", "pwd", "readlink", "rm", "seq", "setsid", "sh", "sleep",
    "stat", "tail", "tee", "test", "touch", "true", "wc", "yes",
];

/// The image of most tests: busybox.
pub(crate) const BUSYBOX: &str = "prx-runtime-test/busybox:2";

/// An image that is busybox with `changes` (`ENV A=b`) and what `extra` puts into its root.
pub(crate) fn image(name: &str, changes: &[&str], extra: impl FnOnce(&Path)) -> String {
    let name = format!("prx-runtime-test/{name}:2");
    if docker(&["image", "inspect", &name]).is_ok() {
        return name;
    }
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("bin");
    for dir in ["bin", "etc", "root", "tmp"] {
        std::fs::create_dir(root.path().join(dir)).unwrap();
    }
    std::fs::copy("/bin/busybox", bin.join("busybox")).expect("busybox-static is installed");
    for applet in APPLETS {
        std::os::unix::fs::symlink("busybox", bin.join(applet)).unwrap();
    }
    std::fs::write(
        root.path().join("etc/passwd"),
        "root:x:0:0::/root:/bin/sh\n",
    )
    .unwrap();
    extra(root.path());
    import(root.path(), changes, &name);
    name
}

/// An image of the files below `root`.
#[expect(
    clippy::disallowed_methods,
    reason = "tests look at the engine with its own tool"
)]
pub(crate) fn import(root: &Path, changes: &[&str], name: &str) {
    let tar = Command::new("tar")
        .args(["-C"])
        .arg(root)
        .args(["--owner=0", "--group=0", "-c", "."])
        .output()
        .unwrap();
    assert!(tar.status.success());
    let mut command = Command::new("docker");
    command.arg("import");
    for change in changes {
        command.args(["--change", change]);
    }
    let mut child = command
        .args(["-", name])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&tar.stdout).unwrap();
    assert!(child.wait().unwrap().success());
}

/// The common image, made where it is missing.
pub(crate) fn busybox() -> String {
    static MADE: OnceLock<String> = OnceLock::new();
    MADE.get_or_init(|| image("busybox", &[], |_| {})).clone()
}

/// A configuration with the common image and these lines in `[runtime.docker]`.
pub(crate) fn config(lines: &str) -> Config {
    let mut config =
        Config::from_toml_str(&format!("[runtime.docker]\n{lines}\n"), "test").unwrap();
    if !lines.contains("image =") {
        config.runtime.docker.image = busybox();
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
