//! What is hidden without being asked.

use std::path::{Path, PathBuf};

use prx_runtime_core::config::ConfigPath;

use crate::mounts;
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
const SECRETS_OF_THE_SYSTEM: [&str; 5] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/ssl/private",
];

/// Hidden also from a root whose `HOME` is elsewhere.
const HOME_OF_ROOT: &str = "/root";

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
    for mount in mounts::all() {
        if mount.kind == "proc" && !mount.point.starts_with("/proc") {
            add(mount.point, Access::Hidden);
        }
    }
    wishes
}
