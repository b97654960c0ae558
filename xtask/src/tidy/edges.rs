//! Which crate may depend on which: core ← backends ← facade ← command line, and no other way.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, Result};
use cargo_metadata::{CargoOpt, DependencyKind, Metadata, MetadataCommand, PackageId};

use super::Finding;
use crate::process::Cmd;

/// A package of the workspace, and the packages of the workspace it may use.
struct Rule {
    package: &'static str,
    /// In what it ships.
    may_use: &'static [&'static str],
    /// In its tests besides.
    tests_may_use: Tests,
}

/// What the tests of a package may use beyond what it ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Tests {
    /// Only packages that exist for tests ([`FOR_TESTS`]).
    TestPackages,
    /// Anything: the package is about all of them.
    Anything,
}

/// Packages that exist for the tests of others.
const FOR_TESTS: &[&str] = &["prx-conformance", "prx-fixtures", "prx-wasm-trials"];

const CORE: &str = "prx-runtime-core";
const NATIVE: &str = "prx-runtime-native";
const SANDBOX: &str = "prx-runtime-sandbox";
const DOCKER: &str = "prx-runtime-docker";
const WASM: &str = "prx-runtime-wasm";
const WASMTIME: &str = "prx-runtime-wasmtime";
const WASMER: &str = "prx-runtime-wasmer";
const FACADE: &str = "prx-runtime";
const CLI: &str = "prx-runtime-cli";

/// Every crate that is shipped below the command line.
const ALL_SHIPPED: &[&str] = &[
    CORE,
    NATIVE,
    SANDBOX,
    DOCKER,
    WASM,
    WASMTIME,
    WASMER,
    FACADE,
    "prx-conformance",
    "prx-fixtures",
    "prx-wasm-trials",
];

const fn rule(package: &'static str, may_use: &'static [&'static str]) -> Rule {
    Rule {
        package,
        may_use,
        tests_may_use: Tests::TestPackages,
    }
}

const fn about_all(package: &'static str) -> Rule {
    Rule {
        package,
        may_use: ALL_SHIPPED,
        tests_may_use: Tests::Anything,
    }
}

/// Every package of the workspace; one that is not here is an error.
const RULES: &[Rule] = &[
    rule(CORE, &[]),
    rule(NATIVE, &[CORE]),
    Rule {
        package: SANDBOX,
        may_use: &[CORE],
        // A confiner starts nothing: only a backend that does can try it.
        tests_may_use: Tests::Anything,
    },
    rule(DOCKER, &[CORE]),
    rule(WASM, &[CORE]),
    rule(WASMTIME, &[CORE, WASM]),
    rule(WASMER, &[CORE, WASM]),
    rule(
        FACADE,
        &[CORE, NATIVE, SANDBOX, DOCKER, WASM, WASMTIME, WASMER],
    ),
    rule(CLI, &[FACADE]),
    Rule {
        package: "prx-conformance",
        may_use: &[CORE, "prx-fixtures"],
        // The suite is proved on a backend that is known to be right.
        tests_may_use: Tests::Anything,
    },
    rule("prx-fixtures", &[]),
    rule(
        "prx-wasm-trials",
        &[CORE, "prx-conformance", "prx-fixtures"],
    ),
    about_all("prx-e2e"),
    about_all("prx-bench"),
    about_all("xtask"),
];

/// Foreign crates that must not be reachable from these packages, whatever their features.
const UNREACHABLE: &[(&str, &[&str])] = &[
    ("bollard", &[CORE, NATIVE, SANDBOX, WASM, WASMTIME, WASMER]),
    ("wasmtime", &[CORE, NATIVE, SANDBOX, DOCKER, WASM, WASMER]),
    ("wasmer", &[CORE, NATIVE, SANDBOX, DOCKER, WASM, WASMTIME]),
];

/// Foreign crates that the binary holds only when asked for.
const NOT_BY_DEFAULT: &[&str] = &["wasmtime", "wasmer"];

/// Features of tokio that core does without: it starts no process and opens no connection.
const NOT_IN_CORE: &[&str] = &["full", "net", "process"];

/// Asks cargo for the graph and looks at its edges.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let metadata = MetadataCommand::new()
        .manifest_path(root.join("Cargo.toml"))
        .features(CargoOpt::AllFeatures)
        .exec()
        .context("the dependency graph cannot be read")?;
    let graph = Graph::from_metadata(&metadata);
    let mut findings = graph.check_edges();
    findings.extend(graph.check_unreachable());
    findings.extend(check_core_tokio(&tokio_features_of_core(&metadata)));
    if graph.members.contains_key(CLI) {
        let tree = Cmd::cargo(root)
            .args([
                "tree",
                "--package",
                CLI,
                "--edges",
                "normal",
                "--prefix",
                "none",
            ])
            .quiet()
            .read()?;
        findings.extend(check_default_build(&tree));
    }
    Ok(findings)
}

