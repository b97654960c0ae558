//! What the scenarios share: runtimes, processes that can be told from all others, waiting for
//! facts, and processes of one's own for what concerns a whole process.

use std::ffi::OsString;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use prx_runtime_core::config::Config;
use prx_runtime_native::NativeRuntime;

/// How long a fact may take to come true on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);
/// Far more than any scenario needs.
pub(crate) const LONG: Duration = Duration::from_secs(60);
/// Set in the process of a test that runs [`alone`].
const ALONE: &str = "PRX_TEST_ALONE";

/// A native runtime by the defaults.
pub(crate) fn native() -> NativeRuntime {
    native_by("")
}

/// A native runtime by the text of a configuration.
pub(crate) fn native_by(config: &str) -> NativeRuntime {
    let config = Config::from_toml_str(config, "test.toml").unwrap();
    NativeRuntime::new(&config).unwrap()
}

/// Runs `scenario` on a current-thread and on a multi-thread runtime.
pub(crate) fn on_both_runtimes<F: Future>(scenario: impl Fn() -> F) {
    for runtime in [current_thread(), multi_thread()] {
        runtime.block_on(scenario());
    }
}

pub(crate) fn current_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap()
}

pub(crate) fn multi_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .unwrap()
}

/// A process of the test itself, started past the runtime.
#[expect(
    clippy::disallowed_methods,
    reason = "what is tested here is how the runtime treats processes that are not its own"
)]
pub(crate) fn process(program: impl AsRef<Path>) -> Command {
    Command::new(program.as_ref())
}

/// A `sleep` that no other test has, found by its very arguments whatever became of its
/// environment, its group and its parents.
#[derive(Debug)]
pub(crate) struct Sleeper {
    seconds: String,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            seconds: format!("3600.{:07}{number:04}", std::process::id()),
        }
    }

    /// The command line that starts it.
    pub(crate) fn line(&self) -> String {
        format!("sleep {}", self.seconds)
    }

    /// The pids of those that live.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let wanted = format!("sleep\0{}\0", self.seconds).into_bytes();
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                // A zombie has no arguments any more.
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|args| args == wanted)
            })
            .collect()
    }

    pub(crate) fn lives(&self) -> bool {
        !self.pids().is_empty()
    }

    /// Waits, with an awake runtime, until it lives.
    pub(crate) async fn is_up(&self) {
        until("the sleeper is up", || self.lives()).await;
    }

    /// Waits, with an awake runtime, until it does not live.
    pub(crate) async fn is_gone(&self) {
        until("the sleeper is gone", || !self.lives()).await;
    }
}

/// Waits until `fact` holds.
pub(crate) async fn until(what: &str, fact: impl Fn() -> bool) {
    let begin = Instant::now();
    while !fact() {
        assert!(begin.elapsed() < PATIENCE, "it never came true that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits until `fact` holds, without a runtime.
pub(crate) fn until_blocking(what: &str, fact: impl Fn() -> bool) {
    let begin = Instant::now();
    while !fact() {
        assert!(begin.elapsed() < PATIENCE, "it never came true that {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Children of this process that nobody has waited for.
pub(crate) fn zombies() -> Vec<u32> {
    let own = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid: &u32| {
            let stat = std::fs::read(format!("/proc/{pid}/stat")).unwrap_or_default();
            let stat = String::from_utf8_lossy(&stat);
            let Some((_, fields)) = stat.rsplit_once(") ") else {
                return false;
            };
            let mut fields = fields.split(' ');
            fields.next() == Some("Z")
                && fields.next().and_then(|parent| parent.parse().ok()) == Some(own)
        })
        .collect()
}

/// Runs `body` in a process in which nothing else runs, for what concerns a whole process. `test`
/// is the very test that calls this.
pub(crate) fn alone<T>(test: T, body: impl FnOnce()) {
    alone_under(&[], test, body);
}

/// As [`alone`], with the process started by `launcher`, a program and its arguments.
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

/// Whether this process may do what only root may.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// An executable file with this text.
pub(crate) fn script(directory: &Path, name: &str, text: &str) -> PathBuf {
    use std::os::unix::fs::PermissionsExt;
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    path
}
