//! A registry on loopback.

use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::images::{BUSYBOX, docker};

/// How long it may take to listen on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);
/// `ana:swordfish`, as htpasswd keeps it.
const HTPASSWD: &str = "ana:$2a$05$abcdefghijklmnopqrstuupWDwJQeCHYIBQy8WvkVB6ImhZ476YYy\n";

/// Debian's registry.
pub(crate) struct Registry {
    process: Child,
    pub(crate) port: u16,
}

impl Registry {
    #[expect(
        clippy::disallowed_methods,
        clippy::print_stdout,
        reason = "a registry to pull from; a skip states its reason"
    )]
    /// One of its own in `dir`. `None`, with the reason printed, where it is not installed.
    pub(crate) fn start(dir: &Path, with_password: bool) -> Option<Self> {
        let port = TcpListener::bind("127.0.0.1:0")
            .unwrap()
            .local_addr()
            .unwrap()
            .port();
        let auth = if with_password {
            std::fs::write(dir.join("htpasswd"), HTPASSWD).unwrap();
            format!(
                "auth:\n  htpasswd:\n    realm: test\n    path: {}/htpasswd\n",
                dir.display()
            )
        } else {
            String::new()
        };
        let config = format!(
            "version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: {}/storage\n\
             http:\n  addr: 127.0.0.1:{port}\n{auth}",
            dir.display()
        );
        let path = dir.join(format!("{port}.yml"));
        std::fs::write(&path, config).unwrap();
        let spawned = Command::new("docker-registry")
            .arg("serve")
            .arg(&path)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = spawned else {
            println!("skipped: there is no docker-registry here");
            return None;
        };
        let begin = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(begin.elapsed() < PATIENCE, "the registry does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
        Some(Self { process, port })
    }

    /// The name that the common image has there.
    pub(crate) fn name(&self, name: &str) -> String {
        format!("127.0.0.1:{}/{name}:1", self.port)
    }

    /// Has it have the common image, which the engine then has under its own name only.
    pub(crate) fn push(&self, name: &str) {
        let name = self.name(name);
        docker(&["tag", BUSYBOX.make().unwrap(), &name]).unwrap();
        docker(&["push", &name]).unwrap();
        docker(&["rmi", &name]).unwrap();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
