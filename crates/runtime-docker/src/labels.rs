//! Whose container it is: what is written on it, and what can be told from that later.

use std::collections::HashMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prx_runtime_core::{Owner, OwnerState, Plan};

use crate::listener::Listener;

/// On every container of ours: the [`Owner`], a process.
pub(crate) const OWNER: &str = "prx-runtime.owner";
/// The machine and the boot in which that process lives.
const HOST: &str = "prx-runtime.host";
/// The execution.
const EXECUTION: &str = "prx-runtime.execution";
/// On containers that `auto_remove = false` keeps.
const KEPT: &str = "prx-runtime.kept";

/// When the time of the execution is up, in seconds since 1970: for people, and for tools that look
/// for what should have ended. The sweep goes by the owner alone.
const DEADLINE: &str = "prx-runtime.deadline";

/// The labels of one container: that of a plan, or one that is never started.
pub(crate) fn labels(plan: Option<&Plan>, kept: bool) -> HashMap<String, String> {
    let mut labels = HashMap::from([
        (OWNER.to_owned(), Owner::current().to_string()),
        (HOST.to_owned(), Host::current().to_string()),
    ]);
    if let Some(plan) = plan {
        labels.insert(EXECUTION.to_owned(), plan.id.to_string());
        let deadline = plan
            .timeout
            .and_then(|timeout| SystemTime::now().checked_add(timeout))
            .and_then(|deadline| deadline.duration_since(UNIX_EPOCH).ok());
        if let Some(deadline) = deadline {
            labels.insert(DEADLINE.to_owned(), deadline.as_secs().to_string());
        }
    }
    if kept {
        labels.insert(KEPT.to_owned(), "true".to_owned());
    }
    labels
}

/// Whether a container with these labels is kept on purpose.
pub(crate) fn is_kept(labels: &HashMap<String, String>) -> bool {
    labels.contains_key(KEPT)
}

/// A container of ours, as an engine lists it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) labels: &'a HashMap<String, String>,
    /// Whether it may run, as far as the engine says.
    pub(crate) may_run: bool,
    /// When it was made, in seconds since 1970.
    pub(crate) made: Option<u64>,
}

/// Whether the owner of a container still lives. `listener`: who listens at the engine's socket.
///
/// A process id means something on one machine only, and an engine may serve several.
pub(crate) fn owner_state(found: Found<'_>, listener: Option<&Listener>) -> OwnerState {
    let owner = found
        .labels
        .get(OWNER)
        .and_then(|owner| owner.parse::<Owner>().ok());
    let host = found.labels.get(HOST).and_then(|host| Host::parse(host));
    let here = Here {
        host: Host::current(),
        booted: booted(),
        has_engine: listener.is_some_and(Listener::is_engine),
    };
    match (owner, host) {
        (Some(owner), Some(host)) => judge(owner, &host, found, &here),
        _ => OwnerState::Unknown,
    }
}

/// This machine, as seen from a process that asks an engine.
#[derive(Debug)]
struct Here {
    host: Host,
    /// When it was started, in seconds since 1970.
    booted: Option<u64>,
    /// Whether the engine runs on it.
    has_engine: bool,
}

fn judge(owner: Owner, host: &Host, found: Found<'_>, here: &Here) -> OwnerState {
    if host.boot.is_empty() {
        return OwnerState::Unknown;
    }
    if host.boot == here.host.boot {
        return owner.state();
    }
    // An earlier boot of this machine left no process alive. But machines that were cloned may share
    // their id, and an engine as well, whose socket may be forwarded. So the engine must be this
    // machine's own, and what it has from before the boot does not run any more.
    let same_machine = !host.machine.is_empty() && host.machine == here.host.machine;
    let is_older = found
        .made
        .zip(here.booted)
        .is_some_and(|(made, booted)| made < booted);
    if same_machine && here.has_engine && !found.may_run && is_older {
        OwnerState::Dead
    } else {
        OwnerState::Unknown
    }
}

