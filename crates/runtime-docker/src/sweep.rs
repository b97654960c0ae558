//! The sweep of what dead hosts left behind.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use bollard::models::ContainerSummaryStateEnum as State;
use futures_util::StreamExt;
use prx_runtime_core::{OwnerState, Result};
use tokio::sync::OnceCell;

use crate::engine::{Answer, Client, Removal};
use crate::labels::{self, Found};

/// How long a start may wait for the sweep of what dead hosts left.
const LIMIT: Duration = Duration::from_secs(5);
/// How many containers are removed at the same time.
const AT_ONCE: usize = 8;
/// How often it is tried to remove one that somebody else removes, and one that the engine does not,
/// and what lies between.
const UNDERWAY: u32 = 100;
const REFUSED: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);
/// How long it is not tried again after it failed.
const REST: Duration = Duration::from_secs(30);

/// What a sweep found and removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PruneReport {
    /// The ids of the containers that were removed.
    pub removed: Vec<String>,
    /// The ids of those that should have been removed and that the engine did not remove.
    pub failed: Vec<String>,
}

/// Which of the containers of dead hosts are removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    /// All but those that `auto_remove = false` keeps.
    Leftovers,
    /// All.
    All,
}

pub(crate) async fn sweep(client: &Client, scope: Scope) -> Result<PruneReport> {
    let containers = client
        .list(labels::OWNER)
        .await
        .map_err(|failure| failure.while_trying_to("list its containers", client.endpoint()))?;
    let mut report = PruneReport::default();
    if containers.is_empty() {
        return Ok(report);
    }
    let listener = client.listener().await;
    let mut dead = Vec::new();
    for container in containers {
        let (Some(id), Some(labels)) = (container.id, container.labels) else {
            continue;
        };
        let ended = [State::CREATED, State::EXITED, State::DEAD];
        let found = Found {
            labels: &labels,
            may_run: container.state.is_none_or(|state| !ended.contains(&state)),
            made: container.created.and_then(|made| made.try_into().ok()),
        };
        let spared = scope == Scope::Leftovers && labels::is_kept(&labels);
        if spared || labels::owner_state(found, listener.as_ref()) != OwnerState::Dead {
            continue;
        }
        dead.push(id);
    }
    let removals = dead.into_iter().map(|id| async {
        let removal = remove(client, &id).await;
        (id, removal)
    });
    let mut removals = futures_util::stream::iter(removals).buffer_unordered(AT_ONCE);
    while let Some((id, removal)) = removals.next().await {
        match removal {
            Ok(Removal::Removed) => report.removed.push(id),
            // Another sweep was faster.
            Ok(Removal::WasNotThere) => {}
            Ok(Removal::Underway) => {
                tracing::warn!(
                    container = id,
                    "somebody else removes it, and does not finish"
                );
                report.failed.push(id);
            }
            Err(failure) => {
                tracing::warn!(container = id, ?failure, "a container of a dead host stays");
                report.failed.push(id);
            }
        }
    }
    Ok(report)
}

