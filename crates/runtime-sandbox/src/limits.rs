//! `[security.resources]`: what the operating system limits.

use prx_runtime_core::config::ResourceLimits;
use prx_runtime_core::{Error, ErrorKind, ExecutionId, Result};
use rustix::process::{Resource, getrlimit};

use crate::cgroup::{Cgroups, Group};
use crate::order::Limit;

/// Between the warning of the CPU limit (XCPU) and its end (KILL), in seconds.
const CPU_GRACE: u64 = 1;
const MEBIBYTE: u64 = 1 << 20;
/// Said of a limit that is a cgroup's, where nothing keeps the command in it.
const WHILE_INSIDE: &str = " (unless the command leaves its cgroup)";

/// What stands around a command and counts as a process, beside it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Processes that are not the command's: in the cgroup, and generations above the command.
    pub(crate) launchers: u32,
    /// The command is in a user namespace of its own, whose first process is a launcher.
    pub(crate) user_namespace: bool,
    /// Nothing keeps the command from the files by which processes change their cgroup. Whoever may
    /// put a command into one may take it out again, and the command has the same rights.
    pub(crate) can_leave: bool,
}

/// The limits of a configuration, with the means that this machine has for them.
#[derive(Debug)]
pub(crate) struct Limits {
    config: ResourceLimits,
    cgroups: Cgroups,
    processes: Processes,
    pub(crate) applied: Vec<String>,
    pub(crate) not_enforced: Vec<String>,
}

/// What bounds the number of processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Processes {
    Unlimited,
    Cgroup,
    /// `RLIMIT_NPROC` within the user namespace, where nobody else counts.
    Namespace,
    /// `RLIMIT_NPROC` over all processes of the user, those that run already not counted.
    User,
}

/// The limits of one execution.
pub(crate) struct Opened {
    pub(crate) limits: Vec<Limit>,
    pub(crate) group: Option<Group>,
}

impl Limits {
    /// Finds out what can be enforced. What cannot is listed.
    pub(crate) fn new(config: &ResourceLimits, around: Surroundings) -> Self {
        let wanted = config.max_memory_mb.is_some() || config.max_subprocesses.is_some();
        let cgroups = if wanted {
            Cgroups::find()
        } else {
            Cgroups::default()
        };
        let mut limits = Self {
            config: config.clone(),
            cgroups,
            processes: Processes::Unlimited,
            applied: Vec::new(),
            not_enforced: Vec::new(),
        };
        limits.judge(around);
        limits
    }

    pub(crate) fn is_none(&self) -> bool {
        self.config.is_unlimited()
    }

    fn judge(&mut self, around: Surroundings) {
        let while_inside = if around.can_leave { WHILE_INSIDE } else { "" };
        if let Some(mebibytes) = self.config.max_memory_mb {
            self.applied.push(if self.cgroups.limits_memory() {
                format!("memory limit {mebibytes} MiB{while_inside}")
            } else {
                format!("memory limit {mebibytes} MiB a process")
            });
        }
        if let Some(seconds) = self.config.max_cpu_time_seconds {
            self.applied
                .push(format!("processor time limit {seconds} s a process"));
        }
        if let Some(count) = self.config.max_subprocesses {
            let root = rustix::process::getuid().is_root();
            self.processes = if self.cgroups.limits_processes() {
                Processes::Cgroup
            } else if root {
                self.not_enforced.push(format!(
                    "security.resources.max_subprocesses = {count}: root is exempt from the limit \
                     of processes, and no cgroup with the pids controller can be made here"
                ));
                Processes::Unlimited
            } else if around.user_namespace && counts_within_namespaces() {
                Processes::Namespace
            } else {
                Processes::User
            };
            match self.processes {
                Processes::Unlimited => {}
                Processes::Cgroup => {
                    self.applied
                        .push(format!("process limit {count}{while_inside}"));
                }
                Processes::Namespace => self.applied.push(format!("process limit {count}")),
                Processes::User => self.applied.push(format!(
                    "process limit {count} beside what the user runs when the command starts"
                )),
            }
        }
        if let Some(count) = self.config.max_open_files {
            self.applied
                .push(format!("open file limit {count} a process"));
        }
    }

