//! What is said of the isolation of one container: what holds, what is open, and what is not as it
//! was asked for.

use prx_runtime_core::config::{DockerConfig, DockerNetwork};
use prx_runtime_core::{Exposure, Isolation, IsolationLevel};

use crate::facts::Facts;
use crate::init::is_gvisor;
use crate::user::User;
use crate::verify::Verdict;

/// What became of the promises of one container.
#[derive(Debug)]
pub(crate) struct Held<'a> {
    pub(crate) verdict: Verdict,
    pub(crate) user: &'a User,
    /// Whether system calls are filtered by us.
    pub(crate) filtered: bool,
    /// Whether an exchange of the workspace would have been noticed.
    pub(crate) watched: bool,
}

impl Held<'_> {
    /// What the caller is told.
    pub(crate) fn isolation(&self, config: &DockerConfig, facts: &Facts) -> Isolation {
        let mut isolation = Isolation::new(IsolationLevel::Container)
            .applied("container")
            .applied(format!("network {}", config.network))
            .applied("read-only root file system")
            .applied("no capabilities")
            .applied("no new privileges")
            .applied(format!("memory limit {}", config.memory_limit))
            .applied(format!("cpu limit {}", config.cpu_limit))
            .applied(format!("pids limit {}", config.pids_limit));
        if let Some(runtime) = &config.oci_runtime {
            isolation = isolation.applied(format!("oci runtime {runtime}"));
        }
        isolation = if facts.seccomp {
            isolation.applied("seccomp")
        } else {
            isolation.open(Exposure::SystemCalls)
        };
        if config.network != DockerNetwork::None {
            isolation = isolation.open(Exposure::Network);
        }
        if config.network == DockerNetwork::Host {
            // Sockets in the abstract namespace belong to the network.
            isolation = isolation.open(Exposure::UnixSockets);
        }
        let filtered = self.filtered && !is_gvisor(config.oci_runtime.as_deref());
        if self.user.is_root() && !filtered {
            isolation = isolation
                .not_enforced("root in the container may make setuid files in the workspace");
        }
        if let Some(what) = self.user.not_held {
            isolation = isolation.not_enforced(what);
        }
        if self.verdict == Verdict::Unknown {
            isolation = isolation.not_enforced(
                "whether the workspace is mounted where it should be could not be checked",
            );
        }
        if !self.watched {
            isolation = isolation.not_enforced(
                "whether the workspace was exchanged for another directory and back while it was \
                 mounted could not be watched",
            );
        }
        isolation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use prx_runtime_core::config::Config;

    use crate::user::Users;

    #[test]
    fn what_does_not_hold_is_said() {
        let config = Config::default().runtime.docker;
        let facts = Facts::expected();
        let user = User {
            name: "1:1".to_owned(),
            not_held: None,
        };
        let all = Held {
            verdict: Verdict::Verified,
            user: &user,
            filtered: false,
            watched: true,
        };
        assert_eq!(all.isolation(&config, &facts).not_enforced, [""; 0]);
        let root = User {
            not_held: Some("not theirs"),
            ..User::choose(&config, None, Users::Rootless(None))
        };
        let none = Held {
            verdict: Verdict::Unknown,
            user: &root,
            filtered: false,
            watched: false,
        };
        let said = none.isolation(&config, &facts).not_enforced;
        for words in [
            "setuid",
            "not theirs",
            "mounted where it should be",
            "exchanged",
        ] {
            let says = said.iter().filter(|what| what.contains(words)).count();
            assert_eq!(says, 1, "{words}: {said:?}");
        }
    }
}
