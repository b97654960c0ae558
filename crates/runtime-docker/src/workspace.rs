//! The directory that a container gets to see.

use std::fs;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Error, ErrorKind, Result};
use rustix::fs::{Mode, OFlags};

use crate::socket::Candidates;
use crate::watch::{Watch, Watcher};

/// What is never mounted, nor anything below it, unless `allowed_workspace_roots` names it.
const SYSTEM: [&str; 14] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run",
    "/sbin", "/sys", "/usr", "/var/run",
];
/// What is never mounted whole, though directories below it may be.
const SHARED: [&str; 7] = [
    "/home", "/mnt", "/media", "/opt", "/srv", "/var", "/var/lib",
];
/// What no configuration can allow.
const NEVER: [&str; 3] = ["/dev", "/proc", "/sys"];

/// Which directories may be mounted.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    /// Empty where any directory may, but those of the system.
    roots: Vec<PathBuf>,
    /// Sockets of engines: who has one has the host.
    sockets: Vec<PathBuf>,
    watcher: Watcher,
}

impl Policy {
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a root that cannot be a path.
    pub(crate) fn new(config: &DockerConfig, candidates: &Candidates) -> Result<Self> {
        let roots = config
            .allowed_workspace_roots
            .iter()
            .map(|root| root.expand());
        Ok(Self {
            roots: roots.collect::<Result<_>>()?,
            sockets: candidates.sockets().map(Path::to_owned).collect(),
            watcher: Watcher::shared(),
        })
    }

    /// Judges `directory` by what it resolves to, and holds on to it.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] where the policy forbids it; [`ErrorKind::WorkingDirectory`] where
    /// it cannot be resolved or mounted.
    pub(crate) fn admit(&self, directory: &Path) -> Result<Workspace> {
        let source = resolve(directory)?;
        self.judge(&source)?;
        let Some(text) = source.to_str() else {
            return Err(Error::new(
                ErrorKind::WorkingDirectory,
                format!(
                    "the working directory `{}` is not UTF-8, which the engine needs",
                    source.display()
                ),
            ));
        };
        let text = text.to_owned();
        // Before it is opened: what is opened is what stays there.
        let watch = self
            .watcher
            .watch(&source)
            .map_err(|error| tracing::debug!(%error, path = text, "a directory cannot be watched"))
            .ok();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = rustix::fs::open(&source, flags, Mode::empty())
            .and_then(|handle| rustix::fs::fstat(&handle).map(|stat| (handle, stat)));
        let (handle, stat) = opened.map_err(|error| cannot_use(directory, error.into()))?;
        Ok(Workspace {
            asked: directory.to_owned(),
            source: text,
            identity: Identity {
                device: stat.st_dev,
                inode: stat.st_ino,
            },
            owner: (stat.st_uid, stat.st_gid),
            handle,
            watch,
        })
    }

    fn judge(&self, source: &Path) -> Result<()> {
        let shown = source.display();
        let refused = |why: String| {
            Err(Error::new(
                ErrorKind::Refused,
                format!("the working directory `{shown}` is not mounted: {why}"),
            ))
        };
        if source == Path::new("/") {
            return refused("it is the whole file system".to_owned()).map_err(named_directory_hint);
        }
        if let Some(never) = NEVER.iter().find(|never| source.starts_with(never)) {
            return refused(format!("`{never}` belongs to the kernel"));
        }
        let socket = self
            .sockets
            .iter()
            .filter_map(|socket| fs::canonicalize(socket).ok())
            .find(|socket| socket.starts_with(source));
        if let Some(socket) = socket {
            return refused(format!(
                "the engine's socket `{}` is in it",
                socket.display()
            ));
        }
        if !self.roots.is_empty() {
            // Roots are resolved as late as the directory is, or a link would part them.
            let allowed = self
                .roots
                .iter()
                .filter_map(|root| fs::canonicalize(root).ok())
                .any(|root| source.starts_with(root));
            if allowed {
                return Ok(());
            }
            let roots: Vec<_> = self
                .roots
                .iter()
                .map(|root| format!("`{}`", root.display()))
                .collect();
            return refused(format!("it is not below {}", roots.join(", "))).map_err(|error| {
                error.with_hint("add it to runtime.docker.allowed_workspace_roots")
            });
        }
        if let Some(system) = SYSTEM.iter().find(|system| source.starts_with(system)) {
            return refused(format!("`{system}` belongs to the system"))
                .map_err(named_directory_hint);
        }
        if SHARED.iter().any(|shared| source == Path::new(shared)) {
            return refused("it holds more than one thing".to_owned())
                .map_err(named_directory_hint);
        }
        Ok(())
    }
}

fn named_directory_hint(error: Error) -> Error {
    error.with_hint(
        "name a directory of your own as working directory, or list it in \
         runtime.docker.allowed_workspace_roots",
    )
}

fn resolve(directory: &Path) -> Result<PathBuf> {
    fs::canonicalize(directory).map_err(|error| cannot_use(directory, error))
}

fn cannot_use(directory: &Path, error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::WorkingDirectory,
        format!(
            "the working directory `{}` cannot be used",
            directory.display()
        ),
    )
    .with_source(error)
}

