//! `cargo xtask lint`: everything about the code that can be checked without running it.
//!
//! All steps run, and all failures are listed at the end.

use anyhow::{Result, bail};

use crate::backend::{self, BackendArgs};
use crate::process::Cmd;
use crate::workspace::Workspace;
use crate::{docs, tidy};

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    backends: BackendArgs,
    /// Only formatting, tidy, clippy and the generated pages: no rustdoc, no crate on its own.
    #[arg(long)]
    fast: bool,
}

impl Args {
    /// The part that fits before a test run.
    pub(crate) fn fast(backends: BackendArgs) -> Self {
        Self {
            backends,
            fast: true,
        }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let chosen = args.backends.chosen(workspace)?;
    let members = backend::members(workspace, &chosen);
    let features = backend::features(&members, &chosen).join(",");
    let cargo = || Cmd::cargo(workspace.root());
    let on_members = |mut cmd: Cmd| {
        for member in &members {
            cmd = cmd.arg("--package").arg(&member.name);
        }
        cmd
    };
    let with_features = |cmd: Cmd| {
        if features.is_empty() {
            cmd
        } else {
            cmd.args(["--features", features.as_str()])
        }
    };

    let mut steps = Steps::default();
    steps.run("fmt", || cargo().args(["fmt", "--all", "--check"]).run());
    steps.run("tidy", || tidy::run(workspace));
    steps.run("clippy, all features", || {
        with_features(on_members(cargo().args(["clippy", "--all-targets"])))
            .args(["--", "-D", "warnings"])
            .run()
    });
    steps.run("docs", || docs::check(workspace));
    if !args.fast {
        steps.run("clippy, default features", || {
            on_members(cargo().args(["clippy", "--all-targets"]))
                .args(["--", "-D", "warnings"])
                .run()
        });
        steps.run("rustdoc", || {
            with_features(on_members(cargo().args(["doc", "--no-deps"])))
                .env("RUSTDOCFLAGS", "-D warnings")
                .run()
        });
        for member in &members {
            steps.run(&format!("{} alone", member.name), || {
                let check = cargo().args(["check", "--package", &member.name]);
                check.clone().run()?;
                if member.features.iter().any(|feature| feature == "default") {
                    check.arg("--no-default-features").run()?;
                }
                Ok(())
            });
        }
    }
    steps.verdict()
}

/// The steps that failed so far.
#[derive(Debug, Default)]
struct Steps {
    failed: Vec<String>,
}

impl Steps {
    fn run(&mut self, name: &str, step: impl FnOnce() -> Result<()>) {
        if let Err(error) = step() {
            eprintln!("error: {name}: {error:#}");
            self.failed.push(name.to_owned());
        }
    }

    fn verdict(&self) -> Result<()> {
        if !self.failed.is_empty() {
            bail!("lint failed in: {}", self.failed.join(", "));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_step_does_not_hide_the_next() {
        let mut steps = Steps::default();
        steps.run("one", || bail!("no"));
        steps.run("two", || Ok(()));
        steps.run("three", || bail!("no"));
        assert_eq!(
            steps.verdict().unwrap_err().to_string(),
            "lint failed in: one, three"
        );
    }
}
