//! An adapter of one's own: three methods, and it works wherever an adapter is taken.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use prx_runtime::{ExecutionOutput, ExecutionRequest, Result, RuntimeAdapter, async_trait};

/// Runs nothing and says what it was asked to run.
struct Rehearsal;

#[async_trait]
impl RuntimeAdapter for Rehearsal {
    async fn execute(
        &self,
        command: &str,
        args: &[String],
        _env: &HashMap<String, String>,
        _working_dir: Option<&Path>,
        _timeout: Duration,
    ) -> Result<ExecutionOutput> {
        let started = Instant::now();
        let said = format!("{command} {}", args.join(" "));
        Ok(ExecutionOutput::new(said, "", 0, started.elapsed()))
    }

    async fn is_available(&self) -> bool {
        true
    }

    fn name(&self) -> &str {
        "rehearsal"
    }
}

/// The whole example.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> Result<()> {
    let runtime: Arc<dyn RuntimeAdapter> = Arc::new(Rehearsal);
    let request = ExecutionRequest::program("rm").args(["-rf", "/"]);
    let output = runtime.run(request).await?;
    assert_eq!(output.stdout.to_string(), "rm -rf /");
    assert!(runtime.probe().await.available);
    Ok(())
}
