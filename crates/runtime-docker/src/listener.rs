//! Who listens on an engine's socket, as the kernel of this machine says.

use std::fs;

use tokio::net::UnixStream;

/// The programs that serve a container engine on a socket that they opened themselves.
const ENGINES: [&str; 2] = ["dockerd", "podman"];
/// What opens sockets in place of an engine, and hands them on when it starts it.
const ACTIVATOR: &str = "systemd";

/// The process that opened a socket, when it did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listener {
    /// The user who ran it.
    pub(crate) user: u32,
    /// The name of its program, where it can still be seen.
    program: Option<String>,
}

impl Listener {
    /// Asks the kernel about the other end of a connection.
    pub(crate) fn of(connection: &UnixStream) -> Option<Self> {
        let peer = connection.peer_cred().ok()?;
        let program = peer
            .pid()
            .filter(|pid| *pid > 0)
            .and_then(|pid| fs::read_to_string(format!("/proc/{pid}/comm")).ok());
        Some(Self {
            user: peer.uid(),
            program: program.map(|name| name.trim_end().to_owned()),
        })
    }

    /// Whether it is an engine that runs here. What forwards a socket to another machine (`ssh -L`)
    /// is none, nor is a process that we do not see.
    pub(crate) fn is_engine(&self) -> bool {
        self.program
            .as_deref()
            .is_some_and(|name| name == ACTIVATOR || ENGINES.contains(&name))
    }
}

#[cfg(test)]
impl Listener {
    pub(crate) fn named(program: &str) -> Self {
        Self {
            user: 0,
            program: Some(program.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use tokio::net::UnixListener;

    #[test]
    fn what_forwards_a_socket_is_no_engine() {
        for (program, expected) in [
            ("dockerd", true),
            ("podman", true),
            ("systemd", true),
            ("ssh", false),
            ("socat", false),
        ] {
            assert_eq!(Listener::named(program).is_engine(), expected, "{program}");
        }
    }

    #[tokio::test]
    async fn the_kernel_says_who_listens() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let _socket = UnixListener::bind(&path).unwrap();
        let connection = UnixStream::connect(&path).await.unwrap();
        let listener = Listener::of(&connection).unwrap();
        assert_eq!(listener.user, rustix::process::geteuid().as_raw());
        let own = fs::read_to_string("/proc/self/comm").unwrap();
        assert_eq!(listener.program.as_deref(), Some(own.trim_end()));
        assert!(!listener.is_engine());
    }
}
