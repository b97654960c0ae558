//! A Podman of the tests' own: its service, with folders and a socket that nobody else uses.

use std::ffi::OsString;
use std::io;
use std::os::unix::fs::chown;
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
    ///
    /// Where `hidden` is, it sees an empty directory: for root alone.
    pub(crate) fn start(hidden: Option<&Path>) -> io::Result<Self> {
        // Root's mounts are its own, and gone along with it; other users have them so anyway.
        let words = if rustix::process::geteuid().is_root() {
            own_mounts(hidden)
        } else {
            Vec::new()
        };
        Self::launch(directory()?, words, &[])
    }

    #[expect(clippy::disallowed_methods, reason = "an engine of our own")]
    fn launch(dir: TempDir, mut words: Vec<OsString>, options: &[&str]) -> io::Result<Self> {
        let settings = dir.path().join("containers.conf");
        std::fs::write(&settings, SETTINGS)?;
        let log = std::fs::File::create(dir.path().join("log"))?;
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
            .args(options)
            .args(["system", "service", "--time=0"])
            .arg(address(dir.path()))
            .env("CONTAINERS_CONF", settings)
            .env("HOME", dir.path())
            .env("XDG_RUNTIME_DIR", dir.path())
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

    /// Starts one that another user than root runs, without root's rights. For root alone.
    pub(crate) fn start_rootless(user: u32) -> io::Result<Self> {
        let dir = directory()?;
        chown(dir.path(), Some(user), Some(user))?;
        let number = user.to_string();
        let words = [
            "setpriv",
            "--reuid",
            &number,
            "--regid",
            &number,
            "--clear-groups",
        ];
        // What other drivers need, not every kernel gives to such a user.
        Self::launch(
            dir,
            words.map(Into::into).into(),
            &["--storage-driver", "vfs"],
        )
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

fn directory() -> io::Result<TempDir> {
    tempfile::Builder::new().prefix("prx-podman-").tempdir()
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
