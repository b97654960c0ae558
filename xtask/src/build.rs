//! `cargo xtask build`: the binary, with the backends asked for.

use anyhow::Result;

use crate::backend::{self, BackendArgs};
use crate::process::Cmd;
use crate::workspace::Workspace;

/// The package that holds the binary.
const BINARY: &str = "prx-runtime-cli";

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    backends: BackendArgs,
    /// Optimised.
    #[arg(long)]
    release: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let chosen = args.backends.chosen(workspace)?;
    let binary: Vec<_> = workspace.member(BINARY).into_iter().collect();
    let features = backend::features(&binary, &chosen);
    let mut cargo = Cmd::cargo(workspace.root()).args(["build", "--package", BINARY]);
    // Exactly what was asked for, where something was; else the defaults and all the rest.
    if !args.backends.backends.is_empty() {
        cargo = cargo.arg("--no-default-features");
    }
    if !features.is_empty() {
        cargo = cargo.arg("--features").arg(features.join(","));
    }
    if args.release {
        cargo = cargo.arg("--release");
    }
    cargo.run()
}