/// When this machine was started, in seconds since 1970.
fn booted() -> Option<u64> {
    let stat = fs::read_to_string("/proc/stat").ok()?;
    let time = stat.lines().find_map(|line| line.strip_prefix("btime "))?;
    time.trim().parse().ok()
}

/// A machine, and one of its boots.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Host {
    machine: String,
    boot: String,
}

impl Host {
    fn current() -> Self {
        let read = |path| {
            fs::read_to_string(path)
                .unwrap_or_default()
                .trim()
                .to_owned()
        };
        Self {
            machine: read("/etc/machine-id"),
            boot: read("/proc/sys/kernel/random/boot_id"),
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (machine, boot) = text.split_once('/')?;
        Some(Self {
            machine: machine.to_owned(),
            boot: boot.to_owned(),
        })
    }
}

impl std::fmt::Display for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.machine, self.boot)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    fn host(machine: &str, boot: &str) -> Host {
        Host {
            machine: machine.into(),
            boot: boot.into(),
        }
    }

    fn found(labels: &HashMap<String, String>) -> Found<'_> {
        Found {
            labels,
            may_run: false,
            made: Some(0),
        }
    }

    fn state(labels: &HashMap<String, String>) -> OwnerState {
        owner_state(found(labels), Some(&Listener::named("dockerd")))
    }

    #[test]
    fn this_process_lives() {
        assert_eq!(state(&labels(None, false)), OwnerState::Alive);
    }

    /// An owner whose pid no system gives, in this namespace.
    pub(crate) fn gone() -> Owner {
        let current = Owner::current().to_string();
        let (_, rest) = current.split_once('-').unwrap();
        format!("{}-{rest}", u32::MAX).parse().unwrap()
    }

    #[test]
    fn only_what_can_be_proved_is_dead() {
        let nothing = HashMap::new();
        let here = |has_engine| Here {
            host: host("m", "b"),
            booted: Some(1000),
            has_engine,
        };
        let container = |may_run, made| Found {
            labels: &nothing,
            may_run,
            made,
        };
        let old = container(false, Some(999));
        let state = |host: Host, found, has_engine| judge(gone(), &host, found, &here(has_engine));
        // Of this boot: the process is looked for.
        assert_eq!(state(host("m", "b"), old, false), OwnerState::Dead);
        let earlier = || host("m", "earlier");
        assert_eq!(state(earlier(), old, true), OwnerState::Dead);
        for (what, host, found, has_engine) in [
            ("a forwarded socket", earlier(), old, false),
            ("it runs", earlier(), container(true, Some(999)), true),
            (
                "made since the boot",
                earlier(),
                container(false, Some(1000)),
                true,
            ),
            ("made at no time", earlier(), container(false, None), true),
            ("another machine", host("other", "b2"), old, true),
            ("no machine", host("", "b2"), old, true),
            ("no boot", host("m", ""), old, true),
        ] {
            assert_eq!(
                state(host, found, has_engine),
                OwnerState::Unknown,
                "{what}"
            );
        }
    }

    #[test]
    fn an_earlier_boot_counts_where_the_engine_is_here() {
        let mut labels = labels(None, false);
        labels.insert(OWNER.to_owned(), gone().to_string());
        let earlier = Host {
            boot: "earlier".to_owned(),
            ..Host::current()
        };
        labels.insert(HOST.to_owned(), earlier.to_string());
        let state = |program| owner_state(found(&labels), Some(&Listener::named(program)));
        let dockerd = state("dockerd");
        // Not every machine has an id.
        assert_eq!(dockerd == OwnerState::Dead, !earlier.machine.is_empty());
        assert_eq!(state("ssh"), OwnerState::Unknown);
        assert_eq!(owner_state(found(&labels), None), OwnerState::Unknown);
    }

    #[test]
    fn foreign_labels_say_nothing() {
        let labels = HashMap::from([(OWNER.to_owned(), "me".to_owned())]);
        assert_eq!(state(&labels), OwnerState::Unknown);
    }
}
