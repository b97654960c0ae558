//! Processes that can be told from all others.

use std::sync::atomic::{AtomicU32, Ordering};

/// A `sleep` that no other test has, found by its very arguments whatever became of its
/// environment, its group and its parents.
#[derive(Debug)]
pub(crate) struct Sleeper {
    seconds: String,
}

impl Sleeper {
    pub(crate) fn new() -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        Self {
            seconds: format!("3600.{:07}{number:04}", std::process::id()),
        }
    }

    /// The command line that starts it.
    pub(crate) fn line(&self) -> String {
        format!("sleep {}", self.seconds)
    }

    /// The pids of those that live.
    pub(crate) fn pids(&self) -> Vec<u32> {
        let wanted = format!("sleep\0{}\0", self.seconds).into_bytes();
        std::fs::read_dir("/proc")
            .unwrap()
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|pid| {
                // A zombie has no arguments any more.
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|args| args == wanted)
            })
            .collect()
    }

    pub(crate) fn lives(&self) -> bool {
        !self.pids().is_empty()
    }
}
