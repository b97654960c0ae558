//! Two backends as one: modules go to the first, everything else to the second.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use prx_runtime_core::{
    Capabilities, Description, Execution, ExecutionOutput, ExecutionRequest, Probe, Result,
    RuntimeAdapter, async_trait,
};

use crate::backends::{Made, Resolves};

/// What `auto` gives where WebAssembly works and no container engine does.
pub(crate) struct Split {
    name: String,
    some: Arc<dyn RuntimeAdapter>,
    resolves: Option<Resolves>,
    all: Arc<dyn RuntimeAdapter>,
}

impl Split {
    pub(crate) fn new(some: Made, all: Made) -> Self {
        Self {
            name: format!("{}+{}", some.adapter.name(), all.adapter.name()),
            some: some.adapter,
            resolves: some.resolves,
            all: all.adapter,
        }
    }

    fn for_request(&self, request: &ExecutionRequest) -> &dyn RuntimeAdapter {
        let directory = request.requested_working_dir().unwrap_or(Path::new(""));
        // Relative paths mean what they will mean to the command. What cannot be resolved now is
        // left to the backend's own error.
        let directory = std::path::absolute(if directory.as_os_str().is_empty() {
            Path::new(".")
        } else {
            directory
        });
        match (&self.resolves, directory) {
            (Some(resolves), Ok(directory)) if resolves(request.invocation(), &directory) => {
                &*self.some
            }
            _ => &*self.all,
        }
    }
}

#[async_trait]
impl RuntimeAdapter for Split {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Result<ExecutionOutput> {
        self.run(ExecutionRequest::from_call(
            command,
            args,
            env,
            working_dir,
            timeout,
        ))
        .await
    }

    async fn is_available(&self) -> bool {
        self.all.is_available().await
    }

    fn name(&self) -> &str {
        &self.name
    }

    async fn run(&self, request: ExecutionRequest) -> Result<ExecutionOutput> {
        self.for_request(&request).run(request).await
    }

    async fn spawn(&self, request: ExecutionRequest) -> Result<Execution> {
        self.for_request(&request).spawn(request).await
    }

    fn describe(&self, request: &ExecutionRequest) -> Result<Description> {
        self.for_request(request).describe(request)
    }

    async fn probe(&self) -> Probe {
        self.all.probe().await
    }

    fn capabilities(&self) -> Capabilities {
        self.all.capabilities()
    }
}