    /// The limits for one execution: the group is made, and goes when it is dropped.
    pub(crate) fn open(&self, id: ExecutionId, around: Surroundings) -> Result<Opened> {
        let mut limits = Vec::new();
        let mut group_memory = None;
        let mut group_processes = None;
        if let Some(mebibytes) = self.config.max_memory_mb {
            let bytes = mebibytes.saturating_mul(MEBIBYTE);
            if self.cgroups.limits_memory() {
                group_memory = Some(bytes);
            } else {
                // Not the address space: runtimes reserve much more of it than they ever use.
                limits.push(limit(Resource::Data, bytes, bytes));
            }
        }
        if let Some(seconds) = self.config.max_cpu_time_seconds {
            limits.push(limit(
                Resource::Cpu,
                seconds,
                seconds.saturating_add(CPU_GRACE),
            ));
        }
        if let Some(count) = self.config.max_subprocesses {
            // The main process, and those that it may start.
            let own = count.saturating_add(1);
            match self.processes {
                Processes::Unlimited => {}
                Processes::Cgroup => {
                    group_processes = Some(own.saturating_add(around.launchers.into()))
                }
                Processes::Namespace => {
                    let all = own.saturating_add(1);
                    limits.push(limit(Resource::Nproc, all, all));
                }
                Processes::User => {
                    let around = tasks_of_the_user().saturating_add(around.launchers.into());
                    let all = own.saturating_add(around);
                    limits.push(limit(Resource::Nproc, all, all));
                }
            }
        }
        if let Some(count) = self.config.max_open_files {
            limits.push(limit(Resource::Nofile, count, count));
        }
        let group = if group_memory.is_some() || group_processes.is_some() {
            let group = self.cgroups.create(id, group_memory, group_processes);
            Some(group.map_err(|error| {
                Error::new(
                    ErrorKind::Refused,
                    "the cgroup of the command cannot be made",
                )
                .with_source(error)
                .with_hint("take the limits out of security.resources, or permit the cgroup")
            })?)
        } else {
            None
        };
        Ok(Opened { limits, group })
    }
}

/// A limit no higher than the one that the host itself is under.
fn limit(resource: Resource, soft: u64, hard: u64) -> Limit {
    let ceiling = getrlimit(resource).maximum.unwrap_or(u64::MAX);
    let number = match resource {
        Resource::Cpu => libc::RLIMIT_CPU,
        Resource::Data => libc::RLIMIT_DATA,
        Resource::Nproc => libc::RLIMIT_NPROC,
        _ => libc::RLIMIT_NOFILE,
    };
    Limit {
        resource: u64::from(number),
        soft: soft.min(ceiling),
        hard: hard.min(ceiling),
    }
}

/// Since Linux 5.14 processes are counted for each user namespace by itself.
fn counts_within_namespaces() -> bool {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy();
    let mut numbers = release
        .split(['.', '-'])
        .map_while(|part| part.parse::<u32>().ok());
    (numbers.next(), numbers.next()) >= (Some(5), Some(14))
}

/// How many tasks the user has now, as the limit of processes counts them.
fn tasks_of_the_user() -> u64 {
    use std::os::unix::fs::MetadataExt;
    let own = rustix::process::getuid().as_raw();
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return 0;
    };
    processes
        .flatten()
        .filter(|entry| {
            entry
                .file_name()
                .to_string_lossy()
                .bytes()
                .all(|c| c.is_ascii_digit())
        })
        .filter(|entry| entry.metadata().is_ok_and(|of| of.uid() == own))
        .map(|entry| {
            std::fs::read_dir(entry.path().join("task")).map_or(1, |tasks| tasks.count() as u64)
        })
        .sum()
}
