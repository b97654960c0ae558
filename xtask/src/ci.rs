//! `cargo xtask ci`: what `.ci/run` does once the machine is set up.

use anyhow::Result;

use crate::backend::BackendArgs;
use crate::workspace::Workspace;
use crate::{AlreadySaid, lint, test};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    backends: BackendArgs,
}

/// Both, whatever the first says: a badly formatted line must not hide a failing test. What lint
/// found is said before the tests, whose last line stays the last.
pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let lint = lint::run(workspace, &lint::Args::fast(args.backends.clone()));
    if let Err(error) = &lint {
        eprintln!("error: {error:#}; the tests run all the same");
    }
    test::run(workspace, &test::Args::on(args.backends.clone()))?;
    if lint.is_err() {
        Err(AlreadySaid.into())
    } else {
        Ok(())
    }
}
