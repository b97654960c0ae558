//! Logs go to stderr, and nothing else does it for us.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;

/// Starts logging at the level of so many `-v`, or as RUST_LOG says.
pub(crate) fn start(verbose: u8) {
    let level = match verbose {
        0 => "warn",
        1 => "info",
        2 => "debug",
        _ => "trace",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .init();
}
