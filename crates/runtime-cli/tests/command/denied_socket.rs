//! An engine whose socket the user may not use: `auto` goes on and says why, `docker` is refused
//! with what to do.

#![cfg(feature = "docker")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use crate::stage::{PRX, is_root, outcome, program};

/// A user that is nobody on every system.
const NOBODY: u32 = 65534;

/// A socket that accepts, and nobody but root may connect to.
struct Engine {
    directory: tempfile::TempDir,
    _listener: UnixListener,
}

impl Engine {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), Permissions::from_mode(0o755)).unwrap();
        let socket = directory.path().join("docker.sock");
        let listener = UnixListener::bind(&socket).unwrap();
        fs::set_permissions(&socket, Permissions::from_mode(0o000)).unwrap();
        Self {
            directory,
            _listener: listener,
        }
    }

    fn socket(&self) -> PathBuf {
        self.directory.path().join("docker.sock")
    }

    /// `prx-runtime` as somebody who is not root.
    fn prx(&self, args: &[&str]) -> Command {
        let config = self.directory.path().join("c.toml");
        let text = format!("[runtime.docker]\nsocket = {:?}\n", self.socket());
        fs::write(&config, text).unwrap();
        let mut command = if is_root() {
            // The tests' own may lie in a home that nobody else may look into.
            let copy = self.directory.path().join("prx-runtime");
            fs::copy(PRX, &copy).unwrap();
            let mut command = program(copy);
            command.uid(NOBODY).gid(NOBODY);
            command
        } else {
            program(PRX)
        };
        command
            .arg("--config")
            .arg(config)
            .args(args)
            .env("HOME", self.directory.path())
            .env("RUST_LOG", "info")
            .current_dir("/");
        command
    }
}

#[test]
fn docker_says_who_may_use_it() {
    let engine = Engine::new();
    let outcome = outcome(&mut engine.prx(&["run", "--backend", "docker", "--", "true", "x"]));
    assert_eq!(outcome.code, Some(125), "{outcome:?}");
    let socket = engine.socket();
    for part in [socket.to_str().unwrap(), "ermission", "hint"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
}

#[test]
fn auto_goes_on_and_says_why() {
    let engine = Engine::new();
    let outcome = outcome(&mut engine.prx(&["run", "--backend", "auto", "--", "echo", "on"]));
    assert_eq!(
        (outcome.code, outcome.stdout.as_str()),
        (Some(0), "on\n"),
        "{outcome:?}"
    );
    for part in ["backend chosen by auto", "docker.sock", "ermission"] {
        assert!(outcome.stderr.contains(part), "{part}: {outcome:?}");
    }
}
