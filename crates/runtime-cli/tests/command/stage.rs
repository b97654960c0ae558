//! What the scenarios share: the command without the configuration of whoever runs the tests, and
//! waiting for facts.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) use crate::alone::{alone_under, process};
pub(crate) use crate::sleeper::Sleeper;

/// How long a fact may take to come true on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);

/// The binary under test.
pub(crate) const PRX: &str = env!("CARGO_BIN_EXE_prx-runtime");

/// `program` in an environment in which no configuration of the user is found, and quiet about
/// what dead hosts of other tests left.
pub(crate) fn program(program: impl AsRef<Path>) -> Command {
    let mut command = process(program);
    command
        .env("XDG_CONFIG_HOME", "/nonexistent")
        .env_remove("PRX_CONFIG")
        .env("RUST_LOG", "error")
        .stdin(Stdio::null());
    command
}

/// `prx-runtime` with these arguments.
pub(crate) fn prx<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = program(PRX);
    command.args(args);
    command
}

/// `prx-runtime run --backend native` with these arguments.
pub(crate) fn prx_run<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let mut command = prx(["run", "--backend", "native"]);
    command.args(args);
    command
}

/// The same, with these options of `env` in front, such as `--ignore-signal=HUP`.
pub(crate) fn prx_run_by_env<'a>(
    options: impl IntoIterator<Item = &'a str>,
    args: impl IntoIterator<Item = &'a str>,
) -> Command {
    let mut command = program("env");
    command.args(options).arg(PRX);
    command.args(["run", "--backend", "native"]).args(args);
    command
}

/// How a command went.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

/// Runs it to its end.
pub(crate) fn outcome(command: &mut Command) -> Outcome {
    command.output().unwrap().into()
}

/// Starts it with pipes for what it says.
pub(crate) fn start(command: &mut Command) -> Child {
    command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Sends it a signal by its name.
pub(crate) fn signal(child: &Child, name: &str) {
    let status = process("kill")
        .args([&format!("-{name}"), &child.id().to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Waits until `fact` holds.
pub(crate) fn until(what: &str, fact: impl Fn() -> bool) {
    let begin = Instant::now();
    while !fact() {
        assert!(begin.elapsed() < PATIENCE, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    // SAFETY: the call has no preconditions.
    unsafe { libc::geteuid() == 0 }
}
