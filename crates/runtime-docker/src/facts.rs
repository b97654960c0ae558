//! What kind of engine it is, asked once.

use bollard::models::SystemInfo;
use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::engine::Client;
use crate::greeting::Greeting;
use crate::init::Init;
use crate::socket::Endpoint;

/// What was learnt about an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `Docker Engine 20.10.24`, for people.
    pub(crate) name: String,
    pub(crate) init: Init,
    /// Whether system calls are filtered unless we say otherwise.
    pub(crate) seccomp: bool,
    runtimes: Vec<String>,
    /// Limits that the engine says it cannot enforce.
    unenforced: Vec<&'static str>,
}

impl Facts {
    /// What a current Docker Engine has, for saying what would be done without asking one.
    pub(crate) fn expected() -> Self {
        Self {
            name: "Docker Engine".to_owned(),
            init: Init::Tini,
            seccomp: true,
            runtimes: Vec::new(),
            unenforced: Vec::new(),
        }
    }

    pub(crate) async fn ask(client: &Client) -> Result<Self> {
        let endpoint = client.endpoint();
        let (greeting, info) = tokio::join!(Greeting::ask(client), client.info());
        let info = info.map_err(|failure| failure.while_trying_to("say what it is", endpoint));
        Self::from_answers(greeting?, info?, endpoint)
    }

    fn from_answers(greeting: Greeting, info: SystemInfo, endpoint: &Endpoint) -> Result<Self> {
        if let Some(system) = info.os_type.as_deref().filter(|system| *system != "linux") {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the engine at {endpoint} runs {system} containers"),
            )
            .with_hint("switch it to Linux containers"));
        }
        let missing = |known: Option<bool>| known == Some(false);
        let unenforced = [
            ("memory_limit", missing(info.memory_limit)),
            ("memory_limit (swap)", missing(info.swap_limit)),
            ("cpu_limit", missing(info.cpu_cfs_quota)),
            ("pids_limit", missing(info.pids_limit)),
        ];
        let security = info.security_options.unwrap_or_default();
        Ok(Self {
            name: greeting.name,
            init: greeting.init,
            seccomp: security
                .iter()
                .any(|option| option.starts_with("name=seccomp") && !option.contains("unconfined")),
            runtimes: info.runtimes.unwrap_or_default().into_keys().collect(),
            unenforced: unenforced
                .into_iter()
                .filter(|(_, missing)| *missing)
                .map(|(name, _)| name)
                .collect(),
        })
    }

    /// That everything in `config` can be enforced here.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] with what cannot.
    pub(crate) fn enforce(&self, config: &DockerConfig) -> Result<()> {
        if let Some(runtime) = &config.oci_runtime
            && !self.runtimes.contains(runtime)
        {
            let mut known = self.runtimes.clone();
            known.sort_unstable();
            return Err(Error::new(
                ErrorKind::Refused,
                format!("runtime.docker.oci_runtime: the engine has no runtime `{runtime}`"),
            )
            .with_hint(format!("it has {}", known.join(", "))));
        }
        if let [first, ..] = self.unenforced[..] {
            return Err(Error::new(
                ErrorKind::Refused,
                format!("{} does not enforce runtime.docker.{first}", self.name),
            )
            .with_hint(
                "the kernel of the engine's machine lacks the controller; `docker info` says which",
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    use prx_runtime_core::config::Config;

    fn facts(info: SystemInfo) -> Result<Facts> {
        let greeting = Greeting {
            name: "Docker Engine".into(),
            init: Init::Tini,
        };
        Facts::from_answers(greeting, info, &Endpoint::Unix("/x".into()))
    }

    #[test]
    fn an_unknown_oci_runtime_is_refused() {
        let facts = facts(SystemInfo {
            runtimes: Some(HashMap::from([("runc".to_owned(), Default::default())])),
            ..Default::default()
        })
        .unwrap();
        let mut config = Config::default().runtime.docker;
        facts.enforce(&config).unwrap();
        config.oci_runtime = Some("runc".into());
        facts.enforce(&config).unwrap();
        config.oci_runtime = Some("runsc".into());
        let error = facts.enforce(&config).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.to_string().contains("`runsc`") && error.to_string().contains("it has runc"));
    }

    #[test]
    fn a_limit_that_the_engine_drops_is_refused() {
        let facts = facts(SystemInfo {
            swap_limit: Some(false),
            ..Default::default()
        })
        .unwrap();
        let error = facts
            .enforce(&Config::default().runtime.docker)
            .unwrap_err();
        assert!(error.to_string().contains("memory_limit"), "{error}");
    }

    #[test]
    fn windows_containers_are_not_ours() {
        let error = facts(SystemInfo {
            os_type: Some("windows".into()),
            ..Default::default()
        })
        .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
    }
}
