//! `cargo xtask deny`: licences, bans, sources and advisories, by `deny.toml`.

use anyhow::{Result, bail};

use crate::process::Cmd;
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Without the advisories, which are fetched from the network.
    #[arg(long)]
    offline: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let cargo = || Cmd::cargo(workspace.root());
    if !cargo().args(["deny", "--version"]).quiet().succeeds() {
        bail!("cargo-deny is not installed; `cargo install --locked cargo-deny` installs it");
    }
    let deny = cargo().args(["deny", "--all-features", "check"]);
    if args.offline {
        deny.args(["bans", "licenses", "sources"])
    } else {
        deny
    }
    .run()
}
