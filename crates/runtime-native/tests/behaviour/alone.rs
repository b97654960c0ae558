//! Processes of one's own, for what concerns a whole process.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

/// Set in the process of a test that runs [`alone_under`] a launcher or none.
const ALONE: &str = "PRX_TEST_ALONE";

/// A process of the test itself, started past the runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "what is tested here is how the runtime treats processes that are not its own"
)]
pub(crate) fn process(program: impl AsRef<Path>) -> Command {
    Command::new(program.as_ref())
}

/// Runs `body` in a process in which nothing else runs, for what concerns a whole process. `test`
/// is the very test that calls this; `launcher` starts the process, a program and its arguments.
pub(crate) fn alone_under<T>(launcher: &[&str], _test: T, body: impl FnOnce()) {
    if std::env::var_os(ALONE).is_some() {
        return body();
    }
    // `behaviour::file::test`, which the harness calls `file::test`.
    let (_, name) = std::any::type_name::<T>().split_once("::").unwrap();
    let exe = std::env::current_exe().unwrap();
    let mut words: Vec<OsString> = launcher.iter().map(OsString::from).collect();
    words.push(exe.into());
    words.extend(["--exact", name, "--nocapture", "--test-threads=1"].map(OsString::from));
    let output = process(&words[0])
        .args(&words[1..])
        .env(ALONE, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("1 passed"),
        "{name}, alone: {}\n{said}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
}