/// Who depends on whom, by name.
#[derive(Debug, Default)]
struct Graph {
    members: BTreeMap<String, Uses>,
    /// What each package ships with (build scripts included), foreign ones too.
    shipped: BTreeMap<String, BTreeSet<String>>,
}

/// What a member depends on.
#[derive(Debug, Default)]
struct Uses {
    shipped: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Graph {
    fn from_metadata(metadata: &Metadata) -> Self {
        let names: BTreeMap<&PackageId, &str> = metadata
            .packages
            .iter()
            .map(|package| (&package.id, package.name.as_str()))
            .collect();
        let name = |id: &PackageId| names.get(id).copied().unwrap_or_default().to_owned();
        let mut graph = Self::default();
        for node in metadata.resolve.iter().flat_map(|resolve| &resolve.nodes) {
            let mut uses = Uses::default();
            for dep in &node.deps {
                let tests_only = dep
                    .dep_kinds
                    .iter()
                    .all(|dep| dep.kind == DependencyKind::Development);
                let set = if tests_only {
                    &mut uses.tests
                } else {
                    &mut uses.shipped
                };
                set.insert(name(&dep.pkg));
            }
            graph
                .shipped
                .entry(name(&node.id))
                .or_default()
                .extend(uses.shipped.iter().cloned());
            if metadata.workspace_members.contains(&node.id) {
                graph.members.insert(name(&node.id), uses);
            }
        }
        graph
    }

    /// Edges inside the workspace against [`RULES`].
    fn check_edges(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (member, uses) in &self.members {
            let Some(rule) = RULES.iter().find(|rule| rule.package == member) else {
                findings.push(Finding::new(
                    member,
                    "unknown package: say in xtask/src/tidy/edges.rs what it may depend on",
                ));
                continue;
            };
            let inside = |dep: &&String| self.members.contains_key(dep.as_str());
            for dep in uses.shipped.iter().filter(inside) {
                if !rule.may_use.contains(&dep.as_str()) {
                    findings.push(Finding::new(member, format!("must not depend on `{dep}`")));
                }
            }
            for dep in uses.tests.iter().filter(inside) {
                let fine = rule.tests_may_use == Tests::Anything
                    || rule.may_use.contains(&dep.as_str())
                    || FOR_TESTS.contains(&dep.as_str());
                if !fine {
                    let what = format!("its tests must not depend on `{dep}`");
                    findings.push(Finding::new(member, what));
                }
            }
        }
        findings
    }

    /// Foreign crates against [`UNREACHABLE`].
    fn check_unreachable(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        for (foreign, members) in UNREACHABLE {
            for member in *members {
                if let Some(path) = self.path(member, foreign) {
                    findings.push(Finding::new(
                        *member,
                        format!("reaches {}", path.join(" → ")),
                    ));
                }
            }
        }
        findings
    }

    /// A shortest way from one package to another.
    fn path(&self, from: &str, to: &str) -> Option<Vec<String>> {
        let mut paths = vec![vec![from.to_owned()]];
        let mut seen = BTreeSet::from([from.to_owned()]);
        while !paths.is_empty() {
            let mut longer = Vec::new();
            for path in paths {
                let last = path.last()?;
                for next in self.shipped.get(last).into_iter().flatten() {
                    let mut path = path.clone();
                    path.push(next.clone());
                    if next == to {
                        return Some(path);
                    }
                    if seen.insert(next.clone()) {
                        longer.push(path);
                    }
                }
            }
            paths = longer;
        }
        None
    }
}

/// The features of tokio that core's manifest asks for, outside its tests.
fn tokio_features_of_core(metadata: &Metadata) -> Vec<String> {
    metadata
        .workspace_packages()
        .into_iter()
        .filter(|package| package.name.as_str() == CORE)
        .flat_map(|package| &package.dependencies)
        .filter(|dep| dep.name == "tokio" && dep.kind != DependencyKind::Development)
        .flat_map(|dep| dep.features.iter().cloned())
        .collect()
}

fn check_core_tokio(features: &[String]) -> Vec<Finding> {
    features
        .iter()
        .filter(|feature| NOT_IN_CORE.contains(&feature.as_str()))
        .map(|feature| Finding::new(CORE, format!("must not ask tokio for `{feature}`")))
        .collect()
}

/// What `cargo tree --prefix none` lists against [`NOT_BY_DEFAULT`].
fn check_default_build(tree: &str) -> Vec<Finding> {
    let names: BTreeSet<_> = tree
        .lines()
        .filter_map(|line| line.split_whitespace().next())
        .collect();
    NOT_BY_DEFAULT
        .iter()
        .filter(|name| names.contains(*name))
        .map(|name| {
            Finding::new(
                CLI,
                format!("holds `{name}` without having been asked for it"),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A graph from `(package, ships, tests)`; members are those whose names are ours.
    fn graph(packages: &[(&str, &[&str], &[&str])]) -> Graph {
        let set = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let mut graph = Graph::default();
        for (package, shipped, tests) in packages {
            graph.shipped.insert((*package).to_owned(), set(shipped));
            if package.starts_with("prx-") || *package == "xtask" {
                let uses = Uses {
                    shipped: set(shipped),
                    tests: set(tests),
                };
                graph.members.insert((*package).to_owned(), uses);
            }
        }
        graph
    }

    fn only(findings: &[Finding]) -> String {
        assert_eq!(findings.len(), 1, "{findings:?}");
        findings[0].to_string()
    }

    #[test]
    fn the_edges_of_the_design_are_good() {
        let good = graph(&[
            (CORE, &["tokio"], &[]),
            (NATIVE, &[CORE], &["prx-conformance"]),
            (FACADE, &[CORE, NATIVE], &[]),
            (CLI, &[FACADE], &[]),
            ("prx-conformance", &[CORE], &["prx-fixtures"]),
        ]);
        assert_eq!(good.check_edges(), []);
    }

    #[test]
    fn a_sibling_that_uses_a_sibling_is_found() {
        let bad = graph(&[(NATIVE, &[SANDBOX], &[]), (SANDBOX, &[], &[])]);
        assert_eq!(
            only(&bad.check_edges()),
            format!("{NATIVE}: must not depend on `{SANDBOX}`")
        );
    }

    #[test]
    fn a_core_that_uses_a_backend_is_found() {
        let bad = graph(&[(CORE, &[NATIVE], &[]), (NATIVE, &[], &[])]);
        assert!(only(&bad.check_edges()).contains(NATIVE));
    }

    #[test]
    fn tests_that_use_a_sibling_are_found() {
        let bad = graph(&[(NATIVE, &[], &[FACADE]), (FACADE, &[], &[])]);
        assert!(only(&bad.check_edges()).contains("its tests"));
    }

    #[test]
    fn an_unknown_package_is_found() {
        let bad = graph(&[("prx-runtime-new", &[], &[])]);
        assert!(only(&bad.check_edges()).contains("unknown package"));
    }

    #[test]
    fn a_foreign_crate_out_of_bounds_is_found_with_the_way_to_it() {
        let bad = graph(&[
            (NATIVE, &["between"], &[]),
            ("between", &["bollard"], &[]),
            (DOCKER, &["bollard"], &[]),
            (WASMTIME, &["wasmer"], &[]),
        ]);
        let findings = bad.check_unreachable();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(
            findings[0]
                .what
                .contains(&format!("{NATIVE} → between → bollard"))
        );
        assert_eq!(findings[1].place, WASMTIME);
    }

    #[test]
    fn a_core_that_could_start_processes_is_found() {
        let bad = ["rt".to_owned(), "process".to_owned()];
        assert!(only(&check_core_tokio(&bad)).contains("`process`"));
    }

    #[test]
    fn an_engine_in_the_default_build_is_found() {
        let bad = "prx-runtime-cli v0.1.0 (…)\nwasmtime v1.0.0\nwasmtime-types v1.0.0 (*)\n";
        assert!(only(&check_default_build(bad)).contains("`wasmtime`"));
        assert_eq!(check_default_build("wasmtime-types v1.0.0\n"), []);
    }
}
