//! Who a command is in its container, and who that is outside.

use prx_runtime_core::config::DockerConfig;

use crate::workspace::Workspace;

/// Root of the container, by number: an image may have no names.
const ROOT: &str = "0:0";

/// Which users of its machine the users of an engine's containers are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Users {
    /// Those of the same numbers.
    Same,
    /// Root is the user who runs the engine, where known; the others are nobody of the machine.
    Rootless(Option<u32>),
    /// All are nobody of the machine (`userns-remap`).
    Remapped,
}

impl Users {
    /// As an engine tells it by its security options, or, being Podman, says outright. `runs_it`: the
    /// user who listens at its socket.
    pub(crate) fn told(security: &[String], rootless: bool, runs_it: Option<u32>) -> Self {
        let has = |name: &str| {
            security
                .iter()
                .any(|option| option.split(',').next() == Some(name))
        };
        if rootless || has("name=rootless") {
            Self::Rootless(runs_it)
        } else if has("name=userns") {
            Self::Remapped
        } else {
            Self::Same
        }
    }
}

/// The user of one container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct User {
    /// As the engine is told.
    pub(crate) name: String,
    /// What is not as `user = "auto"` promises.
    pub(crate) not_held: Option<&'static str>,
}

impl User {
    /// The one that is configured; for `auto` the owner of what is mounted, else the caller.
    pub(crate) fn choose(
        config: &DockerConfig,
        workspace: Option<&Workspace>,
        users: Users,
    ) -> Self {
        if config.user == "auto" {
            Self::automatic(workspace.map(Workspace::owner), users)
        } else {
            Self {
                name: config.user.clone(),
                not_held: None,
            }
        }
    }

    fn automatic(owner: Option<(u32, u32)>, users: Users) -> Self {
        let (user, group) = owner.unwrap_or_else(|| {
            (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            )
        });
        let numbers = format!("{user}:{group}");
        match users {
            Users::Same => Self {
                name: numbers,
                not_held: None,
            },
            Users::Rootless(runs_it) => Self {
                name: ROOT.to_owned(),
                not_held: (owner.is_some() && runs_it != Some(user)).then_some(
                    "files that are made in the workspace belong to the user who runs the rootless \
                     engine, not to the owner of the workspace",
                ),
            },
            Users::Remapped => Self {
                name: numbers,
                not_held: owner.is_some().then_some(
                    "files that are made in the workspace do not belong to its owner: the engine \
                     maps users to others (userns-remap)",
                ),
            },
        }
    }

    /// Whether it is root in the container.
    pub(crate) fn is_root(&self) -> bool {
        let name = self.name.split(':').next().unwrap_or(&self.name);
        name == "root" || name.parse() == Ok(0_u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use prx_runtime_core::config::Config;

    fn told(options: &[&str], runs_it: Option<u32>) -> Users {
        let options: Vec<_> = options.iter().map(|&option| option.to_owned()).collect();
        Users::told(&options, false, runs_it)
    }

    #[test]
    fn an_engine_tells_how_it_maps_users() {
        let seccomp = "name=seccomp,profile=default";
        assert_eq!(told(&[seccomp], Some(0)), Users::Same);
        assert_eq!(
            told(&[seccomp, "name=rootless"], Some(1000)),
            Users::Rootless(Some(1000))
        );
        assert_eq!(told(&[seccomp, "name=userns"], Some(0)), Users::Remapped);
    }

    #[test]
    fn root_of_a_rootless_container_is_who_runs_the_engine() {
        let owner = Some((1000, 100));
        let own = User::automatic(owner, Users::Rootless(Some(1000)));
        assert_eq!((own.name.as_str(), own.not_held), ("0:0", None));
        for runs_it in [Some(1001), None] {
            let other = User::automatic(owner, Users::Rootless(runs_it));
            assert_eq!(other.name, "0:0");
            assert!(other.not_held.is_some_and(|what| what.contains("rootless")));
        }
        let nothing_mounted = User::automatic(None, Users::Rootless(None));
        assert_eq!(nothing_mounted.name, "0:0");
        assert_eq!(nothing_mounted.not_held, None);
    }

    #[test]
    fn what_remapped_users_cannot_hold_is_said() {
        let same = User::automatic(Some((1000, 100)), Users::Same);
        assert_eq!((same.name.as_str(), same.not_held), ("1000:100", None));
        let remapped = User::automatic(Some((1000, 100)), Users::Remapped);
        assert_eq!(remapped.name, "1000:100");
        assert!(
            remapped
                .not_held
                .is_some_and(|what| what.contains("userns-remap"))
        );
        assert_eq!(User::automatic(None, Users::Remapped).not_held, None);
    }

    #[test]
    fn a_user_that_is_configured_is_taken() {
        let mut config = Config::default().runtime.docker;
        config.user = "1:2".to_owned();
        for users in [Users::Same, Users::Rootless(None), Users::Remapped] {
            let user = User::choose(&config, None, users);
            assert_eq!((user.name.as_str(), user.not_held), ("1:2", None));
            assert!(!user.is_root());
        }
        config.user = "root".to_owned();
        assert!(User::choose(&config, None, Users::Same).is_root());
    }
}
