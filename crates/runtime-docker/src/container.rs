//! A container, from the moment its creation is asked for until it is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bollard::models::ContainerCreateBody;
use prx_runtime_core::backend::KillSwitch;

use crate::engine::{Answer, Client, Removal};
use crate::reaper::{End, Job, Reaper};

/// Dropping it ends the container, and removes it unless it is kept.
#[derive(Debug)]
pub(crate) struct Container {
    client: Client,
    name: String,
    id: Option<String>,
    /// Whether it stays after its end.
    kept: bool,
    /// Whether there is nothing left to be ended; shared with the kill switches.
    settled: Arc<AtomicBool>,
    reaper: Reaper,
}

impl Container {
    /// Creates a container. Cancel-safe: one that appears later is removed.
    pub(crate) async fn create(
        client: &Client,
        reaper: &Reaper,
        name: String,
        body: ContainerCreateBody,
    ) -> Answer<(Self, Vec<String>)> {
        let mut container = Self {
            client: client.clone(),
            name,
            id: None,
            kept: false,
            settled: Arc::default(),
            reaper: reaper.clone(),
        };
        match client.create(&container.name, body).await {
            Ok((id, warnings)) => {
                container.id = Some(id);
                Ok((container, warnings))
            }
            Err(failure) => {
                if !failure.is_uncertain() {
                    container.settle();
                }
                Err(failure)
            }
        }
    }

    /// The id, or the name as long as the engine has told none.
    pub(crate) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or(&self.name)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// From here on it stays after its end.
    pub(crate) fn keep(&mut self) {
        self.kept = true;
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    /// Removes it now. Where that fails or the future is dropped, it is done in the background.
    pub(crate) async fn remove(&mut self) {
        if self.is_settled() {
            return;
        }
        match self.client.remove(self.id()).await {
            Ok(Removal::Removed | Removal::WasNotThere) => self.settle(),
            // Whoever removes it may fail.
            Ok(Removal::Underway) => {}
            Err(failure) => {
                tracing::debug!(container = self.id(), ?failure, "left to the reaper");
            }
        }
    }

    /// Sees to it that a container that is kept has ended.
    pub(crate) async fn settle_if_ended(&self, ended: bool) {
        if ended || self.client.kill(self.id(), "KILL").await.is_ok() {
            self.settle();
        }
    }

    pub(crate) fn reaper(&self) -> &Reaper {
        &self.reaper
    }

    /// It has ended and is kept, or it is gone: there is nothing left to do for it.
    fn settle(&self) {
        self.settled.store(true, Ordering::Release);
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    fn job(&self) -> Job {
        let end = match (&self.id, self.kept) {
            (None, _) => End::RemoveOnceThere,
            (Some(_), false) => End::Remove,
            (Some(_), true) => End::Kill,
        };
        Job::new(self.client.clone(), self.id().to_owned(), end)
    }

    /// Ends it from any thread, without a runtime.
    pub(crate) fn kill_switch(&self) -> KillSwitch {
        let (job, reaper, settled) = (self.job(), self.reaper.clone(), Arc::clone(&self.settled));
        KillSwitch::new(move || {
            // Once is enough: the reaper does not give up.
            if !settled.swap(true, Ordering::AcqRel) {
                reaper.end(job.clone());
            }
        })
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        if !self.settled.swap(true, Ordering::AcqRel) {
            self.reaper.end(self.job());
        }
    }
}
