//! The kernel's Landlock: a thread restricts itself, and the command inherits that.
//!
//! A rule of Landlock gives; none takes back. Where a rule of ours takes something back below
//! another, the directories in between are not given as a whole but entry by entry, as they are
//! when the command starts. In such a directory itself nothing can be listed and nothing made.

use std::collections::BTreeSet;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, PathBeneath, Ruleset as Builder, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, Scope,
};
use prx_runtime_core::config::SandboxConfig;
use prx_runtime_core::confine::ThreadHook;
use prx_runtime_core::{Error, ErrorKind, Exposure, Isolation, IsolationLevel, Result};
use rustix::fs::{FileType, Mode, OFlags};
use seccompiler::BpfProgram;

use crate::policy::{Access, Rule};
use crate::seccomp::{self, Around};
use crate::{capabilities, error, resolve};

/// What we make use of. A newer kernel forbids more only to those who ask it to.
const NEWEST: ABI = ABI::V7;
/// The first that keeps signals within the sandbox.
const SIGNALS: i32 = 6;
/// The first that forbids to truncate what may not be written.
const TRUNCATION: i32 = 3;

/// Devices that programs cannot do without.
///
/// Not `/dev/tty`: the command keeps the session of the host, and would write to its terminal past
/// what is captured.
const DEVICES: [&str; 5] = [
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
];

/// What holds around every command.
#[derive(Debug)]
pub(crate) struct Ruleset {
    allow_network: bool,
    filter: BpfProgram,
}

impl Ruleset {
    /// The ruleset of `config`, and what it isolates on a kernel with that version of the interface.
    pub(crate) fn new(config: &SandboxConfig, version: i32) -> Result<(Self, Isolation)> {
        if version < 1 {
            return Err(Error::new(
                ErrorKind::Unavailable,
                "this kernel has no Landlock (security.sandbox.backend = \"landlock\")",
            )
            .with_hint(
                "it needs Linux 5.13, CONFIG_SECURITY_LANDLOCK, and `landlock` in the lsm= \
                 parameter of the kernel; or use bubblewrap",
            ));
        }
        let ruleset = Self {
            allow_network: config.allow_network,
            filter: seccomp::filter(Around::Landlock, config.allow_network),
        };
        Ok((ruleset, isolation(version, config.allow_network)))
    }

    /// What a thread does to itself before it starts a command under `rules`.
    pub(crate) fn for_thread(&self, rules: Vec<Rule>) -> Result<ThreadHook> {
        let grants = grants(&rules)?;
        let ruleset = self.build(grants).map_err(failed)?;
        let filter = self.filter.clone();
        Ok(Arc::new(move || {
            capabilities::drop_all()?;
            // Sets no_new_privs, too.
            ruleset
                .try_clone()?
                .restrict_self()
                .map_err(io::Error::other)?;
            seccompiler::apply_filter(&filter).map_err(io::Error::other)
        }))
    }

    fn build(&self, grants: Vec<Grant>) -> Result<RulesetCreated, ::landlock::RulesetError> {
        let mut builder = Builder::default().handle_access(AccessFs::from_all(NEWEST))?;
        builder = builder
            .scope(Scope::Signal)?
            .scope(Scope::AbstractUnixSocket)?;
        if !self.allow_network {
            builder = builder.handle_access(AccessNet::from_all(NEWEST))?;
        }
        let mut ruleset = builder.create()?;
        for grant in grants {
            ruleset = ruleset.add_rule(PathBeneath::new(grant.file, grant.rights))?;
        }
        Ok(ruleset)
    }
}

/// What keeps a command from writing anywhere but below some directories, for a launcher.
#[derive(Debug)]
pub(crate) struct WriteRules {
    pub(crate) file: OwnedFd,
    /// What the rules give: all that writes, as far as this kernel knows it.
    pub(crate) rights: u64,
}

/// Rules by which only what `rules` say is written can be, below it and whatever else is said there:
/// that is left to mounts. `None` where the kernel has no Landlock.
pub(crate) fn write_rules(rules: &[Rule]) -> Result<Option<WriteRules>> {
    let version = ABI::from(kernel_version());
    if version == ABI::Unsupported {
        return Ok(None);
    }
    let all = AccessFs::from_write(version.min(NEWEST));
    let make = || -> Result<RulesetCreated, ::landlock::RulesetError> {
        let mut ruleset = Builder::default().handle_access(all)?.create()?;
        for rule in rules.iter().filter(|rule| rule.access == Access::Write) {
            let mut rights = all;
            if !rule.is_dir {
                rights &= AccessFs::from_file(NEWEST);
            }
            ruleset = ruleset.add_rule(PathBeneath::new(&rule.file, rights))?;
        }
        Ok(ruleset)
    };
    let file: Option<OwnedFd> = make().map_err(failed)?.into();
    Ok(file.map(|file| WriteRules {
        file,
        rights: all.bits(),
    }))
}

/// The version of Landlock's interface, 0 where the kernel has none or keeps it off.
pub(crate) fn kernel_version() -> i32 {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no attributes and returns a number.
    let version = unsafe {
        libc::syscall(
            libc::SYS_landlock_create_ruleset,
            std::ptr::null::<u8>(),
            0_usize,
            VERSION,
        )
    };
    i32::try_from(version).unwrap_or(0).max(0)
}

