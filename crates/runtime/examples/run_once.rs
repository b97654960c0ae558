//! Runs one command on the backend of a configuration.

use std::collections::HashMap;
use std::time::Duration;

use prx_runtime::{config::Config, create_runtime};

/// The whole example.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> prx_runtime::Result<()> {
    // An agent reads its own `config.toml`: `Config::load("config.toml")`.
    let config = Config::from_toml_str("[runtime]\nbackend = \"native\"", "config.toml")?;
    let runtime = create_runtime(&config).await?;
    // Without arguments the command is a line for the backend's shell.
    let output = runtime
        .execute(
            "echo hello | tr a-z A-Z",
            &[],
            &HashMap::new(),
            None,
            Duration::from_secs(10),
        )
        .await?;
    assert_eq!(output.stdout.to_string(), "HELLO\n");
    assert!(output.success());
    Ok(())
}
