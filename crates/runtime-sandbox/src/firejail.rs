//! What `firejail` is told, from rules to plain data.
//!
//! Its options are few for rules inside rules, its mounts of no use where a caller does not own
//! what is to be written, and it goes on without a word where it finds that it cannot work. So it
//! gives namespaces, and mounts that hide and that keep modes and owners; the launcher looks whether
//! the namespaces are there, and adds a filter of system calls and the kernel's Landlock, by which
//! nothing is written that no rule gives.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Result};
use rustix::fs::{Access as Wanted, AtFlags, FileType, Mode, OFlags, statat};

use crate::policy::{Access, Origin, Rule, access_of};
use crate::{error, mounts, resolve};

/// Of its own making inside: what lies below is not the host's.
const FRESH: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// Where firejail keeps what it needs itself; the only thing that stays of `/run`.
const OWN: &str = "/run/firejail";
/// Within it, what it still writes when the mounts are made.
const OWN_WORK: &str = "/run/firejail/mnt";
const RUN: &str = "/run";
/// What is fresh and may be written all the same: shared memory, terminals, devices.
pub(crate) const FRESH_AND_WRITABLE: [&str; 1] = ["/dev"];
/// What to do where it does not start anything.
pub(crate) const HINT: &str = "firejail has to be setuid root, to serve the account \
    (/etc/firejail/firejail.users; never `nobody`), and not to run in another sandbox or container; \
    or choose another security.sandbox.backend";

/// Whatever the rules are.
const OPTIONS: [&str; 20] = [
    "--quiet",
    // Nothing that runs in there gains anything, also where the caller is root.
    "--caps.drop=all",
    "--nonewprivs",
    "--ipc-namespace",
    // It ends with the launcher, and the kernel ends the rest with it.
    "--deterministic-exit-code",
    "--deterministic-shutdown",
    // A few devices that programs need, and no others.
    "--private-dev",
    "--no3d",
    "--nodvd",
    "--noinput",
    "--nosound",
    "--notv",
    "--nou2f",
    "--novideo",
    // The rules say what is seen and written, not firejail's taste.
    "--allusers",
    "--keep-var-tmp",
    "--writable-etc",
    "--writable-var",
    "--writable-var-log",
    // Otherwise it makes directories in the caller's home.
    "--keep-config-pulse",
];

/// The arguments up to the program that runs inside, which inherits `kept`.
pub(crate) fn arguments(allow_network: bool, profile: RawFd, kept: &[RawFd]) -> Vec<OsString> {
    let kept: Vec<String> = kept.iter().map(RawFd::to_string).collect();
    let mut arguments: Vec<OsString> = OPTIONS.map(OsString::from).into();
    if !allow_network {
        arguments.push("--net=none".into());
    }
    // The only profile: with one that is named it reads neither the caller's nor its own.
    arguments.push(format!("--profile=/proc/self/fd/{profile}").into());
    arguments.push(format!("--keep-fd={}", kept.join(",")).into());
    arguments.push("--".into());
    arguments
}

/// Rules as firejail reads them. In a file, because its command line ends at 128 arguments.
#[derive(Debug, Default)]
pub(crate) struct Profile {
    pub(crate) text: String,
    /// What is named in there by its number, besides the files of the rules.
    pub(crate) files: Vec<OwnedFd>,
}

/// Who the mounts are made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Caller {
    pub(crate) uid: u32,
}

impl Caller {
    pub(crate) fn current() -> Self {
        Self {
            uid: rustix::process::getuid().as_raw(),
        }
    }

    fn is_root(self) -> bool {
        self.uid == 0
    }

    /// Firejail makes writable for somebody only what they own.
    fn may_open(self, file: &OwnedFd) -> bool {
        self.is_root()
            || statat(file, "", AtFlags::EMPTY_PATH).is_ok_and(|found| found.st_uid == self.uid)
    }
}

/// The profile for `rules`, which are in the order of [`Policy::rules`](crate::policy::Policy::rules).
pub(crate) fn profile(rules: &[Rule], caller: Caller) -> Result<Profile> {
    let mut profile = Profile::default();
    let foreign: Vec<&Path> = rules
        .iter()
        .filter(|rule| rule.access == Access::Write && !caller.may_open(&rule.file))
        .map(|rule| rule.path.as_path())
        .collect();
    if access_of(rules, Path::new(RUN)) == Access::Hidden {
        profile.hide_run(rules, caller)?;
    }
    profile.keep(Path::new("/"), &foreign, caller)?;
    for mount in mounts::all()? {
        let point = mount.point.as_path();
        if point != Path::new("/")
            && !is_fresh(point)
            && access_of(rules, point) == Access::Read
            && !rules.iter().any(|rule| rule.path == point)
        {
            profile.keep(point, &foreign, caller)?;
        }
    }
    for rule in rules {
        if is_within_run(rule) && access_of(rules, Path::new(RUN)) == Access::Hidden {
            // All of it is said above, but for what is hidden in what is shown.
            let shown_around = surrounding(rules, rule) != Some(Access::Hidden);
            if rule.access == Access::Hidden && shown_around && rule.path != Path::new(RUN) {
                profile.line("blacklist", &rule.file);
            }
            continue;
        }
        if surrounding(rules, rule) == Some(Access::Hidden) {
            if rule.access != Access::Hidden && rule.origin != Origin::Default {
                return Err(buried(rule));
            }
            continue;
        }
        match rule.access {
            Access::Write if foreign.contains(&rule.path.as_path()) => {}
            Access::Write => profile.line("read-write", &rule.file),
            Access::Read if rule.path == Path::new("/") => {}
            Access::Read => profile.keep(&rule.path, &foreign, caller)?,
            Access::Hidden => profile.line("blacklist", &rule.file),
        }
    }
    Ok(profile)
}

