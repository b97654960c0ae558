//! Lets the machine decide where commands run, and says what it decided.

#![expect(clippy::print_stderr, reason = "an example speaks on its streams")]

use prx_runtime::{ExecutionRequest, config::Config, create_runtime};

/// The whole example.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> prx_runtime::Result<()> {
    let runtime = create_runtime(&Config::default()).await?;
    let request = ExecutionRequest::shell("echo from here");
    let output = runtime.run(request).await?;
    assert_eq!(output.stdout.to_string(), "from here\n");
    eprintln!("{}: {}", output.backend, output.isolation);
    Ok(())
}
