//! What is hidden without being asked.

use std::path::{Path, PathBuf};

use prx_runtime_core::config::ConfigPath;

use crate::policy::{Access, Origin, Wish};

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
const SECRETS_OF_THE_SYSTEM: [&str; 6] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
    "/root/.ssh",
];

/// Where services keep their sockets. `/var/run` is most often the same directory.
const RUNTIME_DIRECTORIES: [&str; 2] = ["/run", "/var/run"];

/// Parts of `/run` without which nothing runs on some systems.
const NEEDED_AT_RUNTIME: [&str; 3] = [
    "/run/current-system",
    "/run/opengl-driver",
    "/run/systemd/resolve",
];

/// The rules that hold unless the configuration says otherwise for the same path.
pub(crate) fn wishes(allow_network: bool) -> Vec<Wish> {
    let mut wishes = Vec::new();
    let mut add = |path: PathBuf, access| {
        wishes.push(Wish {
            path,
            access,
            origin: Origin::Default,
        });
    };
    if let Ok(home) = ConfigPath::new("~").expand() {
        for secret in SECRETS_AT_HOME {
            add(home.join(secret), Access::Hidden);
        }
    }
    for secret in SECRETS_OF_THE_SYSTEM {
        add(secret.into(), Access::Hidden);
    }
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
    for mount in other_process_tables(&std::fs::read("/proc/self/mountinfo").unwrap_or_default()) {
        add(mount, Access::Hidden);
    }
    wishes
}

/// Mounts of `proc` elsewhere than at `/proc`, such as in a prepared root for chroot: they show
/// the environment of every process.
fn other_process_tables(mounts: &[u8]) -> Vec<PathBuf> {
    String::from_utf8_lossy(mounts)
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            let path = unescape(mount.split(' ').nth(4)?);
            (kind.split(' ').next()? == "proc" && !Path::new(&path).starts_with("/proc"))
                .then(|| path.into())
        })
        .collect()
}

/// Blanks and backslashes stand there as octal numbers.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_mounts_of_proc_are_found() {
        let mounts = b"22 1 0:20 / /proc rw shared:5 - proc proc rw\n\
            23 1 0:21 / /srv/a\\040root/proc rw - proc proc rw\n\
            24 1 0:22 / /sys rw - sysfs sysfs rw\n";
        assert_eq!(
            other_process_tables(mounts),
            [PathBuf::from("/srv/a root/proc")]
        );
    }
}
