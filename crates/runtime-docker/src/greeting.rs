//! Who answers on a socket: told by the headers with which an engine answers a ping.

use hyper::header::HeaderMap;
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::engine::Client;
use crate::init::Init;
use crate::socket::Endpoint;

/// What an engine says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Greeting {
    /// `Docker Engine 20.10.24`, for people.
    pub(crate) name: String,
    pub(crate) init: Init,
}

/// The oldest interface that knows all that is asked of an engine: that of Docker 20.10.
const OLDEST_INTERFACE: (u32, u32) = (1, 41);
/// The oldest Podman that has its init where we look for it.
const OLDEST_PODMAN: u32 = 4;

const UPDATE: &str = "update the engine: Docker 20.10 or newer, or Podman 4 or newer";

impl Greeting {
    /// Asks for it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Engine`] without an answer, [`ErrorKind::Unavailable`] for what is no engine or
    /// says that it is too old.
    pub(crate) async fn ask(client: &Client) -> Result<Self> {
        let endpoint = client.endpoint();
        let headers = client
            .ping()
            .await
            .map_err(|failure| failure.while_trying_to("answer a ping", endpoint))?;
        Self::from_headers(&headers, endpoint)
    }

    fn from_headers(headers: &HeaderMap, endpoint: &Endpoint) -> Result<Self> {
        let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
        let Some(interface) = header("api-version") else {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("what answers at {endpoint} is no container engine"),
            )
            .with_hint("is the socket that of Docker or of Podman?"));
        };
        if numbers(interface).is_some_and(|numbers| numbers < OLDEST_INTERFACE) {
            let (major, minor) = OLDEST_INTERFACE;
            return Err(too_old(format!(
                "the engine at {endpoint} speaks version {interface} of the interface; at least \
                 {major}.{minor} is needed"
            )));
        }
        let Some(podman) = header("libpod-api-version") else {
            // `Docker/20.10.24 (linux)`
            let version = header("server")
                .and_then(|server| server.strip_prefix("Docker/"))
                .and_then(|rest| rest.split(' ').next())
                .unwrap_or("of unknown version");
            return Ok(Self {
                name: format!("Docker Engine {version}"),
                init: Init::Tini,
            });
        };
        if numbers(podman).is_some_and(|(major, _)| major < OLDEST_PODMAN) {
            return Err(too_old(format!("Podman {podman} at {endpoint} is too old")));
        }
        Ok(Self {
            name: format!("Podman {podman}"),
            init: Init::Catatonit,
        })
    }
}

fn too_old(message: String) -> Error {
    Error::new(ErrorKind::Unavailable, message).with_hint(UPDATE)
}

/// The first two numbers of a version.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split('.');
    Some((parts.next()?.parse().ok()?, parts.next()?.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn greeting(headers: &[(&'static str, &'static str)]) -> Result<Greeting> {
        let headers = headers
            .iter()
            .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
            .collect();
        Greeting::from_headers(&headers, &Endpoint::Unix("/x".into()))
    }

    #[test]
    fn engines_are_told_apart() {
        let docker = greeting(&[
            ("Api-Version", "1.41"),
            ("Server", "Docker/20.10.24 (linux)"),
        ]);
        let docker = docker.unwrap();
        assert_eq!(
            (docker.name.as_str(), docker.init),
            ("Docker Engine 20.10.24", Init::Tini)
        );
        let podman = greeting(&[
            ("Api-Version", "1.41"),
            ("Libpod-Api-Version", "4.3.1"),
            ("Server", "Libpod/4.3.1 (linux)"),
        ]);
        let podman = podman.unwrap();
        assert_eq!(
            (podman.name.as_str(), podman.init),
            ("Podman 4.3.1", Init::Catatonit)
        );
        // Behind a proxy that hides who serves.
        assert!(greeting(&[("Api-Version", "1.51")]).is_ok());
    }

    #[test]
    fn what_is_too_old_or_no_engine_is_not_available() {
        for (headers, reason) in [
            ([("Api-Version", "1.40")].as_slice(), "version 1.40"),
            (
                &[("Api-Version", "1.41"), ("Libpod-Api-Version", "3.4.4")],
                "Podman 3.4.4",
            ),
            (&[("Server", "nginx")], "no container engine"),
        ] {
            let error = greeting(headers).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unavailable);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
