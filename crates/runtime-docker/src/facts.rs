//! What kind of engine it is, asked once.

use bollard::models::SystemInfoCgroupVersionEnum;
use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::engine::{Client, Info};
use crate::greeting::Greeting;
use crate::init::Init;
use crate::socket::Endpoint;
use crate::user::Users;

/// What was learnt about an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Facts {
    /// `Docker Engine 20.10.24`, for people.
    pub(crate) name: String,
    pub(crate) init: Init,
    /// Whether system calls are filtered unless we say otherwise.
    pub(crate) seccomp: bool,
    pub(crate) users: Users,
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
            users: Users::Same,
            runtimes: Vec::new(),
            unenforced: Vec::new(),
        }
    }

    pub(crate) async fn ask(client: &Client) -> Result<Self> {
        let endpoint = client.endpoint();
        let (greeting, info, listener) =
            tokio::join!(Greeting::ask(client), client.info(), client.listener());
        let info = info.map_err(|failure| failure.while_trying_to("say what it is", endpoint));
        let runs_it = listener.map(|listener| listener.user);
        Self::from_answers(greeting?, info?, endpoint, runs_it)
    }

    fn from_answers(
        greeting: Greeting,
        info: Info,
        endpoint: &Endpoint,
        runs_it: Option<u32>,
    ) -> Result<Self> {
        let Info {
            system: info,
            podman,
        } = info;
        if let Some(system) = info.os_type.as_deref().filter(|system| *system != "linux") {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the engine at {endpoint} runs {system} containers"),
            )
            .with_hint("switch it to Linux containers"));
        }
        // Podman then says that it has them, and ignores what is asked for.
        let ignored =
            podman.rootless && info.cgroup_version == Some(SystemInfoCgroupVersionEnum::_1);
        let missing = |known: Option<bool>| known == Some(false) || ignored;
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
            users: Users::told(&security, podman.rootless, runs_it),
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

    use bollard::models::SystemInfo;
    use prx_runtime_core::config::Config;

    fn facts(system: SystemInfo) -> Result<Facts> {
        told(Info {
            system,
            ..Default::default()
        })
    }

    fn told(info: Info) -> Result<Facts> {
        let greeting = Greeting {
            name: "Docker Engine".into(),
            init: Init::Tini,
        };
        Facts::from_answers(greeting, info, &Endpoint::Unix("/x".into()), Some(1000))
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
    fn a_rootless_engine_is_known() {
        let facts = facts(SystemInfo {
            security_options: Some(vec!["name=rootless".to_owned()]),
            ..Default::default()
        });
        assert_eq!(facts.unwrap().users, Users::Rootless(Some(1000)));
        let podman = serde_json::from_str(r#"{"Rootless":true,"NCPU":2}"#).unwrap();
        let facts = told(Info {
            podman,
            ..Default::default()
        });
        assert_eq!(facts.unwrap().users, Users::Rootless(Some(1000)));
    }

    #[test]
    fn limits_that_podman_ignores_are_refused() {
        let config = Config::default().runtime.docker;
        let facts = |text: &str| {
            told(Info {
                system: serde_json::from_str(text).unwrap(),
                podman: serde_json::from_str(text).unwrap(),
            })
            .unwrap()
        };
        let error = facts(r#"{"MemoryLimit":true,"CgroupVersion":"1","Rootless":true}"#)
            .enforce(&config)
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        for text in [
            r#"{"MemoryLimit":true,"CgroupVersion":"2","Rootless":true}"#,
            r#"{"MemoryLimit":true,"CgroupVersion":"1","Rootless":false}"#,
        ] {
            facts(text).enforce(&config).unwrap();
        }
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
