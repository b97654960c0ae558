//! What hosts left that did not live to end it themselves.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use prx_runtime_core::OwnerState;
use rustix::process::Signal;

use super::ROUND;
use super::proc;
use crate::tree::cookie;

/// How long a sweep takes for what it cannot end.
const SWEEP_PATIENCE: Duration = Duration::from_millis(200);

/// Ends what executions left whose host is provably dead. Returns how many processes that were.
pub(crate) fn end_orphans() -> u32 {
    let begin = Instant::now();
    let mut ended = HashSet::new();
    while begin.elapsed() < SWEEP_PATIENCE {
        let Ok(processes) = proc::others() else {
            break;
        };
        let mut roots: HashSet<i32> = processes
            .iter()
            .filter(|process| process.alive)
            .filter(|process| {
                ended.contains(&process.identity())
                    || matches!(
                        process.cookie(),
                        Ok(Some(value))
                            if cookie::owners(&value).any(|owner| owner.state() == OwnerState::Dead)
                    )
            })
            .map(|process| process.pid)
            .collect();
        if roots.is_empty() {
            break;
        }
        proc::with_descendants(&mut roots, &processes);
        for process in processes
            .iter()
            .filter(|process| process.alive && roots.contains(&process.pid))
        {
            process.signal(Signal::KILL);
            ended.insert(process.identity());
        }
        std::thread::sleep(ROUND);
    }
    u32::try_from(ended.len()).unwrap_or(u32::MAX)
}
