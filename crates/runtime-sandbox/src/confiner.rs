//! What the native backend is given: one confiner for each kind of sandbox.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::PathBuf;
use std::sync::Arc;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::config::{SandboxKind, SandboxLevel, SecurityConfig};
use prx_runtime_core::confine::{Confiner, Hold, Launch, LocalCommand};
use prx_runtime_core::{EXECUTION_ID_VARIABLE, Error, ErrorKind, Isolation, Result};

use crate::bubblewrap::{self, Frame};
use crate::cgroup::{self, Group};
use crate::limits::{Limits, Surroundings};
use crate::machine::Machine;
use crate::order::{Guard, Launcher, Lent, Order, Ordered, Role};
use crate::policy::{self, Policy};
use crate::seccomp::{self, Around};
use crate::{account, claims, firejail, landlock, memfd};

/// Confines commands by what `[security]` says.
#[derive(Debug)]
pub(crate) struct Sandbox {
    name: &'static str,
    machine: Machine,
    means: Means,
    launcher: Launcher,
    limits: Limits,
    around: Surroundings,
    isolation: Arc<Isolation>,
}

/// What confines.
#[derive(Debug)]
enum Means {
    /// Nothing does; there are limits at most.
    Nothing,
    Bubblewrap(Program),
    Firejail(Program),
    Landlock {
        policy: Policy,
        rules: landlock::Ruleset,
    },
}

impl Means {
    fn policy(&self) -> Option<&Policy> {
        match self {
            Self::Nothing => None,
            Self::Bubblewrap(program) | Self::Firejail(program) => Some(&program.policy),
            Self::Landlock { policy, .. } => Some(policy),
        }
    }
}

/// A program that makes namespaces, and what they are to be.
#[derive(Debug)]
struct Program {
    file: PathBuf,
    policy: Policy,
    allow_network: bool,
    filter: Vec<u8>,
}

impl Program {
    fn new(file: PathBuf, policy: Policy, allow_network: bool) -> Self {
        Self {
            file,
            policy,
            allow_network,
            filter: seccomp::filter_bytes(Around::Namespaces, allow_network),
        }
    }
}

impl Sandbox {
    /// The sandbox of `kind`, without trying it. `missing` is what a stronger sandbox would have
    /// enforced and this machine cannot.
    pub(crate) fn new(
        machine: &Machine,
        kind: SandboxKind,
        security: &SecurityConfig,
        missing: Option<String>,
    ) -> Result<Self> {
        if !Launcher::EXISTS {
            return Err(Error::new(
                ErrorKind::Unsupported,
                "security.sandbox and security.resources need x86-64 or aarch64",
            ));
        }
        let config = &security.sandbox;
        let network = config.allow_network;
        let (means, mut isolation, around) = match kind {
            SandboxKind::Bubblewrap => {
                let file = machine.find("bwrap", "bubblewrap")?;
                let around = Surroundings {
                    launchers: 2,
                    user_namespace: true,
                    can_leave: false,
                };
                let isolation = claims::namespaced(
                    "bubblewrap",
                    "user, mount, pid, ipc, uts and cgroup namespaces",
                    network,
                );
                let program = Program::new(file, Policy::new(config)?, network);
                (Means::Bubblewrap(program), isolation, around)
            }
            SandboxKind::Firejail => {
                let file = machine.find("firejail", "firejail")?;
                account::check()?;
                let around = Surroundings {
                    launchers: 3,
                    user_namespace: false,
                    can_leave: false,
                };
                let isolation = claims::firejailed(network, machine.landlock());
                let program = Program::new(file, Policy::new(config)?, network);
                (Means::Firejail(program), isolation, around)
            }
            SandboxKind::Landlock => {
                let version = machine.landlock().unwrap_or(0);
                let (rules, isolation) = landlock::Ruleset::new(config, version)?;
                let around = Surroundings {
                    launchers: 0,
                    user_namespace: false,
                    can_leave: false,
                };
                let policy = Policy::new(config)?;
                (Means::Landlock { policy, rules }, isolation, around)
            }
            SandboxKind::None => {
                policy::configured(config)?;
                let around = Surroundings {
                    launchers: 0,
                    user_namespace: false,
                    can_leave: true,
                };
                (Means::Nothing, claims::bare(), around)
            }
            other => {
                return Err(Error::new(
                    ErrorKind::Unsupported,
                    format!("this build cannot confine by `{other}` (security.sandbox.backend)"),
                ));
            }
        };
        let limits = Limits::new(&security.resources, around);
        for limit in &limits.applied {
            isolation = isolation.applied(limit.clone());
        }
        let unhidden = means.policy().and_then(|policy| policy.not_enforced);
        for what in missing
            .into_iter()
            .chain(unhidden.map(str::to_owned))
            .chain(limits.not_enforced.iter().cloned())
        {
            isolation = isolation.not_enforced(what);
        }
        if config.level != SandboxLevel::BestEffort
            && let Some(what) = isolation.not_enforced.first()
        {
            return Err(
                Error::new(ErrorKind::Refused, format!("cannot be enforced: {what}")).with_hint(
                    "change the configuration or the machine, or set security.sandbox.level = \
                     \"best-effort\" to run all the same",
                ),
            );
        }
        let launcher = Launcher::new().map_err(|error| {
            Error::new(
                ErrorKind::Refused,
                "the launcher of confined commands cannot be made",
            )
            .with_source(error)
            .with_hint("the sysctl vm.memfd_noexec = 2 forbids it")
        })?;
        Ok(Self {
            name: kind.as_str(),
            machine: machine.clone(),
            means,
            launcher,
            limits,
            around,
            isolation: Arc::new(isolation),
        })
    }