/// Removes a container, or waits for whoever does: what runs in it runs until it is gone.
async fn remove(client: &Client, id: &str) -> Answer<Removal> {
    let (mut underway, mut refused) = (0, 0);
    loop {
        match client.remove(id).await {
            Ok(Removal::Underway) if underway < UNDERWAY => underway += 1,
            // It is only just starting or ending, or its files are in use for a moment.
            Err(failure) if refused < REFUSED && failure.refusal().is_some() => {
                refused += 1;
                tracing::debug!(container = id, ?failure, "tried again");
            }
            done => return done,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The sweep before the first container: done by one for all who wait, and by another where that
/// one is cancelled. Where it fails, commands run all the same, and a later one tries it again.
#[derive(Debug)]
pub(crate) struct FirstSweep {
    done: OnceCell<()>,
    /// When it is tried again.
    next: Mutex<Option<Instant>>,
    rest: Duration,
}

/// It is not done.
struct Undone;

impl Default for FirstSweep {
    fn default() -> Self {
        Self::with_rest(REST)
    }
}

impl FirstSweep {
    fn with_rest(rest: Duration) -> Self {
        Self {
            done: OnceCell::new(),
            next: Mutex::default(),
            rest,
        }
    }

    /// Sees to it that it is done, or was tried a moment ago. Takes five seconds at most.
    pub(crate) async fn pass(&self, client: &Client) {
        if self.done.initialized() {
            return;
        }
        let done = self.done.get_or_try_init(|| self.attempt(client));
        if tokio::time::timeout(LIMIT, done).await.is_err() {
            tracing::warn!("the sweep of containers of dead hosts was too slow");
            self.fail();
        }
    }

    async fn attempt(&self, client: &Client) -> Result<(), Undone> {
        // Looked at here, where those who waited for one that failed come by.
        if self.next().is_some_and(|next| Instant::now() < next) {
            return Err(Undone);
        }
        match sweep(client, Scope::Leftovers).await {
            Ok(report) => {
                let (removed, failed) = (report.removed.len(), report.failed.len());
                if removed > 0 {
                    tracing::warn!(removed, "removed containers that a dead host had left");
                }
                if failed == 0 {
                    return Ok(());
                }
            }
            Err(error) => tracing::warn!(%error, "containers of dead hosts may be left"),
        }
        self.fail();
        Err(Undone)
    }

    fn fail(&self) {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner) =
            Instant::now().checked_add(self.rest);
    }

    fn next(&self) -> Option<Instant> {
        *self.next.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    use crate::labels::tests::gone;
    use crate::scripted::{Answer, ScriptedEngine};

    fn lists(engine: &ScriptedEngine) -> usize {
        engine.count("GET /containers/json")
    }

    #[tokio::test]
    async fn all_who_come_first_wait_for_one_sweep() {
        let engine = ScriptedEngine::start(|_, _| Answer::ok("[]"));
        let client = engine.client().await;
        let sweep = FirstSweep::default();
        futures_util::future::join_all((0..8).map(|_| sweep.pass(&client))).await;
        sweep.pass(&client).await;
        assert_eq!(lists(&engine), 1);
    }

    #[tokio::test]
    async fn who_is_cancelled_leaves_it_to_the_next() {
        let engine = ScriptedEngine::start(|_, turn| match turn {
            0 => Answer::Silence,
            _ => Answer::ok("[]"),
        });
        let client = engine.client().await;
        let sweep = FirstSweep::default();
        tokio::select! {
            () = sweep.pass(&client) => panic!("nothing was answered"),
            () = engine.asked("GET /containers/json") => {}
        }
        sweep.pass(&client).await;
        assert_eq!(lists(&engine), 2);
        sweep.pass(&client).await;
        assert_eq!(lists(&engine), 2);
    }

    #[tokio::test]
    async fn what_is_not_removed_at_once_is_tried_again() {
        let mut labels = labels::labels(None, false);
        labels.insert(labels::OWNER.to_owned(), gone().to_string());
        let list = serde_json::json!([{"Id": "x", "Labels": labels}]).to_string();
        let asked = Arc::new(AtomicUsize::new(0));
        let engine = ScriptedEngine::start(move |request, _| {
            if !request.starts_with("DELETE") {
                Answer::ok(&list)
            } else {
                match asked.fetch_add(1, Ordering::Relaxed) {
                    0 => Answer::refusal(500, "it is starting"),
                    1 => Answer::refusal(409, "removal is already in progress"),
                    _ => Answer::refusal(404, "no such container"),
                }
            }
        });
        let report = sweep(&engine.client().await, Scope::Leftovers).await;
        assert_eq!(report.unwrap(), PruneReport::default());
        assert_eq!(engine.count("DELETE"), 3);
    }

    #[tokio::test]
    async fn one_that_fails_is_tried_again_later() {
        let engine = ScriptedEngine::start(|_, turn| match turn {
            0 => Answer::refusal(500, "busy"),
            _ => Answer::ok("[]"),
        });
        let client = engine.client().await;
        let later = FirstSweep::with_rest(Duration::from_secs(3600));
        futures_util::future::join_all((0..8).map(|_| later.pass(&client))).await;
        assert_eq!(lists(&engine), 1, "one failure is enough for now");
        let engine = ScriptedEngine::start(|_, turn| match turn {
            0 => Answer::refusal(500, "busy"),
            _ => Answer::ok("[]"),
        });
        let client = engine.client().await;
        let soon = FirstSweep::with_rest(Duration::ZERO);
        for _ in 0..3 {
            soon.pass(&client).await;
        }
        assert_eq!(lists(&engine), 2);
    }
}
