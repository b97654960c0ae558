//! The init that an engine puts into a container as PID 1, and what depends on which it is.

use rustix::process::{Resource, getrlimit};

/// The init of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Init {
    /// Docker's, which is tini and lies in every container that has one.
    Tini,
    /// Podman's.
    Catatonit,
}

/// What an init says of a program that it could not execute.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExecFailure {
    NotFound,
    NotExecutable,
}

impl Init {
    /// What stands before the command. PID 1 passes signals to its child alone; one more init
    /// below it passes them to the whole process group, where the kernel has what that needs.
    pub(crate) fn prefix(self, oci_runtime: Option<&str>) -> &'static [&'static str] {
        match self {
            Self::Tini if is_gvisor(oci_runtime) => &[],
            Self::Tini => &["/sbin/docker-init", "-s", "-g", "--"],
            Self::Catatonit => &["/run/podman-init", "-g", "--"],
        }
    }

    /// How a variable of the image is taken away.
    pub(crate) fn unset(self, name: &str) -> String {
        match self {
            Self::Tini => name.to_owned(),
            // A bare name would mean the engine's own variable.
            Self::Catatonit => format!("{name}="),
        }
    }

    /// Limits of processes that must be named where any is. Podman as root takes 2^20 for these,
    /// which it cannot have on a machine with less. (The service itself has no more processes than
    /// the kernel has pids, of which there are these at least.)
    pub(crate) fn limits_to_name(self) -> Vec<(&'static str, i64)> {
        const PODMANS: u64 = 1 << 20;
        const PIDS: u64 = 1 << 15;
        let here = match self {
            Self::Tini => return Vec::new(),
            Self::Catatonit => [
                ("nofile", Resource::Nofile, PODMANS),
                ("nproc", Resource::Nproc, PIDS),
            ],
        };
        here.into_iter()
            .filter_map(|(name, resource, most)| {
                let limit = getrlimit(resource)
                    .maximum
                    .filter(|limit| *limit < PODMANS)?;
                Some((name, i64::try_from(limit.min(most)).ok()?))
            })
            .collect()
    }

    /// What it reports, where an end with `code` and this on stderr is its report on `program`.
    /// A command may print the same: it proves nothing.
    pub(crate) fn exec_failure(
        self,
        code: i64,
        stderr: &str,
        program: &str,
    ) -> Option<ExecFailure> {
        let reason = match self {
            Self::Tini => stderr
                .strip_prefix("[FATAL tini (")
                .and_then(|rest| after_pid(rest, ")] exec "))?
                .strip_prefix(program)?
                .strip_prefix(" failed: ")?,
            Self::Catatonit => stderr
                .strip_prefix("ERROR (catatonit:")
                .and_then(|rest| after_pid(rest, "): failed to exec pid1: "))?,
        };
        let reason = reason.strip_suffix('\n')?;
        if reason.contains('\n') {
            return None;
        }
        match (self, code) {
            (Self::Tini, 127) => Some(ExecFailure::NotFound),
            (Self::Tini, 126) => Some(ExecFailure::NotExecutable),
            (Self::Catatonit, 1) if reason == "No such file or directory" => {
                Some(ExecFailure::NotFound)
            }
            (Self::Catatonit, 1) => Some(ExecFailure::NotExecutable),
            _ => None,
        }
    }
}

/// Whether containers have the kernel of gVisor: not every version of it has subreapers, and none
/// applies our filter of system calls.
pub(crate) fn is_gvisor(oci_runtime: Option<&str>) -> bool {
    oci_runtime.is_some_and(|name| name.starts_with("runsc"))
}

/// What follows a pid and `mark`.
fn after_pid<'a>(text: &'a str, mark: &str) -> Option<&'a str> {
    let (pid, rest) = text.split_once(mark)?;
    pid.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tinis_own_line_is_its_report() {
        let report = |line: &str, program| Init::Tini.exec_failure(127, line, program);
        let line = "[FATAL tini (8)] exec nope failed: No such file or directory\n";
        assert_eq!(report(line, "nope"), Some(ExecFailure::NotFound));
        assert_eq!(
            Init::Tini.exec_failure(126, line, "nope"),
            Some(ExecFailure::NotExecutable)
        );
        assert_eq!(Init::Tini.exec_failure(1, line, "nope"), None);
        assert_eq!(report(line, "other"), None);
        assert_eq!(report(&format!("x{line}"), "nope"), None);
        assert_eq!(report(&format!("{line}x"), "nope"), None);
        assert_eq!(report("sh: nope: not found\n", "nope"), None);
    }

    #[test]
    fn only_catatonits_own_line_is_its_report() {
        let report = |code, line: &str| Init::Catatonit.exec_failure(code, line, "nope");
        let line = "ERROR (catatonit:8): failed to exec pid1: No such file or directory\n";
        assert_eq!(report(1, line), Some(ExecFailure::NotFound));
        assert_eq!(report(127, line), None);
        assert_eq!(report(1, &format!("{line}\n")), None);
        let line = "ERROR (catatonit:8): failed to exec pid1: Permission denied\n";
        assert_eq!(report(1, line), Some(ExecFailure::NotExecutable));
        assert_eq!(report(1, "ERROR: something else\n"), None);
    }
}