    fn bubblewrap(&self, command: &LocalCommand, program: &Program) -> Result<Launch> {
        let rules = program.policy.rules(&command.working_dir)?;
        let opened = self.limits.open(command.id, self.around)?;
        let inner = self
            .launcher
            .ordered(&Order {
                role: Role::Stay,
                limits: &opened.limits,
                working_dir: Some(&command.working_dir),
                ..order_of(command)
            })
            .map_err(prepare)?;
        let filter = memfd::holding("prx-filter", &program.filter).map_err(prepare)?;
        let frame = Frame {
            allow_network: program.allow_network,
            filter: filter.as_raw_fd(),
        };
        let list = bubblewrap::arguments(frame, &rules);
        let list = memfd::holding("prx-arguments", &bubblewrap::encode(&list)).map_err(prepare)?;
        let options = vec!["--args".into(), list.as_raw_fd().to_string().into()];
        let mut held = vec![filter, list];
        held.extend(rules.into_iter().map(|rule| rule.file));
        self.within(command, program, options, inner, held, opened.group)
    }

    fn firejail(&self, command: &LocalCommand, program: &Program) -> Result<Launch> {
        let rules = program.policy.rules(&command.working_dir)?;
        let profile = firejail::profile(&rules, firejail::Caller::current())?;
        let apart = firejail::host_namespaces(program.allow_network).map_err(prepare)?;
        let ruleset = match self.machine.landlock() {
            Some(_) => landlock::write_rules(&rules)?,
            None => None,
        };
        let opened = self.limits.open(command.id, self.around)?;
        let inner = self
            .launcher
            .ordered(&Order {
                role: Role::Stay,
                limits: &opened.limits,
                working_dir: Some(&command.working_dir),
                guard: Guard {
                    filter: &program.filter,
                    ruleset: ruleset.as_ref().map(|rules| Lent {
                        file: rules.file.as_raw_fd(),
                        grants: &firejail::FRESH_AND_WRITABLE,
                        rights: rules.rights,
                    }),
                    apart: &apart,
                },
                ..order_of(command)
            })
            .map_err(prepare)?;
        let text = memfd::holding("prx-profile", profile.text.as_bytes()).map_err(prepare)?;
        let mut kept: Vec<RawFd> = inner.inherited.iter().map(AsRawFd::as_raw_fd).collect();
        kept.extend(ruleset.iter().map(|rules| rules.file.as_raw_fd()));
        let options = firejail::arguments(program.allow_network, text.as_raw_fd(), &kept);
        let mut held = vec![text];
        held.extend(profile.files);
        held.extend(rules.into_iter().map(|rule| rule.file));
        held.extend(ruleset.map(|rules| rules.file));
        self.within(command, program, options, inner, held, opened.group)
    }

    /// The launch of `program` with its options and, in the namespaces that it makes, of `inner`.
    fn within(
        &self,
        command: &LocalCommand,
        program: &Program,
        options: Vec<OsString>,
        inner: Ordered,
        held: Vec<OwnedFd>,
        group: Option<Group>,
    ) -> Result<Launch> {
        let Ordered {
            program: entry,
            args: entry_args,
            mut inherited,
            report,
        } = inner;
        let mut args = options;
        args.push(entry.into());
        args.extend(entry_args.map(OsString::from));
        inherited.extend(held);
        let name = program.file.file_name().unwrap_or_default().to_owned();
        let launch = Launch {
            program: program.file.clone(),
            name,
            args,
            environment: mark_of(command),
            working_dir: "/".into(),
            inherited,
            on_thread: None,
            report: Some(report),
            supervisors: self.around.launchers,
            hold: Box::new(()),
            isolation: Arc::clone(&self.isolation),
        };
        match group {
            Some(group) => self.joining(launch, group),
            None => Ok(launch),
        }
    }

