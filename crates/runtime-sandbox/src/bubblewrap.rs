//! The arguments of `bwrap`, from rules to plain data.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::ffi::OsStrExt;

use crate::policy::{Access, Rule};

/// What is there besides the rules.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) allow_network: bool,
    /// A descriptor with the filter of system calls.
    pub(crate) filter: RawFd,
}

/// Everything up to the command, for `--args`: what is passed that way is in no process table.
///
/// `rules` are in the order of [`Policy::rules`](crate::policy::Policy::rules).
pub(crate) fn arguments(frame: Frame, rules: &[Rule]) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = [
        "--unshare-user",
        "--unshare-ipc",
        "--unshare-pid",
        "--unshare-uts",
        "--unshare-cgroup-try",
        "--die-with-parent",
        // Without a terminal of its own a command types into ours.
        "--new-session",
        // The launcher is the first process: it reports what no exit code can.
        "--as-pid-1",
        // A caller who is root would keep all of them.
        "--cap-drop",
        "ALL",
    ]
    .map(OsString::from)
    .into();
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    let word = OsStr::new;
    if !frame.allow_network {
        add(&[word("--unshare-net")]);
    }
    if !rules.iter().any(|rule| rule.path.as_os_str() == "/") {
        add(&[word("--ro-bind"), word("/"), word("/")]);
    }
    let mut covers = Vec::new();
    let mut made_devices = false;
    for rule in rules {
        let path = rule.path.as_os_str();
        // Devices and processes are fresh ones, over whatever a rule for `/` brought along and
        // below whatever rules for their parts bring.
        if path != "/" && !made_devices {
            made_devices = true;
            arguments.extend(fresh());
        }
        let mut add =
            |words: &[&OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
        // Through the descriptor, so that what is mounted is what was walked.
        let file = OsString::from(format!("/proc/self/fd/{}", rule.file.as_raw_fd()));
        match (rule.access, rule.is_dir) {
            (Access::Write, _) => add(&[word("--bind"), &file, path]),
            (Access::Read, _) => add(&[word("--ro-bind"), &file, path]),
            (Access::Hidden, true) => {
                // Can be walked through, to what an inner rule shows, and not listed.
                add(&[word("--perms"), word("0111"), word("--tmpfs"), path]);
                covers.push(path);
            }
            (Access::Hidden, false) => add(&[word("--ro-bind"), word("/dev/null"), path]),
        }
    }
    if !made_devices {
        arguments.extend(fresh());
    }
    let mut add = |words: &[&OsStr]| arguments.extend(words.iter().map(|word| (*word).to_owned()));
    // Only now: inner rules had to make their mount points there.
    for path in covers.into_iter().rev() {
        add(&[word("--remount-ro"), path]);
    }
    let filter = OsString::from(frame.filter.to_string());
    add(&[word("--seccomp"), &filter, word("--chdir"), word("/")]);
    arguments
}

/// Parts of `/proc` that a process of root's uid may write without any capability, as their owner.
const SETTINGS: [&str; 8] = [
    "/proc/sys",
    "/proc/sysrq-trigger",
    "/proc/irq",
    "/proc/bus",
    "/proc/fs",
    "/proc/mtrr",
    "/proc/acpi",
    "/proc/scsi",
];

/// Devices and processes of its own.
fn fresh() -> impl Iterator<Item = OsString> {
    let mounts = ["--dev", "/dev", "--proc", "/proc"].into_iter();
    let settings = SETTINGS
        .into_iter()
        .flat_map(|path| ["--ro-bind-try", path, path]);
    mounts.chain(settings).map(OsString::from)
}

/// The form that `--args` reads.
pub(crate) fn encode(arguments: &[OsString]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for argument in arguments {
        bytes.extend(argument.as_bytes());
        bytes.push(0);
    }
    bytes
}
