//! `cargo xtask bench`: builds `tests/bench` optimised and runs it.
//!
//! The harness and the rows are a package of their own so that xtask stays quick to build.

use anyhow::Result;

use crate::backend::{self, BackendArgs};
use crate::process::Cmd;
use crate::workspace::Workspace;

/// The package with the harness and the rows.
const BENCH: &str = "prx-bench";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    backends: BackendArgs,
    /// One JSON object on standard output instead of a table.
    #[arg(long)]
    json: bool,
    /// How often each row measures us and the peer.
    #[arg(long, value_name = "N")]
    pairs: Option<u32>,
    /// Only rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let chosen = args.backends.chosen(workspace)?;
    let package: Vec<_> = workspace.member(BENCH).into_iter().collect();
    let features = backend::features(&package, &chosen);
    let mut cargo = Cmd::cargo(workspace.root()).args([
        "run",
        "--release",
        "--package",
        BENCH,
        "--no-default-features",
    ]);
    if !features.is_empty() {
        cargo = cargo.arg("--features").arg(features.join(","));
    }
    cargo = cargo.arg("--");
    if args.json {
        cargo = cargo.arg("--json");
    }
    if let Some(pairs) = args.pairs {
        cargo = cargo.arg("--pairs").arg(pairs.to_string());
    }
    if let Some(row) = &args.row {
        cargo = cargo.arg("--row").arg(row);
    }
    cargo.run()
}
