//! What kind of engine it is, asked once.

use bollard::models::{SystemInfo, SystemVersion};
use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::engine::Client;
use crate::socket::Endpoint;

/// The init that an engine puts into a container as PID 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Init {
    /// Docker's, which is tini and lies in every container that has one.
    Tini,
    /// Podman's.
    Catatonit,
}

impl Init {
    /// What stands before the command. PID 1 passes signals to its child alone; one more tini
    /// below it passes them to the whole process group.
    pub(crate) fn prefix(self) -> &'static [&'static str] {
        match self {
            Self::Tini => &["/sbin/docker-init", "-s", "-g", "--"],
            Self::Catatonit => &[],
        }
    }

    /// Whether a request may carry a seccomp profile. Podman reads the name of a file there, on its
    /// own machine.
    pub(crate) fn takes_seccomp_profiles(self) -> bool {
        self == Self::Tini
    }

    /// How a variable of the image is taken away.
    pub(crate) fn unset(self, name: &str) -> String {
        match self {
            Self::Tini => name.to_owned(),
            // A bare name would mean the engine's own variable.
            Self::Catatonit => format!("{name}="),
        }
    }
}

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
        let (version, info) = tokio::join!(client.version(), client.info());
        let to_say = |failure: crate::error::Failure| {
            failure.while_trying_to("say what it is", client.endpoint())
        };
        Self::from_answers(
            &version.map_err(to_say)?,
            info.map_err(to_say)?,
            client.endpoint(),
        )
    }

    fn from_answers(
        version: &SystemVersion,
        info: SystemInfo,
        endpoint: &Endpoint,
    ) -> Result<Self> {
        require_interface(version, endpoint)?;
        if let Some(system) = info.os_type.as_deref().filter(|system| *system != "linux") {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the engine at {endpoint} runs {system} containers"),
            )
            .with_hint("switch it to Linux containers"));
        }
        let podman = is_podman(version);
        // Podman does not tell of limits in this form.
        let missing = |known: Option<bool>| !podman && known == Some(false);
        let unenforced = [
            ("memory_limit", missing(info.memory_limit)),
            ("memory_limit (swap)", missing(info.swap_limit)),
            ("cpu_limit", missing(info.cpu_cfs_quota)),
            ("pids_limit", missing(info.pids_limit)),
        ];
        let security = info.security_options.unwrap_or_default();
        Ok(Self {
            name: describe(version),
            init: if podman { Init::Catatonit } else { Init::Tini },
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

fn is_podman(version: &SystemVersion) -> bool {
    version
        .components
        .iter()
        .flatten()
        .any(|component| component.name.contains("Podman"))
}

/// The oldest interface that knows all that is asked of an engine: that of Docker 20.10.
const OLDEST_INTERFACE: (u32, u32) = (1, 41);

/// That the engine knows all that will be asked of it.
///
/// # Errors
///
/// [`ErrorKind::Unavailable`] for an engine that says it is older.
pub(crate) fn require_interface(version: &SystemVersion, endpoint: &Endpoint) -> Result<()> {
    let Some(spoken) = version.api_version.as_deref() else {
        return Ok(());
    };
    let numbers = spoken
        .split_once('.')
        .and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
    match numbers {
        Some(numbers) if numbers < OLDEST_INTERFACE => Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "the engine at {endpoint} speaks version {spoken} of the interface; at least {}.{} \
                 is needed",
                OLDEST_INTERFACE.0, OLDEST_INTERFACE.1
            ),
        )
        .with_hint("update the engine: Docker 20.10 or newer, or Podman 3 or newer")),
        _ => Ok(()),
    }
}

/// The engine's name and version.
pub(crate) fn describe(version: &SystemVersion) -> String {
    let name = if is_podman(version) {
        "Podman"
    } else {
        "Docker Engine"
    };
    format!(
        "{name} {}",
        version.version.as_deref().unwrap_or("of unknown version")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    use prx_runtime_core::config::Config;

    fn facts(info: SystemInfo) -> Result<Facts> {
        Facts::from_answers(
            &SystemVersion::default(),
            info,
            &Endpoint::Unix("/x".into()),
        )
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
