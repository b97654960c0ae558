//! Which host process an execution belongs to, so that what a dead one left can be told apart from
//! what a living one still needs.

use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

/// The identity of a host process: its pid, its start time, and the PID namespace in which that
/// pid means something. Displays as one word of digits and hyphens, for cookies and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Owner {
    pid: u32,
    /// In clock ticks since boot; 0 where the system does not say.
    start: u64,
    /// The inode of the PID namespace; 0 where the system has none.
    namespace: u64,
}

/// Whether an [`Owner`] still lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnerState {
    /// It lives.
    Alive,
    /// It is provably dead: no process has its pid, or a later one has.
    Dead,
    /// It belongs to another PID namespace, or the system does not say, or hides it (`hidepid`).
    /// Leave its things alone.
    Unknown,
}

impl Owner {
    /// This process. Read once: neither ever changes for a process, and a fork of it has another
    /// pid.
    pub fn current() -> Self {
        static CURRENT: OnceLock<Owner> = OnceLock::new();

        let pid = std::process::id();
        if let Some(current) = CURRENT.get()
            && current.pid == pid
        {
            return *current;
        }
        let current = Self {
            pid,
            start: sys::start_time(pid).ok().flatten().unwrap_or(0),
            namespace: sys::pid_namespace().unwrap_or(0),
        };
        // What could not be read, for want of descriptors, may be read the next time.
        if current.start != 0 && current.namespace != 0 {
            let _ = CURRENT.set(current);
        }
        current
    }

    /// The pid of the owner, in its own namespace.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Whether the owner still lives, as seen from this process.
    pub fn state(&self) -> OwnerState {
        if self.start == 0 || self.namespace == 0 || sys::pid_namespace() != Some(self.namespace) {
            return OwnerState::Unknown;
        }
        match sys::start_time(self.pid) {
            Ok(Some(start)) if start == self.start => OwnerState::Alive,
            Ok(_) => OwnerState::Dead,
            // Out of descriptors, say: no proof of anything.
            Err(_) => OwnerState::Unknown,
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}-{}", self.pid, self.start, self.namespace)
    }
}

/// The text is no owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not an owner: expected PID-START-NAMESPACE")]
pub struct ParseOwnerError;

impl FromStr for Owner {
    type Err = ParseOwnerError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut parts = text.split('-');
        let mut next = || parts.next().and_then(|part| part.parse().ok());
        let (Some(pid), Some(start), Some(namespace)) = (next(), next(), next()) else {
            return Err(ParseOwnerError);
        };
        if parts.next().is_some() {
            return Err(ParseOwnerError);
        }
        Ok(Self {
            pid: u32::try_from(pid).map_err(|_| ParseOwnerError)?,
            start,
            namespace,
        })
    }
}

#[cfg(target_os = "linux")]
mod sys {
    use std::io;
    use std::os::unix::fs::MetadataExt;

    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process};

    /// Field 22 of `/proc/PID/stat`; `None` where there is no such process. A zombie counts as
    /// gone: nothing can be asked of it any more.
    ///
    /// Where `/proc` hides the processes of others (`hidepid`), one that it does not show may live
    /// all the same; that is an error.
    pub(super) fn start_time(pid: u32) -> io::Result<Option<u64>> {
        match std::fs::read(format!("/proc/{pid}/stat")) {
            Ok(stat) => parse(&stat),
            Err(error) => missing(pid, error),
        }
    }

    /// What it means that `/proc` does not show `pid`.
    pub(super) fn missing(pid: u32, error: io::Error) -> io::Result<Option<u64>> {
        // The latter: it ended between the opening of its file and the reading.
        let not_shown = error.kind() == io::ErrorKind::NotFound
            || Errno::from_io_error(&error) == Some(Errno::SRCH);
        let known = i32::try_from(pid).ok().and_then(Pid::from_raw);
        let gone = known.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH));
        if not_shown && gone {
            Ok(None)
        } else {
            Err(error)
        }
    }

    pub(super) fn parse(stat: &[u8]) -> io::Result<Option<u64>> {
        let unreadable = || io::Error::from(io::ErrorKind::InvalidData);
        // The name in parentheses may hold any bytes, parentheses included.
        let name_end = stat.iter().rposition(|byte| *byte == b')');
        let fields = stat
            .get(name_end.ok_or_else(unreadable)? + 1..)
            .and_then(|fields| std::str::from_utf8(fields).ok())
            .ok_or_else(unreadable)?;
        let mut fields = fields.split_ascii_whitespace();
        if matches!(fields.next(), Some("Z" | "X")) {
            return Ok(None);
        }
        let start = fields.nth(18).and_then(|start| start.parse().ok());
        start.map(Some).ok_or_else(unreadable)
    }

    pub(super) fn pid_namespace() -> Option<u64> {
        Some(std::fs::metadata("/proc/self/ns/pid").ok()?.ino())
    }
}

#[cfg(not(target_os = "linux"))]
mod sys {
    pub(super) fn start_time(_pid: u32) -> std::io::Result<Option<u64>> {
        Ok(None)
    }

    pub(super) fn pid_namespace() -> Option<u64> {
        None
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn this_process_lives_and_round_trips() {
        let owner = Owner::current();
        assert_eq!(owner.state(), OwnerState::Alive);
        assert_eq!(owner.to_string().parse(), Ok(owner));
    }

    #[test]
    fn a_recycled_pid_is_dead_and_a_foreign_namespace_unknown() {
        let owner = Owner::current();
        let recycled = Owner {
            start: owner.start + 1,
            ..owner
        };
        assert_eq!(recycled.state(), OwnerState::Dead);
        let foreign = Owner {
            namespace: 1,
            ..owner
        };
        assert_eq!(foreign.state(), OwnerState::Unknown);
    }

    #[test]
    fn a_process_that_is_hidden_is_not_dead() {
        use std::io;

        let hidden = || io::Error::from(io::ErrorKind::NotFound);
        assert!(sys::missing(std::process::id(), hidden()).is_err());
        // Above the largest that a kernel gives out.
        let nobody = (1 << 22) + 1;
        assert_eq!(sys::missing(nobody, hidden()).unwrap(), None);
        let descriptors = io::Error::from(rustix::io::Errno::MFILE);
        assert!(sys::missing(nobody, descriptors).is_err());
    }

    #[test]
    fn a_host_whose_name_is_no_text_lives() {
        // The kernel cuts names after 15 bytes, which may be in the middle of a character.
        std::fs::write(
            "/proc/thread-self/comm",
            &"\u{65e5}\u{672c}".as_bytes()[..5],
        )
        .unwrap();
        let stat = std::fs::read("/proc/thread-self/stat").unwrap();
        assert!(std::str::from_utf8(&stat).is_err());
        assert!(sys::parse(&stat).unwrap().is_some());
    }

    #[test]
    fn other_text_is_no_owner() {
        for text in ["", "1", "1-2", "1-2-3-4", "a-b-c", "99999999999-1-1"] {
            assert_eq!(text.parse::<Owner>(), Err(ParseOwnerError), "{text}");
        }
    }
}
