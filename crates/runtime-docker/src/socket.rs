//! Where the engine listens.

use std::env;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Result};

/// An address of an engine.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Endpoint {
    /// A unix socket.
    Unix(PathBuf),
    /// `host:port`, unencrypted.
    Tcp(String),
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unix(path) => write!(f, "unix://{}", path.display()),
            Self::Tcp(address) => write!(f, "tcp://{address}"),
        }
    }
}

/// The port where an engine listens unencrypted, where an address names none.
const TCP_PORT: u16 = 2375;

/// The addresses to be tried, in order, and where they come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Candidates {
    pub(crate) endpoints: Vec<Endpoint>,
    /// What the user would have to change.
    pub(crate) source: &'static str,
}

impl Candidates {
    /// `runtime.docker.socket` where it is set, else `DOCKER_HOST`, else every place where an
    /// engine is known to listen. Connects to nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for an address that cannot be meant or needs encryption.
    pub(crate) fn new(configured: Option<&str>) -> Result<Self> {
        Self::from_environment(configured, |name| env::var_os(name))
    }

    fn from_environment(
        configured: Option<&str>,
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Self> {
        let only = |text: &str, source| {
            Ok(Self {
                endpoints: vec![parse(text, source)?],
                source,
            })
        };
        if let Some(socket) = configured {
            return only(socket, "runtime.docker.socket");
        }
        if let Some(host) = variable("DOCKER_HOST").filter(|host| !host.is_empty()) {
            if variable("DOCKER_TLS_VERIFY").is_some_and(|verify| !verify.is_empty()) {
                return Err(encrypted("DOCKER_TLS_VERIFY"));
            }
            return only(&host.to_string_lossy(), "DOCKER_HOST");
        }
        let mut paths = vec![PathBuf::from("/var/run/docker.sock")];
        let runtime = variable("XDG_RUNTIME_DIR").map(PathBuf::from);
        let home = variable("HOME").map(PathBuf::from);
        paths.extend(runtime.as_deref().map(|dir| dir.join("docker.sock")));
        paths.extend(
            home.as_deref()
                .map(|dir| dir.join(".docker/run/docker.sock")),
        );
        paths.extend(runtime.as_deref().map(|dir| dir.join("podman/podman.sock")));
        paths.push("/run/podman/podman.sock".into());
        Ok(Self {
            endpoints: paths
                .into_iter()
                .filter(|path| path.is_absolute())
                .map(Endpoint::Unix)
                .collect(),
            source: "the usual places",
        })
    }

    /// The unix sockets among them.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &Path> {
        self.endpoints.iter().filter_map(|endpoint| match endpoint {
            Endpoint::Unix(path) => Some(path.as_path()),
            Endpoint::Tcp(_) => None,
        })
    }
}

fn parse(text: &str, source: &str) -> Result<Endpoint> {
    let invalid = |problem: &str| {
        Error::new(
            ErrorKind::InvalidConfig,
            format!("{source}: `{text}` {problem}"),
        )
        .with_hint("give an absolute path, unix:///path or tcp://host:port")
    };
    let (scheme, rest) = text.split_once("://").unwrap_or(("unix", text));
    match scheme {
        "unix" if rest.starts_with('/') => Ok(Endpoint::Unix(rest.into())),
        "unix" => Err(invalid("is no absolute path")),
        "tcp" | "http" => {
            let address = rest.trim_end_matches('/');
            if address.is_empty() || address.contains(['/', '@', '?', '#']) {
                return Err(invalid("is no host and port"));
            }
            let bare = address
                .rsplit_once(':')
                .is_none_or(|(_, port)| port.ends_with(']'));
            let address = if bare {
                format!("{address}:{TCP_PORT}")
            } else {
                address.to_owned()
            };
            let port = address
                .rsplit_once(':')
                .map(|(_, port)| port.parse::<u16>());
            if !matches!(port, Some(Ok(1..))) {
                return Err(invalid("has no valid port"));
            }
            Ok(Endpoint::Tcp(address))
        }
        "https" => Err(encrypted(source)),
        "ssh" => Err(invalid("needs ssh, which this backend does not start")
            .with_hint("forward the socket: ssh -L /path/docker.sock:/var/run/docker.sock host")),
        _ => Err(invalid("has a scheme that this backend does not speak")),
    }
}

fn encrypted(source: &str) -> Error {
    Error::new(
        ErrorKind::InvalidConfig,
        format!("{source} asks for TLS, which this backend does not speak"),
    )
    .with_hint("forward the engine's socket over ssh and name the forwarded socket")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(configured: Option<&str>, variables: &[(&str, &str)]) -> Result<Candidates> {
        Candidates::from_environment(configured, |name| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| value.into())
        })
    }

    #[test]
    fn every_way_to_write_an_address() {
        for (text, endpoint) in [
            ("/x/docker.sock", Endpoint::Unix("/x/docker.sock".into())),
            (
                "unix:///x/docker.sock",
                Endpoint::Unix("/x/docker.sock".into()),
            ),
            (
                "tcp://127.0.0.1:2375",
                Endpoint::Tcp("127.0.0.1:2375".into()),
            ),
            ("http://engine:1/", Endpoint::Tcp("engine:1".into())),
            ("tcp://engine", Endpoint::Tcp("engine:2375".into())),
            ("tcp://[::1]", Endpoint::Tcp("[::1]:2375".into())),
            ("tcp://[::1]:99", Endpoint::Tcp("[::1]:99".into())),
        ] {
            assert_eq!(
                from(Some(text), &[]).unwrap().endpoints,
                [endpoint],
                "{text}"
            );
        }
    }

    #[test]
    fn what_cannot_be_meant_is_named() {
        for (text, problem) in [
            ("docker.sock", "`docker.sock` is no absolute path"),
            ("tcp://", "is no host and port"),
            ("tcp://host:port", "has no valid port"),
            ("tcp://host:0", "has no valid port"),
            ("https://host:2376", "asks for TLS"),
            ("ssh://host", "needs ssh"),
            ("npipe:////./pipe/docker_engine", "has a scheme"),
        ] {
            let error = from(Some(text), &[]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.to_string().contains(problem), "{error}");
        }
    }

    #[test]
    fn the_configuration_comes_before_the_environment() {
        let host = [
            ("DOCKER_HOST", "tcp://engine:1"),
            ("XDG_RUNTIME_DIR", "/run/user/1"),
        ];
        assert_eq!(
            from(Some("/x"), &host).unwrap().source,
            "runtime.docker.socket"
        );
        let candidates = from(None, &host).unwrap();
        assert_eq!(candidates.endpoints, [Endpoint::Tcp("engine:1".into())]);
        assert_eq!(candidates.source, "DOCKER_HOST");
    }

    #[test]
    fn without_either_the_usual_places_are_searched() {
        let candidates = from(None, &[("XDG_RUNTIME_DIR", "/run/user/1"), ("HOME", "/h")]).unwrap();
        let shown: Vec<_> = candidates
            .endpoints
            .iter()
            .map(Endpoint::to_string)
            .collect();
        assert_eq!(
            shown,
            [
                "unix:///var/run/docker.sock",
                "unix:///run/user/1/docker.sock",
                "unix:///h/.docker/run/docker.sock",
                "unix:///run/user/1/podman/podman.sock",
                "unix:///run/podman/podman.sock",
            ]
        );
    }
}
