//! What `/proc` says of processes, and signals that cannot hit a recycled pid.

use std::collections::HashSet;
use std::fs;
use std::io::{self, Read};

use prx_runtime_core::EXECUTION_ID_VARIABLE;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, pidfd_open, pidfd_send_signal, waitid,
};

/// The process is on its way out (`PF_EXITING`): it runs no code of its own any more.
const EXITING: u64 = 0x4;

/// One line of the process table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Process {
    pub(super) pid: i32,
    pub(super) parent: i32,
    pub(super) group: i32,
    /// Clock ticks since boot. With the pid, it names a process for good.
    pub(super) start: u64,
    /// Neither a zombie nor exiting.
    pub(super) alive: bool,
    /// Ended, and waited for by nobody yet.
    pub(super) zombie: bool,
}

impl Process {
    /// What the table says of `pid` now.
    pub(super) fn read(pid: i32) -> Option<Self> {
        Self::try_read(pid).ok().flatten()
    }

    /// As [`read`](Self::read), with an error where it cannot be known.
    fn try_read(pid: i32) -> io::Result<Option<Self>> {
        let mut stat = [0; 1024];
        let read =
            fs::File::open(format!("/proc/{pid}/stat")).and_then(|mut file| file.read(&mut stat));
        Ok(known(read)?.and_then(|read| Self::parse(pid, &stat[..read])))
    }

    fn parse(pid: i32, stat: &[u8]) -> Option<Self> {
        // The name stands in parentheses and may hold anything, parentheses included.
        let name_end = stat.iter().rposition(|byte| *byte == b')')?;
        let fields = std::str::from_utf8(stat.get(name_end + 2..)?).ok()?;
        let fields: Vec<&str> = fields.split_ascii_whitespace().take(20).collect();
        let number = |index: usize| fields.get(index)?.parse::<u64>().ok();
        let state = *fields.first()?;
        let zombie = matches!(state, "Z" | "X" | "x");
        Some(Self {
            pid,
            zombie,
            parent: i32::try_from(number(1)?).ok()?,
            group: i32::try_from(number(2)?).ok()?,
            start: number(19)?,
            alive: !zombie && number(6)? & EXITING == 0,
        })
    }

    /// What names this process for good.
    pub(super) fn identity(&self) -> (i32, u64) {
        (self.pid, self.start)
    }

    /// The value of the cookie variable, where the process carries one and we may look.
    pub(super) fn cookie(&self) -> io::Result<Option<String>> {
        let environ = known(fs::read(format!("/proc/{}/environ", self.pid)))?.unwrap_or_default();
        let value = environ.split(|byte| *byte == 0).find_map(|entry| {
            entry
                .strip_prefix(EXECUTION_ID_VARIABLE.as_bytes())?
                .strip_prefix(b"=")
        });
        Ok(value.and_then(|value| String::from_utf8(value.to_vec()).ok()))
    }

    /// Signals this very process, or nothing if it has gone.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(pid) = Pid::from_raw(self.pid) else {
            return;
        };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else {
            return;
        };
        // The descriptor holds on to whatever has the pid now; only then is it compared.
        if Self::read(self.pid).is_some_and(|now| now.start == self.start) {
            // Gone in between, or not ours to signal: either way there is nothing to be done.
            let _ = pidfd_send_signal(descriptor, signal);
        }
    }
}

/// Takes the exit status of a process that we ended, where this process is who inherits orphans
/// (pid 1 of a container, a subreaper): nobody else would take it. Says whether there is nothing
/// (more) to take.
pub(super) fn reap_inherited(&(pid, start): &(i32, u64)) -> bool {
    let own = std::process::id().cast_signed();
    let Some(id) = Pid::from_raw(pid) else {
        return true;
    };
    // A child of ours keeps its pid until we take its status: it cannot change hands in between.
    let inherited = Process::read(pid).is_some_and(|now| now.start == start && now.parent == own);
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    !inherited || !matches!(waitid(WaitId::Pid(id), look), Ok(None))
}

/// Whether the process is no more, or a zombie: with the first process of a PID namespace, all that
/// was in there has ended by then.
pub(super) fn is_gone(&(pid, start): &(i32, u64)) -> bool {
    Process::read(pid).is_none_or(|now| now.start != start || now.zombie)
}

/// The process table, without this process and its ancestors. An error where it cannot be read or
/// would be incomplete, which must not be taken for nothing being there.
pub(super) fn others() -> io::Result<Vec<Process>> {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc")? {
        if let Some(pid) = entry?.file_name().to_str().and_then(|pid| pid.parse().ok()) {
            processes.extend(Process::try_read(pid)?);
        }
    }
    let mut own = std::process::id().cast_signed();
    while let Some(index) = processes.iter().position(|process| process.pid == own) {
        own = processes.swap_remove(index).parent;
    }
    Ok(processes)
}

/// What was read of a process; `None` where it has gone or is not for us to see, which is an answer
/// too. Being out of descriptors, say, is none.
fn known<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) => match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM | libc::EINTR) => Err(error),
            _ => Ok(None),
        },
    }
}

/// Extends `roots` by everything in `processes` that descends from one of them.
pub(super) fn with_descendants(roots: &mut HashSet<i32>, processes: &[Process]) {
    loop {
        let before = roots.len();
        for process in processes {
            if roots.contains(&process.parent) {
                roots.insert(process.pid);
            }
        }
        if roots.len() == before {
            return;
        }
    }
}

/// The pid that was given out last in our namespace.
pub(super) fn last_pid() -> Option<i32> {
    let mut text = [0; 128];
    let read = fs::File::open("/proc/loadavg").ok()?.read(&mut text).ok()?;
    std::str::from_utf8(&text[..read])
        .ok()?
        .split_ascii_whitespace()
        .nth(4)?
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_names_are_parsed() {
        let line = b"42 (a) Z 1 (b)) S 7 5 5 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 1 0 777 9 9\n";
        let process = Process::parse(42, line).unwrap();
        assert_eq!((process.parent, process.group, process.start), (7, 5, 777));
        assert!(process.alive);
    }

    #[test]
    fn zombies_and_exiting_processes_are_not_alive() {
        for line in [
            &b"1 (x) Z 7 5 5 0 -1 0 1 2 3 4 5 6 7 8 20 0 1 0 777"[..],
            b"1 (x) R 7 5 5 0 -1 4 1 2 3 4 5 6 7 8 20 0 1 0 777",
        ] {
            assert!(!Process::parse(1, line).unwrap().alive);
        }
    }

    #[test]
    fn this_process_and_its_parents_are_never_listed() {
        let own = std::process::id().cast_signed();
        let parent = Process::read(own).unwrap().parent;
        assert!(
            others()
                .unwrap()
                .iter()
                .all(|process| process.pid != own && process.pid != parent)
        );
    }

    #[test]
    fn a_process_that_has_another_start_is_not_signalled() {
        let own = Process::read(std::process::id().cast_signed()).unwrap();
        let recycled = Process {
            start: own.start + 1,
            ..own
        };
        // Would end this test run if it were delivered.
        recycled.signal(Signal::KILL);
    }
}
