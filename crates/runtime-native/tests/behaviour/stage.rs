//! What the scenarios share: runtimes, and waiting for facts.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use prx_runtime_core::config::Config;
use prx_runtime_native::NativeRuntime;

pub(crate) use crate::alone::{alone_under, process};
pub(crate) use crate::sleeper::Sleeper;

/// How long a fact may take to come true on a machine that is busy with other things.
const PATIENCE: Duration = Duration::from_secs(20);
/// Far more than any scenario needs.
pub(crate) const LONG: Duration = Duration::from_secs(60);

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

/// Runs `body` in a process in which nothing else runs.
pub(crate) fn alone<T>(test: T, body: impl FnOnce()) {
    alone_under(&[], test, body);
}

impl Sleeper {
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
