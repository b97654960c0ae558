//! Rules inside rules, in every order: random trees, an oracle, and what is really possible.

use std::path::PathBuf;

use libtest_mimic::Failed;
use proptest::prelude::*;
use proptest::test_runner::{Config as Runs, TestRunner};
use prx_runtime_core::ErrorKind;
use prx_runtime_core::config::SandboxKind;

use crate::Entry;
use crate::files::with_rules;
use crate::stage::Stage;

pub(crate) const TRIALS: &[Entry] = &[("nested_rules_hold_in_every_order", every_order)];

/// Every directory of a small tree, outer ones first.
const DIRECTORIES: [&str; 14] = [
    "a", "a/a", "a/b", "a/a/a", "a/a/b", "a/b/a", "a/b/b", "b", "b/a", "b/b", "b/a/a", "b/a/b",
    "b/b/a", "b/b/b",
];
/// How many trees are tried, for each sandbox and caller.
const TREES: u32 = 12;

fn every_order(stage: &Stage) -> Result<(), Failed> {
    let rule = (
        prop::sample::select(vec!["w", "r", "h"]),
        prop::sample::select(DIRECTORIES.to_vec()),
    );
    let trees = prop::collection::vec(rule, 0..7);
    let runs = Runs {
        cases: TREES,
        failure_persistence: None,
        ..Runs::default()
    };
    TestRunner::new(runs)
        .run(&trees, |rules| {
            observed(stage, &rules).map_err(TestCaseError::fail)
        })
        .map_err(|error| error.to_string().into())
}

/// What may be done in `directory`: the innermost rule counts, the strictest of those for one path.
fn oracle(rules: &[(&str, &str)], directory: &str) -> &'static str {
    let strictness = |access: &str| ["w", "r", "h"].iter().position(|known| *known == access);
    let innermost = rules
        .iter()
        .filter(|(_, path)| directory == *path || directory.starts_with(&format!("{path}/")))
        .max_by_key(|(access, path)| (path.len(), strictness(access)));
    match innermost {
        Some(("w", _)) => "w",
        Some(("h", _)) => "h",
        // Outside of the workspace reading is what holds without a rule.
        _ => "r",
    }
}

/// Whether a rule shows something inside of what another one hides.
fn shows_hidden(rules: &[(&str, &str)]) -> bool {
    rules.iter().any(|(_, path)| {
        let around = path.rsplit_once('/').map_or("", |(around, _)| around);
        oracle(rules, path) != "h" && oracle(rules, around) == "h"
    })
}

fn observed(stage: &Stage, rules: &[(&'static str, &'static str)]) -> Result<(), String> {
    let tree = stage.outside().join("tree");
    let _ = std::fs::remove_dir_all(&tree);
    for directory in DIRECTORIES {
        let directory = tree.join(directory);
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        std::fs::write(directory.join("file"), "text").map_err(|error| error.to_string())?;
    }
    let paths: Vec<(&str, PathBuf)> = rules
        .iter()
        .map(|(access, path)| (*access, tree.join(path)))
        .collect();
    let confined = with_rules(stage, &paths);
    // One line of `DIRECTORY ACCESS` each; an existing file, since that is what rules are about.
    let line = format!(
        "cd {} || cd ..; for d in {}; do f={}/$d/file; \
         if (echo text > $f) 2>/dev/null; then echo $d w; \
         elif cat $f >/dev/null 2>&1; then echo $d r; else echo $d h; fi; done",
        stage.workspace().display(),
        DIRECTORIES.join(" "),
        tree.display()
    );
    let output = match confined.try_confined(&line) {
        Err(error) if stage.kind() == SandboxKind::Firejail && shows_hidden(rules) => {
            let said = error.to_string();
            return if error.kind() == ErrorKind::Refused && said.contains("hidden") {
                Ok(())
            } else {
                Err(said)
            };
        }
        output => output.map_err(|error| error.to_string())?,
    };
    if stage.kind() == SandboxKind::Firejail && shows_hidden(rules) {
        return Err(format!("firejail should not have taken {rules:?}"));
    }
    let said = output.stdout.to_text();
    for directory in DIRECTORIES {
        let expected = format!("{directory} {}", oracle(rules, directory));
        if !said.lines().any(|line| line == expected) {
            return Err(format!("expected `{expected}` under {rules:?}:\n{said}"));
        }
    }
    Ok(())
}
