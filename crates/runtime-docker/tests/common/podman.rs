//! A Podman of the tests' own: its service, with folders and a socket that nobody else uses.

use std::io;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::apart::own_mounts;

/// Its locks are files: those in shared memory would be the machine's.
const SETTINGS: &str = "\
[engine]
cgroup_manager = \"cgroupfs\"
events_logger = \"none\"
lock_type = \"file\"
";

/// The service. Dropping it ends it.
pub(crate) struct Podman {
    dir: TempDir,
    process: Child,
}

impl Podman {
    /// Starts one; what its log says where it does not come up.
    #[expect(clippy::disallowed_methods, reason = "an engine of our own")]
    ///
    /// Where `hidden` is, it sees an empty directory: for root alone.
    pub(crate) fn start(hidden: Option<&Path>) -> io::Result<Self> {
        let dir = tempfile::Builder::new().prefix("prx-podman-").tempdir()?;
        let settings = dir.path().join("containers.conf");
        std::fs::write(&settings, SETTINGS)?;
        let log = std::fs::File::create(dir.path().join("log"))?;
        // Root's mounts are its own, and gone along with it; other users have them so anyway.
        let mut words = if rustix::process::geteuid().is_root() {
            own_mounts(hidden)
        } else {
            Vec::new()
        };
        // A test that is killed leaves no service.
        words.extend(["setpriv", "--pdeathsig", "TERM", "podman"].map(Into::into));
        let process = Command::new(&words[0])
            .args(&words[1..])
            .arg("--root")
            .arg(dir.path().join("root"))
            .arg("--runroot")
            .arg(dir.path().join("run"))
            .arg("--tmpdir")
            .arg(dir.path().join("tmp"))
            .args(["system", "service", "--time=0"])
            .arg(address(dir.path()))
            .env("CONTAINERS_CONF", settings)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut podman = Self { dir, process };
        // Not for how long it takes: the bound only ends a broken test.
        for _ in 0..600 {
            if podman.ask(&["images"]).is_ok() {
                return Ok(podman);
            }
            if podman.process.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        let log = std::fs::read_to_string(podman.dir.path().join("log"))?;
        Err(io::Error::other(format!("podman does not serve: {log}")))
    }

    /// As `runtime.docker.socket` names it.
    pub(crate) fn address(&self) -> String {
        address(self.dir.path())
    }

    /// Asks it by its own tool.
    pub(crate) fn ask(&self, args: &[&str]) -> Result<String, String> {
        crate::images::ask(&["podman", "--url", &self.address()], args)
    }

    pub(crate) fn make(&self, image: &crate::images::TestImage) -> io::Result<()> {
        image.make_with(&["podman", "--url", &self.address()])
    }
}

fn address(dir: &Path) -> String {
    format!("unix://{}/engine.sock", dir.display())
}

impl Drop for Podman {
    fn drop(&mut self) {
        let _ = kill_process(Pid::from_child(&self.process), Signal::TERM);
        let _ = self.process.wait();
    }
}

/// Whether the program is here.
#[expect(clippy::disallowed_methods, reason = "an engine of our own")]
pub(crate) fn is_installed() -> bool {
    Command::new("podman")
        .arg("--version")
        .stdin(Stdio::null())
        .output()
        .is_ok_and(|output| output.status.success())
}