    /// Starts what `launch` starts by way of a launcher that joins `group` first.
    fn joining(&self, launch: Launch, group: Group) -> Result<Launch> {
        let members = group.members().map_err(prepare)?;
        let outer = self
            .launcher
            .ordered(&Order {
                role: Role::Pass,
                limits: &[],
                joins: &cgroup::numbers(&members),
                working_dir: None,
                guard: Guard::default(),
                program: &launch.program,
                name: &launch.name,
                args: launch.args.iter().map(OsString::as_os_str).collect(),
                environment: pairs(&launch.environment),
            })
            .map_err(prepare)?;
        let Ordered {
            program,
            args,
            inherited,
            report: _,
        } = outer;
        let mut all = launch.inherited;
        all.extend(inherited);
        all.extend(members);
        Ok(Launch {
            name: program.clone().into(),
            program: program.into(),
            args: args.map(OsString::from).into(),
            inherited: all,
            hold: Box::new(Held(group)),
            ..launch
        })
    }

    /// The command itself, as the process that is started or what a launcher becomes.
    fn direct(&self, command: &LocalCommand) -> Result<Launch> {
        let opened = self.limits.open(command.id, self.around)?;
        let mut launch = Launch {
            program: command.program.clone(),
            name: command.name.clone(),
            args: command.args.clone(),
            environment: command.environment.clone(),
            working_dir: command.working_dir.clone(),
            inherited: Vec::new(),
            on_thread: None,
            report: None,
            supervisors: 0,
            hold: Box::new(()),
            isolation: Arc::clone(&self.isolation),
        };
        if self.limits.is_none() {
            return Ok(launch);
        }
        let members = match &opened.group {
            Some(group) => group.members().map_err(prepare)?,
            None => Vec::new(),
        };
        let ordered = self
            .launcher
            .ordered(&Order {
                role: Role::Become,
                limits: &opened.limits,
                joins: &cgroup::numbers(&members),
                ..order_of(command)
            })
            .map_err(prepare)?;
        let Ordered {
            program,
            args,
            inherited,
            report,
        } = ordered;
        launch.name = program.clone().into();
        launch.program = program.into();
        launch.args = args.map(OsString::from).into();
        launch.environment = mark_of(command);
        launch.inherited = inherited;
        launch.inherited.extend(members);
        launch.report = Some(report);
        if let Some(group) = opened.group {
            launch.hold = Box::new(Held(group));
        }
        Ok(launch)
    }
}

impl Confiner for Sandbox {
    fn name(&self) -> &str {
        self.name
    }

    fn confine(&self, command: &LocalCommand) -> Result<Launch> {
        match &self.means {
            Means::Nothing => self.direct(command),
            Means::Bubblewrap(program) => self.bubblewrap(command, program),
            Means::Firejail(program) => self.firejail(command, program),
            Means::Landlock { policy, rules } => {
                let hook = rules.for_thread(policy.rules(&command.working_dir)?)?;
                let mut launch = self.direct(command)?;
                launch.on_thread = Some(hook);
                Ok(launch)
            }
        }
    }

    fn hint(&self) -> Option<String> {
        match self.means {
            Means::Bubblewrap(_) => self.machine.hint(),
            Means::Firejail(_) => Some(firejail::HINT.to_owned()),
            Means::Nothing | Means::Landlock { .. } => None,
        }
    }

    fn isolation(&self) -> Arc<Isolation> {
        Arc::clone(&self.isolation)
    }
}

/// A group, and what its end says.
struct Held(Group);

impl Hold for Held {
    fn judge(&mut self, exit: Exit) -> Exit {
        // A child that the kernel ended is the command's own business; only where the main process
        // died by KILL is want of memory the reason.
        match exit {
            Exit::Signal(libc::SIGKILL) if self.0.ran_out_of_memory() => Exit::OutOfMemory,
            exit => exit,
        }
    }
}

/// The order for the command itself, with neither limits nor a directory to enter.
fn order_of(command: &LocalCommand) -> Order<'_> {
    Order {
        role: Role::Become,
        limits: &[],
        joins: &[],
        working_dir: None,
        guard: Guard::default(),
        program: &command.program,
        name: &command.name,
        args: command.args.iter().map(OsString::as_os_str).collect(),
        environment: pairs(&command.environment),
    }
}

fn pairs(environment: &[(OsString, OsString)]) -> Vec<(&OsStr, &OsStr)> {
    environment
        .iter()
        .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
        .collect()
}

/// A launcher has no use for variables; the mark lets it be found.
fn mark_of(command: &LocalCommand) -> Vec<(OsString, OsString)> {
    let mark = |(name, _): &&(OsString, OsString)| name == EXECUTION_ID_VARIABLE;
    command.environment.iter().filter(mark).cloned().collect()
}

fn prepare(error: std::io::Error) -> Error {
    Error::new(
        ErrorKind::Exhausted,
        "what the sandbox needs cannot be made",
    )
    .with_source(error)
}
