//! Rules about the manifests: versions and lints are set once, at the root.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::Finding;
use crate::workspace::Workspace;

/// Tables of dependencies, at the root of a manifest or below a target.
const DEPENDENCIES: &[&str] = &["dependencies", "dev-dependencies", "build-dependencies"];

/// What a package takes from the root.
const INHERITED: &[&str] = &["version", "edition", "rust-version", "license"];

/// Looks at the manifest of every member.
pub(super) fn check(workspace: &Workspace) -> Result<Vec<Finding>> {
    let mut findings = Vec::new();
    for member in workspace.members() {
        let path = &member.manifest;
        let text = std::fs::read_to_string(path)
            .with_context(|| format!("{} cannot be read", path.display()))?;
        let manifest: Table = text
            .parse()
            .with_context(|| format!("{} is no TOML", path.display()))?;
        findings.extend(check_manifest(
            &format!("{}/Cargo.toml", member.name),
            &manifest,
        ));
    }
    Ok(findings)
}

fn check_manifest(place: &str, manifest: &Table) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut find = |what: String| findings.push(Finding::new(place, what));

    if !inherits(manifest.get("lints")) {
        find("the lints of the workspace do not hold here: add `[lints] workspace = true`".into());
    }
    let package = manifest.get("package").and_then(Value::as_table);
    for field in INHERITED {
        if !inherits(package.and_then(|package| package.get(*field))) {
            find(format!(
                "`{field}` is set once, at the root: write `{field}.workspace = true`"
            ));
        }
    }
    for table in dependency_tables(manifest) {
        for (name, value) in table {
            if !inherits(Some(value)) {
                find(format!(
                    "the version of `{name}` belongs in [workspace.dependencies]: write \
                     `{name}.workspace = true`"
                ));
            }
        }
    }
    findings
}

/// Whether the value says `workspace = true`.
fn inherits(value: Option<&Value>) -> bool {
    value
        .and_then(|value| value.get("workspace"))
        .and_then(Value::as_bool)
        == Some(true)
}

/// The tables of dependencies of the package and of each target.
fn dependency_tables(manifest: &Table) -> Vec<&Table> {
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets
        .into_iter()
        .flat_map(Table::values)
        .filter_map(Value::as_table);
    std::iter::once(manifest)
        .chain(targets)
        .flat_map(|holder| {
            DEPENDENCIES
                .iter()
                .filter_map(|name| holder.get(*name)?.as_table())
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"
        [package]
        name = "a"
        version.workspace = true
        edition.workspace = true
        rust-version.workspace = true
        license.workspace = true
        [dependencies]
        serde.workspace = true
        tokio = { workspace = true, features = ["rt"] }
        [lints]
        workspace = true
    "#;

    fn findings(manifest: &str) -> Vec<Finding> {
        check_manifest("a", &manifest.parse().unwrap())
    }

    #[test]
    fn a_manifest_that_takes_all_from_the_root_is_good() {
        assert_eq!(findings(GOOD), []);
    }

    #[test]
    fn a_version_in_a_member_is_found_in_every_table() {
        for bad in [
            "[dependencies.rand]\nversion = \"1\"",
            "[dev-dependencies]\nrand = \"1\"",
            "[build-dependencies]\nrand = { path = \"../rand\" }",
            "[target.'cfg(unix)'.dependencies]\nrand = \"1\"",
        ] {
            let found = findings(&format!("{GOOD}\n{bad}"));
            assert_eq!(found.len(), 1, "{bad}");
            assert!(found[0].what.contains("`rand`"), "{}", found[0]);
        }
    }

    #[test]
    fn a_member_without_the_lints_is_found() {
        let bad = GOOD.replace("[lints]", "[metadata]");
        assert_eq!(findings(&bad).len(), 1);
    }

    #[test]
    fn an_edition_of_its_own_is_found() {
        let bad = GOOD.replace("edition.workspace = true", "edition = \"2021\"");
        assert!(findings(&bad)[0].what.contains("`edition`"));
    }
}
