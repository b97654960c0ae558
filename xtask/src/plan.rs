//! `cargo xtask plan`: which backends a change concerns.
//!
//! Reads changed paths on standard input, one a line, and prints a JSON list for the matrix of the
//! workflow. A path that nobody claims concerns every backend: to forget one here costs time, not
//! a missed failure.

use std::io::Read as _;

use anyhow::{Context as _, Result};

use crate::backend::{self, Backend};
use crate::workspace::Workspace;

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// All that exist, whatever changed.
    #[arg(long)]
    all: bool,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let existing = backend::existing(workspace);
    let concerned = if args.all {
        existing
    } else {
        let mut paths = String::new();
        std::io::stdin()
            .read_to_string(&mut paths)
            .context("standard input cannot be read")?;
        concerned(paths.lines(), &existing)
    };
    let names: Vec<_> = concerned.iter().map(|backend| backend.name()).collect();
    println!("{}", serde_json::to_string(&names)?);
    Ok(())
}

/// The backends among `existing` which a change of `paths` concerns.
fn concerned<'a>(paths: impl Iterator<Item = &'a str>, existing: &[Backend]) -> Vec<Backend> {
    let mut concerned = Vec::new();
    for path in paths {
        match claim(path) {
            Claim::Nobody => {}
            Claim::Some(backends) => concerned.extend(backends),
            Claim::All => return existing.to_vec(),
        }
    }
    existing
        .iter()
        .copied()
        .filter(|backend| concerned.contains(backend))
        .collect()
}

/// Whom a path concerns.
#[derive(Debug, PartialEq, Eq)]
enum Claim {
    Nobody,
    Some(Vec<Backend>),
    All,
}

fn claim(path: &str) -> Claim {
    // Prose, except the pages which the tests of the documentation read.
    let prose = path.ends_with(".md") && !path.starts_with("crates/") && path != "README.md";
    if prose || path.starts_with("LICENSE") {
        return Claim::Nobody;
    }
    let Some(crate_) = path
        .strip_prefix("crates/")
        .and_then(|rest| rest.split('/').next())
    else {
        return Claim::All;
    };
    let package = format!("prx-{crate_}");
    let backends: Vec<_> = Backend::ALL
        .iter()
        .copied()
        .filter(|backend| backend.packages().contains(&package.as_str()))
        .collect();
    if backends.is_empty() {
        Claim::All
    } else {
        Claim::Some(backends)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXISTING: &[Backend] = &[Backend::Native, Backend::Docker, Backend::Wasmtime];

    fn plan(paths: &[&str]) -> Vec<Backend> {
        concerned(paths.iter().copied(), EXISTING)
    }

    #[test]
    fn a_backend_crate_concerns_that_backend() {
        assert_eq!(
            plan(&["crates/runtime-docker/src/lib.rs"]),
            [Backend::Docker]
        );
    }

    #[test]
    fn what_engines_share_concerns_every_engine_there_is() {
        assert_eq!(
            plan(&["crates/runtime-wasm/src/lib.rs"]),
            [Backend::Wasmtime]
        );
    }

    #[test]
    fn the_core_the_tests_and_the_unknown_concern_all() {
        for path in [
            "crates/runtime-core/src/lib.rs",
            "tests/conformance/src/lib.rs",
            "Cargo.lock",
            "README.md",
            "some/new/place",
        ] {
            assert_eq!(plan(&[path]), EXISTING, "{path}");
        }
    }

    #[test]
    fn prose_concerns_nobody() {
        assert_eq!(
            plan(&["docs/security.md", "CHANGELOG.md", "LICENSE-MIT"]),
            []
        );
    }
}