impl Profile {
    /// By the descriptor: firejail takes many characters of a path for patterns, and what it finds
    /// at a path may be something else by then.
    fn line(&mut self, what: &str, file: &OwnedFd) {
        let _ = writeln!(self.text, "{what} /proc/self/fd/{}", file.as_raw_fd());
    }

    /// Hides `/run` except for what rules show in there. No ordinary option does: firejail has its
    /// own things there, and needs them to the end.
    fn hide_run(&mut self, rules: &[Rule], caller: Caller) -> Result<()> {
        let _ = writeln!(self.text, "whitelist {OWN}");
        if caller.is_root() {
            // The owner could change modes, without any capability.
            let _ = writeln!(self.text, "read-only {OWN}");
            let _ = writeln!(self.text, "read-write {OWN_WORK}");
        }
        for rule in rules.iter().filter(|rule| is_within_run(rule)) {
            let shown = rule.access != Access::Hidden;
            if !shown {
                continue;
            }
            let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-@+:".contains(&byte);
            let path = rule.path.to_string_lossy();
            if !path.bytes().all(plain) {
                return Err(Error::new(
                    ErrorKind::Refused,
                    format!("firejail cannot show `{path}`, whose name it does not take"),
                ));
            }
            let _ = writeln!(self.text, "whitelist {path}");
            if rule.access == Access::Read {
                let _ = writeln!(self.text, "read-only {path}");
            }
        }
        Ok(())
    }

    /// Makes what is below `path` read-only, except for the directories of others in there that are
    /// to be written: firejail does not make those writable again.
    fn keep(&mut self, path: &Path, foreign: &[&Path], caller: Caller) -> Result<()> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let found = rustix::fs::open(path, flags, Mode::empty())
            .map_err(std::io::Error::from)
            .and_then(|file| Ok((resolve::kind_of(&file)?, file)));
        let file = match found {
            Ok((FileType::Symlink, _)) => return Ok(()),
            Ok((_, file)) => file,
            // Where the caller cannot walk the command cannot either.
            Err(error) if error::is_unreachable(&error) => return Ok(()),
            Err(error) => return Err(unwalked(path, error)),
        };
        let within = |path: &Path| {
            let path = path.to_owned();
            foreign.iter().any(|open| open.starts_with(&path))
        };
        if !within(path) {
            self.line("read-only", &file);
            self.files.push(file);
            return Ok(());
        }
        if caller.may_open(&file) || rustix::fs::access(path, Wanted::WRITE_OK).is_ok() {
            return Err(unsplittable(path));
        }
        for entry in std::fs::read_dir(path).map_err(|error| unreadable(path, error))? {
            let entry = entry.map_err(|error| unreadable(path, error))?;
            let child = path.join(entry.file_name());
            if !foreign.contains(&child.as_path()) && !is_fresh(&child) {
                self.keep(&child, foreign, caller)?;
            }
        }
        Ok(())
    }
}

/// What the innermost rule around `rule`, itself apart, says.
fn surrounding(rules: &[Rule], rule: &Rule) -> Option<Access> {
    rules
        .iter()
        .filter(|other| other.path != rule.path && rule.path.starts_with(&other.path))
        .max_by_key(|other| other.path.components().count())
        .map(|other| other.access)
}

fn is_fresh(path: &Path) -> bool {
    FRESH.iter().any(|fresh| path.starts_with(fresh))
}

fn is_within_run(rule: &Rule) -> bool {
    rule.path.starts_with(RUN)
}

fn buried(rule: &Rule) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "firejail cannot show `{}` inside of a directory that is hidden",
            rule.path.display()
        ),
    )
    .with_hint("take one of the two out of security.sandbox, or set its backend to \"bubblewrap\"")
}

fn unsplittable(path: &Path) -> Error {
    Error::new(
        ErrorKind::Refused,
        format!(
            "firejail cannot keep `{}` from being written where a directory in it is to be written \
             that belongs to somebody else",
            path.display()
        ),
    )
    .with_hint("give the writable directory to the caller, or set the backend to \"bubblewrap\"")
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    Error::new(
        error::kind(&error),
        format!(
            "`{}` cannot be listed, around a directory that is to be written and belongs to \
             somebody else",
            path.display()
        ),
    )
    .with_source(error)
}

fn unwalked(path: &Path, error: std::io::Error) -> Error {
    let path = path.display();
    error::unseen(
        format!("`{path}`, which firejail is to keep from being written, cannot be looked at"),
        error,
    )
}

/// The names of the namespaces of this process of which the launcher must have others.
pub(crate) fn host_namespaces(allow_network: bool) -> std::io::Result<Vec<String>> {
    let kinds = ["pid", "mnt", "ipc", "net"];
    let expected = if allow_network {
        &kinds[..3]
    } else {
        &kinds[..]
    };
    expected
        .iter()
        .map(|kind| {
            let name: PathBuf = std::fs::read_link(Path::new("/proc/self/ns").join(kind))?;
            Ok(name.to_string_lossy().into_owned())
        })
        .collect()
}
