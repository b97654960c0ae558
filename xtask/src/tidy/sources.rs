//! Rules about the text of single files.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use super::Finding;

/// Folders with nothing of ours in them.
const SKIPPED_DIRS: &[&str] = &[
    ".git",
    "target",
    "mutants.out",
    "node_modules",
    "corpus",
    "artifacts",
];

/// What marks a folder as something a tool filled and may empty.
const CACHE_TAG: &str = "CACHEDIR.TAG";

/// People whom an example may show at home.
const EXAMPLE_USERS: &[&str] = &[
    "user", "agent", "alice", "ana", "bob", "dev", "me", "runner", "sam", "you",
];

/// Looks at every text file below `root`.
pub(super) fn check(root: &Path) -> Result<Vec<Finding>> {
    let checkout = this_checkout(root);
    let mut findings = Vec::new();
    for path in files(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .to_string_lossy()
            .replace('\\', "/");
        findings.extend(check_name(&name));
        let bytes = std::fs::read(&path).with_context(|| format!("{name} cannot be read"))?;
        // What is no text has no rule here.
        let Ok(text) = String::from_utf8(bytes) else {
            continue;
        };
        if name.ends_with(".rs") {
            findings.extend(check_rust(&name, &text));
        }
        findings.extend(check_paths(&name, &text, checkout.as_deref()));
        findings.extend(check_merged(&name, &text));
    }
    Ok(findings)
}

/// The files below `root`, without what tools make.
fn files(root: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut dirs = vec![root.to_owned()];
    while let Some(dir) = dirs.pop() {
        let entries =
            std::fs::read_dir(&dir).with_context(|| format!("{} cannot be read", dir.display()))?;
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                let skipped = SKIPPED_DIRS
                    .iter()
                    .any(|skipped| entry.file_name() == *skipped);
                if !skipped && !entry.path().join(CACHE_TAG).exists() {
                    dirs.push(entry.path());
                }
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    files.sort();
    Ok(files)
}

fn check_name(name: &str) -> Option<Finding> {
    let file = name.rsplit('/').next().unwrap_or(name);
    let nameless = ["utils.rs", "util.rs", "helpers.rs"].contains(&file)
        || ["/utils/", "/util/", "/helpers/"]
            .iter()
            .any(|dir| name.contains(dir));
    (nameless && name.ends_with(".rs")).then(|| {
        Finding::new(
            name,
            "named for no idea: name the file for the one idea it holds",
        )
    })
}

fn check_rust(name: &str, text: &str) -> Vec<Finding> {
    // In two pieces, or this file would be found.
    let rules = [
        (
            [concat!("#[", "ignore"), concat!("#![", "ignore")],
            "an ignored test: a test that cannot run here says so with its reason",
        ),
        (
            [concat!("#[", "allow("), concat!("#![", "allow(")],
            "use `expect` with a reason: it goes away when it is no longer needed",
        ),
    ];
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        let code = line.split("//").next().unwrap_or(line);
        for (patterns, what) in &rules {
            if patterns.iter().any(|pattern| code.contains(pattern)) {
                findings.push(Finding::new(format!("{name}:{number}"), *what));
            }
        }
    }
    findings
}

/// Paths that mean something on one machine only: this checkout's, or somebody's home.
fn check_paths(name: &str, text: &str, checkout: Option<&str>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        let home = ["/home/", "/Users/", r"\Users\"].iter().any(|homes| {
            line.match_indices(homes)
                .any(|(at, _)| is_a_home(&line[at + homes.len()..]))
        });
        if home || checkout.is_some_and(|checkout| line.contains(checkout)) {
            findings.push(Finding::new(
                format!("{name}:{number}"),
                "a path of somebody's machine: make it relative, or show a user of EXAMPLE_USERS",
            ));
        }
    }
    findings
}

/// What a merge leaves where two sides disagree.
fn check_merged(name: &str, text: &str) -> Vec<Finding> {
    numbered(text)
        .filter(|(_, line)| {
            ["<<<<<<< ", ">>>>>>> "]
                .iter()
                .any(|mark| line.starts_with(mark))
        })
        .map(|(number, _)| {
            Finding::new(
                format!("{name}:{number}"),
                "a conflict of a merge: keep one of its sides, or what both mean",
            )
        })
        .collect()
}