fn isolation(version: i32, allow_network: bool) -> Isolation {
    let mut isolation = Isolation::new(IsolationLevel::Sandbox)
        .applied(format!("landlock (interface {version})"))
        .applied("no capabilities")
        .applied("no new privileges")
        .applied("seccomp")
        // Most of it can be read.
        .open(Exposure::FileSystem)
        // Not covered by any interface so far.
        .open(Exposure::FileMetadata)
        // They can be listed.
        .open(Exposure::HostProcesses);
    isolation = judge(isolation, version);
    if version < SIGNALS {
        isolation = isolation.not_enforced("landlock: signals to other processes need Linux 6.12");
    }
    if allow_network {
        // It covers none that has a path: the filter does.
        isolation.open(Exposure::Network).applied("no Unix sockets")
    } else {
        isolation.applied("no sockets")
    }
}

/// What an interface of that version cannot keep from being written.
pub(crate) fn judge(isolation: Isolation, version: i32) -> Isolation {
    if version < TRUNCATION {
        isolation.not_enforced("landlock: truncating files needs Linux 6.2")
    } else {
        isolation
    }
}

struct Grant {
    file: OwnedFd,
    rights: BitFlags<AccessFs>,
}

/// What is given, so that what `rules` say holds.
fn grants(rules: &[Rule]) -> Result<Vec<Grant>> {
    // By path and access, the outer first; reading is what holds where nothing is said.
    let mut tree: Vec<(PathBuf, Access)> = vec![
        (PathBuf::from("/"), Access::Read),
        (PathBuf::from("/dev"), Access::Hidden),
    ];
    for device in DEVICES {
        tree.push((device.into(), Access::Write));
    }
    for rule in rules {
        tree.retain(|(path, _)| *path != rule.path);
        tree.push((rule.path.clone(), rule.access));
    }
    let mut grants = Vec::new();
    for (path, access) in &tree {
        if *access != Access::Hidden {
            give(path, *access, &tree, &mut grants)?;
        }
    }
    Ok(grants)
}

/// Gives `access` below `path`, except where an inner rule says less.
fn give(
    path: &Path,
    access: Access,
    tree: &[(PathBuf, Access)],
    grants: &mut Vec<Grant>,
) -> Result<()> {
    let below = || {
        tree.iter()
            .filter(|(inner, _)| inner != path && inner.starts_with(path))
    };
    if !below().any(|(_, inner)| *inner > access) {
        grants.extend(grant(path, access)?);
        return Ok(());
    }
    let ways: BTreeSet<&Path> = below()
        .filter_map(|(inner, _)| inner.strip_prefix(path).ok()?.components().next())
        .map(|first| Path::new(first.as_os_str()))
        .collect();
    let entries = match std::fs::read_dir(path) {
        Err(error) if error::is_shortage(&error) => return Err(unseen(path, error)),
        // What cannot be listed is not given.
        Err(_) => return Ok(()),
        Ok(entries) => entries,
    };
    for entry in entries {
        let name = entry.map_err(|error| unseen(path, error))?.file_name();
        let child = path.join(&name);
        if !ways.contains(Path::new(&name)) {
            grants.extend(grant(&child, access)?);
        } else if !tree.iter().any(|(inner, _)| *inner == child) {
            give(&child, access, tree, grants)?;
        }
    }
    Ok(())
}

/// A grant for the file at `path`, if it is there and no link, which would be somebody else's.
fn grant(path: &Path, access: Access) -> Result<Option<Grant>> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = match rustix::fs::open(path, flags, Mode::empty()).map_err(io::Error::from) {
        Err(error) if error::is_shortage(&error) => return Err(unseen(path, error)),
        Err(_) => return Ok(None),
        Ok(file) => file,
    };
    let kind = resolve::kind_of(&file).map_err(|error| unseen(path, error))?;
    if kind == FileType::Symlink {
        return Ok(None);
    }
    let mut rights = match access {
        Access::Write => AccessFs::from_all(NEWEST),
        Access::Read => AccessFs::from_read(NEWEST),
        Access::Hidden => BitFlags::empty(),
    };
    if kind != FileType::Directory {
        rights &= AccessFs::from_file(NEWEST);
    }
    Ok(Some(Grant { file, rights }))
}

/// What lies at `path` cannot be given.
fn unseen(path: &Path, error: io::Error) -> Error {
    let path = path.display();
    error::unseen(
        format!("`{path}`, for which Landlock has a rule, cannot be looked at"),
        error,
    )
}

fn failed(error: ::landlock::RulesetError) -> Error {
    const WHAT: &str = "the rules of Landlock cannot be made";
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(&error);
    while let Some(known) = cause {
        let system = known.downcast_ref::<io::Error>();
        if let Some(system) = system.filter(|system| error::is_shortage(system)) {
            let hint = error::remedy(system);
            return Error::new(ErrorKind::Exhausted, WHAT)
                .with_source(error)
                .with_hint(hint);
        }
        cause = known.source();
    }
    Error::new(ErrorKind::Refused, WHAT).with_source(error)
}
