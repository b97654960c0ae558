//! What a process has and what it left.

/// Descriptors and threads of this process, at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Belongings {
    /// What each descriptor refers to, sorted.
    descriptors: Vec<String>,
    threads: usize,
}

impl Belongings {
    /// Those of now; `None` where the system does not say.
    pub(crate) fn now() -> Option<Self> {
        Some(Self {
            descriptors: system::descriptors()?,
            threads: system::threads()?,
        })
    }

    /// What there is more of now, in words.
    pub(crate) fn grown_now(&self) -> Vec<String> {
        Self::now().map(|now| self.grown(&now)).unwrap_or_default()
    }

    fn grown(&self, now: &Self) -> Vec<String> {
        let mut grown = Vec::new();
        let (before, after) = (self.descriptors.len(), now.descriptors.len());
        if after > before {
            let mut new = now.descriptors.clone();
            for known in &self.descriptors {
                if let Some(at) = new.iter().position(|descriptor| descriptor == known) {
                    new.remove(at);
                }
            }
            grown.push(format!(
                "{before} descriptors became {after}; new: {}",
                new.join(", ")
            ));
        }
        if now.threads > self.threads {
            grown.push(format!("{} threads became {}", self.threads, now.threads));
        }
        grown
    }
}

/// Processes that this process left, in words: those that carry an execution id of ours, and
/// children that nobody waited for.
pub(crate) fn processes_left_now() -> Vec<String> {
    let mut left = system::carriers();
    left.extend(system::zombies());
    left
}

#[cfg(target_os = "linux")]
mod system {
    use std::fs;

    use prx_runtime_core::{EXECUTION_ID_VARIABLE, Owner};

    pub(super) fn descriptors() -> Option<Vec<String>> {
        let mut descriptors: Vec<_> = fs::read_dir("/proc/self/fd")
            .ok()?
            .filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .map(|target| target.to_string_lossy().into_owned())
            // The one that this very look needs.
            .filter(|target| !(target.starts_with("/proc/") && target.ends_with("/fd")))
            .collect();
        descriptors.sort_unstable();
        Some(descriptors)
    }

    pub(super) fn threads() -> Option<usize> {
        Some(fs::read_dir("/proc/self/task").ok()?.count())
    }

    /// Processes whose environment has an execution id of this process.
    pub(super) fn carriers() -> Vec<String> {
        let owner = format!(".{}", Owner::current());
        processes()
            .filter(|pid| {
                let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|variable| {
                    let variable = String::from_utf8_lossy(variable);
                    variable.split_once('=').is_some_and(|(name, value)| {
                        name == EXECUTION_ID_VARIABLE && value.ends_with(&owner)
                    })
                })
            })
            .map(|pid| format!("process {pid} lives on: {}", name(pid)))
            .collect()
    }

    /// Children of this process that have ended and that nobody waited for.
    pub(super) fn zombies() -> Vec<String> {
        let own = std::process::id().to_string();
        processes()
            .filter(|pid| {
                let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_some_and(|(_, fields)| {
                    let mut fields = fields.split(' ');
                    fields.next() == Some("Z") && fields.next() == Some(&own)
                })
            })
            .map(|pid| format!("child {pid} is a zombie: {}", name(pid)))
            .collect()
    }

    fn processes() -> impl Iterator<Item = u32> {
        fs::read_dir("/proc")
            .into_iter()
            .flatten()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
    }

    fn name(pid: u32) -> String {
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
        name.trim_end().to_owned()
    }
}

#[cfg(not(target_os = "linux"))]
mod system {
    pub(super) fn descriptors() -> Option<Vec<String>> {
        None
    }

    pub(super) fn threads() -> Option<usize> {
        None
    }

    pub(super) fn carriers() -> Vec<String> {
        Vec::new()
    }

    pub(super) fn zombies() -> Vec<String> {
        Vec::new()
    }
}
