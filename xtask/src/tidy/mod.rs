//! The rules about the whole tree that no compiler knows, each with a sample that breaks it.
//!
//! `cargo xtask lint` runs them, and so does `cargo test -p xtask`.

mod edges;
mod manifests;
mod sources;

use std::fmt;

use anyhow::{Result, bail};

use crate::workspace::Workspace;

/// A broken rule, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Finding {
    /// A path from the root, with a line where there is one; or a package.
    place: String,
    /// What is wrong and what to do.
    what: String,
}

impl Finding {
    fn new(place: impl Into<String>, what: impl Into<String>) -> Self {
        Self {
            place: place.into(),
            what: what.into(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.what)
    }
}

/// Every rule over the whole workspace.
pub(crate) fn run(workspace: &Workspace) -> Result<()> {
    let mut findings = sources::check(workspace.root())?;
    findings.extend(manifests::check(workspace)?);
    findings.extend(edges::check(workspace.root())?);
    for finding in &findings {
        eprintln!("tidy: {finding}");
    }
    if !findings.is_empty() {
        bail!(
            "{} broken",
            if findings.len() == 1 {
                "a rule is"
            } else {
                "rules are"
            }
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_workspace_is_tidy() {
        run(&Workspace::load().unwrap()).unwrap();
    }
}
