//! Whose container it is: what is written on it, and what can be told from that later.

use std::collections::HashMap;
use std::fs;
use std::time::{SystemTime, UNIX_EPOCH};

use prx_runtime_core::{Owner, OwnerState, Plan};

use crate::socket::Endpoint;

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

/// Whether the owner in these labels still lives, as seen from here through `endpoint`.
///
/// A process id means something on one machine only, and an engine may serve several.
pub(crate) fn owner_state(labels: &HashMap<String, String>, endpoint: &Endpoint) -> OwnerState {
    let owner = labels
        .get(OWNER)
        .and_then(|owner| owner.parse::<Owner>().ok());
    let host = labels.get(HOST).and_then(|host| Host::parse(host));
    match (owner, host) {
        (Some(owner), Some(host)) => judge(owner, &host, &Host::current(), endpoint),
        _ => OwnerState::Unknown,
    }
}

fn judge(owner: Owner, host: &Host, here: &Host, endpoint: &Endpoint) -> OwnerState {
    if host.boot.is_empty() {
        return OwnerState::Unknown;
    }
    if host.boot == here.boot {
        return owner.state();
    }
    // An earlier boot of this machine left no process alive. Machines that were cloned may share
    // their id, so it proves something only where the engine is this machine's own.
    let local = matches!(endpoint, Endpoint::Unix(_));
    if local && !host.machine.is_empty() && host.machine == here.machine {
        OwnerState::Dead
    } else {
        OwnerState::Unknown
    }
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    fn host(machine: &str, boot: &str) -> Host {
        Host {
            machine: machine.into(),
            boot: boot.into(),
        }
    }

    #[test]
    fn this_process_lives() {
        let labels = labels(None, false);
        assert_eq!(
            owner_state(&labels, &Endpoint::Unix("/x".into())),
            OwnerState::Alive
        );
    }

    #[test]
    fn only_what_can_be_proved_is_dead() {
        // A pid that no system gives, in this namespace.
        let mut parts: Vec<_> = Owner::current()
            .to_string()
            .split('-')
            .map(str::to_owned)
            .collect();
        parts[0] = u32::MAX.to_string();
        let gone: Owner = parts.join("-").parse().unwrap();
        let unix = Endpoint::Unix("/x".into());
        let tcp = Endpoint::Tcp("x:1".into());
        let here = host("m", "b");
        let state = |host: Host, endpoint| judge(gone, &host, &here, endpoint);
        assert_eq!(state(host("m", "b"), &tcp), OwnerState::Dead);
        assert_eq!(state(host("m", "earlier"), &unix), OwnerState::Dead);
        assert_eq!(state(host("m", "earlier"), &tcp), OwnerState::Unknown);
        assert_eq!(state(host("other", "b2"), &unix), OwnerState::Unknown);
        assert_eq!(state(host("", "b2"), &unix), OwnerState::Unknown);
        assert_eq!(state(host("m", ""), &unix), OwnerState::Unknown);
    }

    #[test]
    fn foreign_labels_say_nothing() {
        let labels = HashMap::from([(OWNER.to_owned(), "me".to_owned())]);
        assert_eq!(
            owner_state(&labels, &Endpoint::Unix("/x".into())),
            OwnerState::Unknown
        );
    }
}
