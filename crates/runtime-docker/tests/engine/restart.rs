//! An engine that stops while a command runs, and comes again. A private one, with folders and a
//! socket of its own.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use prx_runtime_core::config::Config;
use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter, Stdin};
use prx_runtime_docker::DockerRuntime;
use rustix::process::{Pid, Signal, kill_process};

use crate::images::{BUSYBOX, docker};
use crate::support::{eventually, image, need_engine};

/// An engine of our own. Dropping it ends it.
struct PrivateEngine {
    dir: PathBuf,
    process: Child,
}

impl PrivateEngine {
    #[expect(clippy::disallowed_methods, reason = "an engine that may be stopped")]
    fn start(dir: &Path) -> Option<Self> {
        let driver = docker(&["info", "--format", "{{.Driver}}"]).ok()?;
        let log = std::fs::File::create(dir.join("log")).ok()?;
        // In place of the machine's own configuration.
        let settings = dir.join("daemon.json");
        std::fs::write(&settings, "{}").ok()?;
        // In a network of its own: an engine without a bridge removes that of the machine.
        let process = Command::new("unshare")
            .args(["--net", "dockerd"])
            .arg("--config-file")
            .arg(settings)
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

    fn address(&self) -> String {
        format!("unix://{}/engine.sock", self.dir.display())
    }

    async fn is_up(&self) {
        let address = self.address();
        eventually("the private engine answers", || {
            docker(&["-H", &address, "version"]).is_ok()
        })
        .await;
    }

    fn stop(&mut self, signal: Signal) {
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

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_stops_and_comes_again() {
    need_engine!();
    if !rustix::process::geteuid().is_root() {
        crate::support::skipped("an engine of our own needs root");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(mut engine) = PrivateEngine::start(dir.path()) else {
        crate::support::skipped("there is no dockerd here");
        return;
    };
    engine.is_up().await;
    // The image, out of the common engine into this one.
    let tar = dir.path().join("image.tar");
    docker(&["save", "-o", tar.to_str().unwrap(), image(&BUSYBOX)]).unwrap();
    docker(&["-H", &engine.address(), "load", "-i", tar.to_str().unwrap()]).unwrap();

    let mut config = Config::default();
    config.runtime.docker.image = BUSYBOX.name.to_owned();
    config.runtime.docker.socket = Some(engine.address());
    let runtime = DockerRuntime::new(&config).unwrap();
    let work = tempfile::tempdir().unwrap();
    let echo = || {
        ExecutionRequest::program("echo")
            .arg("fine")
            .working_dir(work.path())
    };
    assert_eq!(
        runtime.run(echo()).await.unwrap().stdout.as_bytes(),
        b"fine\n"
    );

    let request = ExecutionRequest::program("cat")
        .stdin(Stdin::Piped)
        .working_dir(work.path());
    let mut execution = runtime.spawn(request).await.unwrap();
    let stopped = Instant::now();
    engine.stop(Signal::KILL);
    let error = execution.wait().await.expect_err("the engine is gone");
    assert_eq!(error.kind(), ErrorKind::Engine, "{error}");
    assert!(
        stopped.elapsed() < Duration::from_secs(30),
        "{:?}",
        stopped.elapsed()
    );
    let error = runtime.run(echo()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
    assert!(!runtime.is_available().await);

    // An engine that was killed leaves notes on processes that are gone.
    for note in ["pid", "exec/containerd/containerd.pid"] {
        let _ = std::fs::remove_file(dir.path().join(note));
    }
    engine = PrivateEngine::start(dir.path()).unwrap();
    engine.is_up().await;
    assert!(runtime.is_available().await);
    assert_eq!(
        runtime.run(echo()).await.unwrap().stdout.as_bytes(),
        b"fine\n"
    );
    let address = engine.address();
    eventually("what it left behind is gone", || {
        docker(&["-H", &address, "ps", "-aq"]).is_ok_and(|ids| ids.is_empty())
    })
    .await;
}
