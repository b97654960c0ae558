//! What is hidden without being asked.

use std::path::{Path, PathBuf};

use prx_runtime_core::Result;
use prx_runtime_core::config::ConfigPath;

use crate::account;
use crate::mounts::Mount;
use crate::policy::{Access, Origin, Wish};

/// Said where nobody knows a home of the caller.
pub(crate) const NO_HOME: &str = "secrets at home: no home directory is known to hide them in; set \
    HOME to an absolute path, or give the account of this user a home";

/// Below the caller's home: keys, tokens, passwords.
const SECRETS_AT_HOME: [&str; 24] = [
    ".ssh",
    ".aws",
    ".gnupg",
    ".azure",
    ".config/gcloud",
    ".config/gh",
    ".config/hub",
    ".config/op",
    ".config/rclone",
    ".config/sops",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".config/git/credentials",
    ".npmrc",
    ".pypirc",
    ".pgpass",
    ".my.cnf",
    ".cargo/credentials.toml",
    ".cargo/credentials",
    ".password-store",
    ".local/share/keyrings",
    ".vault-token",
];

/// Of the system: readable to a caller who is root even without any capability, as their owner.
const SECRETS_OF_THE_SYSTEM: [&str; 5] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
];

/// Whatever the system says of accounts.
const HOME_OF_ROOT: &str = "/root";

/// Where services keep their sockets. `/var/run` is most often the same directory.
const RUNTIME_DIRECTORIES: [&str; 2] = ["/run", "/var/run"];

/// Parts of `/run` without which nothing runs on some systems.
const NEEDED_AT_RUNTIME: [&str; 3] = [
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve",
];

/// The homes of the caller: what `HOME` says, and what the system says of the account. Whoever
/// becomes somebody else may keep the variable, and a service may have none.
pub(crate) fn homes() -> Result<Vec<PathBuf>> {
    let named = ConfigPath::new("~").expand().ok();
    let root = rustix::process::geteuid().is_root();
    let own = account::home()?.or_else(|| root.then(|| HOME_OF_ROOT.into()));
    let mut homes: Vec<PathBuf> = named.into_iter().chain(own).collect();
    homes.dedup();
    Ok(homes)
}

/// The rules that hold unless the configuration says otherwise for the same path, for a caller with
/// those `homes` on a machine with those `mounts`.
pub(crate) fn wishes(allow_network: bool, homes: &[PathBuf], mounts: Vec<Mount>) -> Vec<Wish> {
    let mut wishes = Vec::new();
    let mut add = |path: PathBuf, access| {
        wishes.push(Wish {
            path,
            access,
            origin: Origin::Default,
        });
    };
    for home in homes {
        for secret in SECRETS_AT_HOME {
            add(home.join(secret), Access::Hidden);
        }
    }
    for secret in SECRETS_OF_THE_SYSTEM {
        add(secret.into(), Access::Hidden);
    }
    add(Path::new(HOME_OF_ROOT).join(".ssh"), Access::Hidden);
    for directory in RUNTIME_DIRECTORIES {
        add(directory.into(), Access::Hidden);
    }
    for needed in NEEDED_AT_RUNTIME {
        if allow_network || !needed.ends_with("resolve") {
            add(needed.into(), Access::Read);
        }
    }
    if let Ok(engine) = std::env::var("DOCKER_HOST")
        && let Some(socket) = engine.strip_prefix("unix://")
        && Path::new(socket).is_absolute()
    {
        add(socket.into(), Access::Hidden);
    }
    // Other mounts of it than `/proc`, such as in a prepared root for chroot: they show the
    // environment of every process.
    for mount in mounts {
        if mount.kind == "proc" && !mount.point.starts_with("/proc") {
            add(mount.point, Access::Hidden);
        }
    }
    wishes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_hidden_in_every_home() {
        let homes: [PathBuf; 2] = ["/home/ana".into(), "/root".into()];
        let wishes = wishes(false, &homes, Vec::new());
        for home in &homes {
            for secret in SECRETS_AT_HOME {
                let path = home.join(secret);
                let found = wishes.iter().find(|wish| wish.path == path);
                let access = found.map(|wish| wish.access);
                assert_eq!(access, Some(Access::Hidden), "{}", path.display());
            }
        }
    }

    #[test]
    fn the_home_of_the_account_counts_whatever_the_variable_says() {
        let own = account::home().unwrap();
        let homes = homes().unwrap();
        assert!(own.is_none_or(|own| homes.contains(&own)), "{homes:?}");
    }

    #[test]
    fn other_views_of_the_processes_are_hidden() {
        let mount = |point: &str, kind: &str| Mount {
            point: point.into(),
            kind: kind.to_owned(),
        };
        let mounts = vec![
            mount("/proc", "proc"),
            mount("/srv/root/proc", "proc"),
            mount("/srv/root/sys", "sysfs"),
        ];
        let wishes = wishes(false, &[], mounts);
        let hides = |path: &str| {
            let path = Path::new(path);
            let hidden = |wish: &Wish| wish.access == Access::Hidden;
            wishes.iter().any(|wish| wish.path == path && hidden(wish))
        };
        assert!(hides("/srv/root/proc"));
        assert!(!hides("/proc") && !hides("/srv/root/sys"));
    }
}
