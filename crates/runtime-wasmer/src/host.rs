//! What wasmer's implementation of WASIX finds of a host: timers, a network if granted, and nothing
//! else. No packages, no HTTP client, no threads, no processes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::{self, BoxFuture};
use tokio::runtime::Handle;
use tokio::task::JoinHandle;
use virtual_net::DynVirtualNetworking;
use wasmer::{Engine, Store};
use wasmer_wasix::VirtualTaskManager;
use wasmer_wasix::os::task::thread::WasiThreadError;
use wasmer_wasix::runtime::Runtime;
use wasmer_wasix::runtime::resolver::{MultiSource, Source};
use wasmer_wasix::runtime::task_manager::TaskWasm;

use crate::stop::Stop;

/// The host of one guest.
#[derive(Debug)]
pub(crate) struct Host {
    pub(crate) engine: Engine,
    pub(crate) network: DynVirtualNetworking,
    pub(crate) tasks: Arc<dyn VirtualTaskManager>,
}

impl Runtime for Host {
    fn networking(&self) -> &DynVirtualNetworking {
        &self.network
    }

    fn task_manager(&self) -> &Arc<dyn VirtualTaskManager> {
        &self.tasks
    }

    fn source(&self) -> Arc<dyn Source + Send + Sync> {
        Arc::new(MultiSource::new())
    }

    fn engine(&self) -> Engine {
        self.engine.clone()
    }

    fn new_store(&self) -> Store {
        Store::new(self.engine())
    }
}

/// Timers, by the runtime of whoever waits for the guest, and the end of waiting when the guest is
/// to end.
#[derive(Debug)]
pub(crate) struct Tasks {
    pub(crate) stop: Arc<Stop>,
    /// `None` where nothing runs.
    pub(crate) runtime: Option<Handle>,
}

impl VirtualTaskManager for Tasks {
    fn sleep_now(&self, time: Duration) -> Pin<Box<dyn Future<Output = ()> + Send + Sync>> {
        let Some(runtime) = self.runtime.clone() else {
            return Box::pin(future::ready(()));
        };
        let stopped = Arc::clone(&self.stop).stopped();
        Box::pin(async move {
            // In a task, because a timer that is polled when its runtime has gone panics.
            let task = runtime.spawn(async move { tokio::time::sleep(time).await });
            let task = AbortOnDrop(task);
            tokio::select! {
                () = task.finished() => {}
                () = stopped => {}
            }
        })
    }

    fn task_shared(
        &self,
        task: Box<dyn FnOnce() -> BoxFuture<'static, ()> + Send>,
    ) -> Result<(), WasiThreadError> {
        let runtime = self.runtime.as_ref().ok_or(WasiThreadError::Unsupported)?;
        let stopped = Arc::clone(&self.stop).stopped();
        runtime.spawn(future::select(task(), Box::pin(stopped)));
        Ok(())
    }

    fn task_wasm(&self, _task: TaskWasm) -> Result<(), WasiThreadError> {
        Err(WasiThreadError::Unsupported)
    }

    fn task_dedicated(&self, _task: Box<dyn FnOnce() + Send>) -> Result<(), WasiThreadError> {
        Err(WasiThreadError::Unsupported)
    }

    fn thread_parallelism(&self) -> Result<usize, WasiThreadError> {
        Ok(1)
    }
}

/// A task that is of no use without this.
struct AbortOnDrop(JoinHandle<()>);

impl AbortOnDrop {
    /// Resolves when the task has finished. When its runtime goes away, so does the guest, which is
    /// why nothing waits for that here.
    async fn finished(mut self) {
        if (&mut self.0).await.is_err() {
            future::pending::<()>().await;
        }
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.0.abort();
    }
}