/// Which directory a path led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

/// A directory that was admitted. Its handle keeps the inode from being given to another one.
#[derive(Debug)]
pub(crate) struct Workspace {
    asked: PathBuf,
    source: String,
    identity: Identity,
    owner: (u32, u32),
    handle: OwnedFd,
    /// `None` where the kernel does not watch it for us.
    watch: Option<Watch>,
}

impl Workspace {
    /// The path to mount: absolute, and without links when it was resolved.
    pub(crate) fn source(&self) -> &str {
        &self.source
    }

    /// Which directory this is, apart from its path.
    pub(crate) fn identity(&self) -> Identity {
        self.identity
    }

    /// The user and the group that own it.
    pub(crate) fn owner(&self) -> (u32, u32) {
        self.owner
    }

    pub(crate) fn handle(&self) -> &OwnedFd {
        &self.handle
    }

    /// Whether a directory that is exchanged for another and back is noticed.
    pub(crate) fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// That the path still leads to the directory that was judged, and did so all the time where
    /// that can be watched.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] where it does not.
    pub(crate) fn unchanged(&self) -> Result<()> {
        let now = fs::canonicalize(&self.asked)
            .ok()
            .filter(|now| now.as_os_str() == self.source.as_str());
        let identity = now
            .and_then(|now| fs::symlink_metadata(now).ok())
            .map(|metadata| Identity {
                device: metadata.dev(),
                inode: metadata.ino(),
            });
        // After the look: a move in between is told, too.
        let still = self.watch.as_ref().is_none_or(Watch::is_still);
        if identity == Some(self.identity) && still {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Refused,
            format!(
                "the working directory `{}` was replaced while its container was being made",
                self.asked.display()
            ),
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(roots: &[&Path]) -> Policy {
        Policy {
            roots: roots.iter().map(|root| (*root).to_owned()).collect(),
            sockets: Vec::new(),
            watcher: Watcher::default(),
        }
    }

    fn refusal(policy: &Policy, path: &Path) -> String {
        let error = policy.admit(path).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        error.to_string()
    }

    #[test]
    fn the_system_is_never_mounted() {
        for path in [
            "/",
            "/etc",
            "/usr/bin",
            "/proc/self",
            "/dev",
            "/sys",
            "/var",
            "/home",
            "/run",
        ] {
            refusal(&policy(&[]), Path::new(path));
        }
    }

    #[test]
    fn a_link_is_judged_by_what_it_leads_to() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(refusal(&policy(&[]), &link).contains("`/etc` is not mounted"));
        let inside = dir.path().join("inside");
        fs::create_dir(&inside).unwrap();
        std::os::unix::fs::symlink(&inside, dir.path().join("other")).unwrap();
        let workspace = policy(&[]).admit(&dir.path().join("other")).unwrap();
        assert_eq!(
            Path::new(workspace.source()),
            fs::canonicalize(inside).unwrap()
        );
    }

    #[test]
    fn roots_allow_what_is_below_them_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let below = dir.path().join("a/b");
        fs::create_dir_all(&below).unwrap();
        let policy = policy(&[&dir.path().join("a")]);
        policy.admit(&below).unwrap();
        assert!(refusal(&policy, dir.path()).contains("is not below"));
        // A name that only begins like a root's is another directory.
        let sibling = dir.path().join("ab");
        fs::create_dir(&sibling).unwrap();
        refusal(&policy, &sibling);
    }

    #[test]
    fn a_directory_with_the_engines_socket_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let socket = dir.path().join("docker.sock");
        fs::write(&socket, "").unwrap();
        let policy = Policy {
            roots: vec![dir.path().to_owned()],
            sockets: vec![socket],
            watcher: Watcher::default(),
        };
        assert!(refusal(&policy, dir.path()).contains("socket"));
    }

    #[test]
    fn a_swap_that_is_undone_is_noticed() {
        use rustix::fs::{CWD, RenameFlags, renameat_with};

        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("work"), dir.path().join("link"));
        fs::create_dir(&path).unwrap();
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        let workspace = policy(&[]).admit(&path).unwrap();
        assert!(workspace.is_watched());
        workspace.unchanged().unwrap();
        for _ in 0..2 {
            renameat_with(CWD, &path, CWD, &link, RenameFlags::EXCHANGE).unwrap();
        }
        let error = workspace.unchanged().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
        assert!(error.to_string().contains("was replaced"), "{error}");
        // The next call finds what is there.
        policy(&[]).admit(&path).unwrap().unchanged().unwrap();
    }

    #[test]
    fn a_swap_is_noticed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("work");
        fs::create_dir(&path).unwrap();
        let workspace = policy(&[]).admit(&path).unwrap();
        workspace.unchanged().unwrap();
        fs::rename(&path, dir.path().join("moved")).unwrap();
        assert!(workspace.unchanged().is_err());
        std::os::unix::fs::symlink("/etc", &path).unwrap();
        assert!(workspace.unchanged().is_err());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert_eq!(
            workspace.unchanged().unwrap_err().kind(),
            ErrorKind::Refused
        );
    }
}