/// Whether what follows `/home/` names a person and goes on below.
fn is_a_home(rest: &str) -> bool {
    let user: String = rest
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
        .collect();
    let below = rest[user.len()..].starts_with(['/', '\\']);
    !user.is_empty() && below && !EXAMPLE_USERS.contains(&user.as_str())
}

/// The path of this checkout, unless it is so plain that an example may well hold it.
fn this_checkout(root: &Path) -> Option<String> {
    let plain = root.components().count() < 3 || root.starts_with("/tmp");
    (!plain).then(|| root.to_string_lossy().into_owned())
}

fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ignored_test_is_found() {
        let bad = concat!("#[test]\n    #[", "ignore = \"slow\"]\nfn t() {}");
        assert_eq!(check_rust("a.rs", bad)[0].place, "a.rs:2");
    }

    #[test]
    fn an_allowed_lint_is_found_inside_and_outside() {
        for bad in [
            concat!("#[", "allow(dead_code)]"),
            concat!("#![", "allow(dead_code)]"),
        ] {
            assert_eq!(check_rust("a.rs", bad).len(), 1, "{bad}");
        }
    }

    #[test]
    fn talk_about_a_rule_and_an_expected_lint_are_not() {
        let good = concat!(
            "// no #[",
            "ignore]\n#[expect(dead_code, reason = \"…\")]\n"
        );
        assert_eq!(check_rust("a.rs", good), []);
    }

    #[test]
    fn a_file_named_for_nothing_is_found() {
        for bad in [
            "crates/a/src/utils.rs",
            "crates/a/src/utils/path.rs",
            "crates/a/src/util.rs",
        ] {
            assert!(check_name(bad).is_some(), "{bad}");
        }
        for good in ["crates/a/src/utilisation.rs", "docs/utils/index.md"] {
            assert_eq!(check_name(good), None, "{good}");
        }
    }

    #[test]
    fn a_conflict_of_a_merge_is_found() {
        let bad = concat!("a\n<<<<", "<<< HEAD\nb\n=======\nc\n>>>>", ">>> other\n");
        let places: Vec<_> = check_merged("a.md", bad)
            .into_iter()
            .map(|finding| finding.place)
            .collect();
        assert_eq!(places, ["a.md:2", "a.md:6"]);
        assert_eq!(check_merged("a.md", "A title\n=======\n"), []);
    }

    #[test]
    fn a_path_of_a_machine_is_found() {
        let bad = concat!("see /ho", "me/somebody/src/x");
        assert_eq!(check_paths("a.md", bad, None).len(), 1);
        let bad = concat!("see C:\\Us", "ers\\somebody\\x");
        assert_eq!(check_paths("a.md", bad, None).len(), 1);
        let bad = "built in /srv/checkout/target";
        assert_eq!(check_paths("a.md", bad, Some("/srv/checkout")).len(), 1);
    }

    #[test]
    fn a_path_of_an_example_is_not() {
        for good in [
            "/home/user/project",
            "/home",
            "/workspace/x",
            "bind /home/ read-only",
        ] {
            assert_eq!(
                check_paths("a.md", good, Some("/srv/checkout")),
                [],
                "{good}"
            );
        }
    }

    #[test]
    fn a_plain_checkout_path_is_no_rule() {
        assert_eq!(this_checkout(Path::new("/workspace")), None);
        assert_eq!(this_checkout(Path::new("/tmp/a/b")), None);
        assert!(this_checkout(Path::new("/srv/checkout")).is_some());
    }

    #[test]
    fn what_tools_make_is_not_looked_at() {
        let found = files(&crate::workspace::root()).unwrap();
        assert!(found.iter().any(|path| path.ends_with("xtask/src/main.rs")));
        assert!(
            !found
                .iter()
                .any(|path| path.components().any(|c| c.as_os_str() == "target"))
        );
    }
}
