//! An engine of our own, with folders and a socket that nobody else uses.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use prx_runtime_core::config::Config;
use rustix::process::{Pid, Signal, kill_process};

use crate::apart::own_mounts;
use crate::images::{BUSYBOX, docker};
use crate::support::{eventually, image};

/// Dropping it ends it.
pub(crate) struct PrivateEngine {
    dir: PathBuf,
    process: Child,
}

impl PrivateEngine {
    /// Starts one in `dir` that sees an empty directory where `hidden` is. `None`, with the reason
    /// printed, where that cannot be done here.
    pub(crate) fn start(dir: &Path, settings: &str, hidden: Option<&Path>) -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            crate::support::skipped("an engine of our own needs root");
            return None;
        }
        let started = Self::spawn(dir, settings, hidden);
        if started.is_none() {
            crate::support::skipped("there is no dockerd here");
        }
        started
    }

    #[expect(clippy::disallowed_methods, reason = "an engine that may be stopped")]
    fn spawn(dir: &Path, settings: &str, hidden: Option<&Path>) -> Option<Self> {
        let driver = docker(&["info", "--format", "{{.Driver}}"]).ok()?;
        let log = std::fs::File::create(dir.join("log")).ok()?;
        // In place of the machine's own configuration.
        let file = dir.join("daemon.json");
        std::fs::write(&file, settings).ok()?;
        let words = own_mounts(hidden);
        let process = Command::new(&words[0])
            .args(&words[1..])
            // In a network of its own: an engine without a bridge removes that of the machine.
            .args(["unshare", "--net", "dockerd"])
            .arg("--config-file")
            .arg(file)
            .arg("--host")
            .arg(format!("unix://{}/engine.sock", dir.display()))
            .arg("--data-root")
            .arg(dir.join("data"))
            .arg("--exec-root")
            .arg(dir.join("exec"))
            .arg("--pidfile")
            .arg(dir.join("pid"))
            .args(["--bridge", "none", "--iptables=false", "--ip6tables=false"])
            .args([
                "--containerd-namespace",
                "prx-test",
                "--containerd-plugins-namespace",
                "prx-test-plugins",
            ])
            .args(["--storage-driver", &driver])
            .stdin(Stdio::null())
            .stdout(log.try_clone().ok()?)
            .stderr(log)
            .spawn()
            .ok()?;
        Some(Self {
            dir: dir.to_owned(),
            process,
        })
    }

    pub(crate) fn address(&self) -> String {
        format!("unix://{}/engine.sock", self.dir.display())
    }

    /// Asks it by the engine's own tool.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<String, String> {
        let address = self.address();
        docker(&[&["-H", &address], args].concat())
    }

    pub(crate) async fn is_up(&self) {
        eventually("the private engine answers", || {
            self.ask(&["version"]).is_ok()
        })
        .await;
    }

    /// The common image, out of the common engine into this one; and a configuration for it.
    pub(crate) fn equip(&self) -> Config {
        let tar = self.dir.join("image.tar");
        let tar = tar.to_str().unwrap();
        docker(&["save", "-o", tar, image(&BUSYBOX)]).unwrap();
        self.ask(&["load", "-i", tar]).unwrap();
        let mut config = Config::default();
        config.runtime.docker.image = BUSYBOX.name.to_owned();
        config.runtime.docker.socket = Some(self.address());
        config
    }

    pub(crate) fn stop(&mut self, signal: Signal) {
        let _ = kill_process(Pid::from_child(&self.process), signal);
        self.process.wait().unwrap();
    }
}

impl Drop for PrivateEngine {
    fn drop(&mut self) {
        if self.process.try_wait().is_ok_and(|status| status.is_none()) {
            self.stop(Signal::TERM);
        }
    }
}
