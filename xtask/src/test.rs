//! `cargo xtask test`: every test, in one line at the end.
//!
//! `cargo test` and not nextest: a conformance suite checks at its end that nothing of it is left,
//! which needs all its trials in one process. One call of cargo for all packages, because features
//! are then unified once and nothing is built twice; that each crate also stands alone is the
//! business of `cargo xtask lint`.

use std::fmt;

use anyhow::{Result, bail};
use prx_fixtures::REQUIRE_BACKENDS;

use crate::AlreadySaid;
use crate::backend::{self, Backend, BackendArgs};
use crate::process::Cmd;
use crate::workspace::Workspace;

#[derive(Debug, Default, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    backends: BackendArgs,
    /// Only this package (repeatable).
    #[arg(long = "package", short = 'p', value_name = "PACKAGE")]
    packages: Vec<String>,
    /// Optimised.
    #[arg(long)]
    release: bool,
    /// Given to each test binary.
    #[arg(last = true)]
    rest: Vec<String>,
}

impl Args {
    /// Every test of these backends.
    pub(crate) fn on(backends: BackendArgs) -> Self {
        Self {
            backends,
            ..Self::default()
        }
    }
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let chosen = args.backends.chosen(workspace)?;
    let mut members = backend::members(workspace, &chosen);
    if !args.packages.is_empty() {
        for name in &args.packages {
            if !members.iter().any(|member| member.name == *name) {
                bail!("no package `{name}` among those of the backends asked for");
            }
        }
        members.retain(|member| args.packages.contains(&member.name));
    }
    let features = backend::features(&members, &chosen);

    let mut cargo = Cmd::cargo(workspace.root()).args(["test", "--no-fail-fast"]);
    for member in &members {
        cargo = cargo.arg("--package").arg(&member.name);
    }
    if !features.is_empty() {
        cargo = cargo.arg("--features").arg(features.join(","));
    }
    if args.release {
        cargo = cargo.arg("--release");
    }
    if !args.rest.is_empty() {
        cargo = cargo.arg("--").args(&args.rest);
    }
    if in_ci() && std::env::var_os(REQUIRE_BACKENDS).is_none() {
        cargo = cargo.env(REQUIRE_BACKENDS, required(&chosen));
    }

    let mut tally = Tally::default();
    let mut failures = Failures::default();
    let status = cargo.stream(|line| {
        failures.see(line);
        if let Some(result) = Tally::parse(line) {
            tally.add(result);
        }
    })?;
    let wrong = if status.success() && tally.failed == 0 {
        (tally.passed == 0).then(|| "not one test ran".to_owned())
    } else if tally.failed == 0 {
        tally.failed = 1;
        Some("something did not build, or a test binary died without a result".to_owned())
    } else {
        Some(format!("{} failed", tally.failed))
    };
    if let Some(wrong) = &wrong {
        eprintln!("error: {wrong}");
    }
    print!("{failures}");
    // The last line of all, whatever happened.
    println!("{tally}");
    if wrong.is_some() {
        Err(AlreadySaid.into())
    } else {
        Ok(())
    }
}

/// What must be there for the tests of these backends, with commas between.
fn required(chosen: &[Backend]) -> String {
    let mut names = backend::comma_list(chosen);
    // The tests start a Podman of their own, which only root can.
    if chosen.contains(&Backend::Docker) && is_root() {
        names.push_str(",podman");
    }
    names
}

#[cfg(unix)]
fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt as _;

    std::fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0)
}

#[cfg(not(unix))]
fn is_root() -> bool {
    false
}

/// Whether this is continuous integration.
fn in_ci() -> bool {
    std::env::var_os("CI").is_some_and(|value| value == "true")
}

/// How the tests ended.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct Tally {
    passed: u64,
    failed: u64,
    skipped: u64,
}

impl Tally {
    /// The counts of `test result: ok. 3 passed; 0 failed; 1 ignored; …`, the last line of a test
    /// binary (libtest's and libtest-mimic's alike); `None` for any other line.
    fn parse(line: &str) -> Option<Self> {
        let rest = line.strip_prefix("test result: ")?;
        let (_verdict, counts) = rest.split_once(". ")?;
        let mut tally = Self::default();
        for count in counts.split("; ") {
            let Some((number, what)) = count.split_once(' ') else {
                continue;
            };
            let slot = match what {
                "passed" => &mut tally.passed,
                "failed" => &mut tally.failed,
                "ignored" => &mut tally.skipped,
                _ => continue,
            };
            *slot = number.parse().ok()?;
        }
        Some(tally)
    }

    fn add(&mut self, other: Self) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
    }
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            passed,
            failed,
            skipped,
        } = self;
        write!(f, "{passed} passed, {failed} failed, {skipped} skipped")
    }
}

/// What failed, told again at the end: it stands thousands of lines up, and who keeps logs keeps
/// their ends.
#[derive(Debug, Default)]
struct Failures {
    /// What the test binaries wrote of their failures, in order.
    told: Vec<String>,
    /// Lines that there was no room for.
    left_out: usize,
    inside: bool,
}

impl Failures {
    /// So that a test that prints without end leaves room for the names.
    const MOST_LINES: usize = 400;

    /// A binary of tests (libtest's and libtest-mimic's alike) begins with how many tests it runs,
    /// and tells of its failures after a line `failures:`: what each printed, then their names.
    fn see(&mut self, line: &str) {
        if line == "failures:" {
            self.inside = true;
        } else if begins(line) {
            self.inside = false;
        } else if line.starts_with("test ") && line.ends_with(" ... FAILED") {
            self.told.push(line.to_owned());
        } else if self.inside && !line.is_empty() && !line.starts_with("test result: ") {
            if self.told.len() < Self::MOST_LINES {
                self.told.push(line.to_owned());
            } else {
                self.left_out += 1;
            }
        }
    }
}

/// Whether this is the first line of a test binary: `running 3 tests`.
fn begins(line: &str) -> bool {
    line.strip_prefix("running ")
        .and_then(|rest| rest.split_once(' '))
        .is_some_and(|(count, what)| {
            count.parse::<u64>().is_ok() && matches!(what, "test" | "tests")
        })
}

impl fmt::Display for Failures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.told.is_empty() {
            return Ok(());
        }
        writeln!(f, "\nwhat failed, once more:")?;
        for line in &self.told {
            writeln!(f, "{line}")?;
        }
        if self.left_out > 0 {
            writeln!(f, "({} more lines stand above)", self.left_out)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_told_again() {
        let mut failures = Failures::default();
        for line in [
            "running 2 tests",
            "test a ... ok",
            "test b ... FAILED",
            "",
            "failures:",
            "",
            "---- b stdout ----",
            "it broke",
            "",
            "failures:",
            "    b",
            "",
            "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out",
            "running 1 test",
            "test c ... ok",
        ] {
            failures.see(line);
        }
        assert_eq!(
            failures.to_string(),
            "\nwhat failed, once more:\ntest b ... FAILED\n---- b stdout ----\nit broke\n    b\n"
        );
    }

    #[test]
    fn a_test_that_prints_without_end_leaves_room_for_names() {
        let mut failures = Failures::default();
        failures.see("failures:");
        for _ in 0..500 {
            failures.see("again and again");
        }
        failures.see("test result: FAILED. 0 passed; 1 failed");
        failures.see("test b ... FAILED");
        let told = failures.to_string();
        assert!(told.contains("(100 more lines stand above)"), "{told}");
        assert!(told.contains("test b ... FAILED"), "{told}");
    }

    #[test]
    fn where_nothing_failed_nothing_is_told() {
        let mut failures = Failures::default();
        failures.see("test a ... ok");
        failures.see("test result: ok. 1 passed; 0 failed");
        assert_eq!(failures.to_string(), "");
    }

    fn tally(passed: u64, failed: u64, skipped: u64) -> Tally {
        Tally {
            passed,
            failed,
            skipped,
        }
    }

    #[test]
    fn the_result_line_of_a_test_binary_is_understood() {
        let line = "test result: ok. 12 passed; 0 failed; 3 ignored; 0 measured; 7 filtered out; \
                    finished in 0.51s";
        assert_eq!(Tally::parse(line), Some(tally(12, 0, 3)));
        let line = "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out";
        assert_eq!(Tally::parse(line), Some(tally(1, 2, 0)));
    }

    #[test]
    fn other_lines_are_not() {
        for line in [
            "",
            "running 3 tests",
            "test a ... ok",
            "  test result: ok. 1 passed;",
        ] {
            assert_eq!(Tally::parse(line), None, "{line}");
        }
    }

    #[test]
    fn results_add_up_to_one_line() {
        let mut sum = tally(1, 0, 2);
        sum.add(tally(10, 3, 0));
        assert_eq!(sum.to_string(), "11 passed, 3 failed, 2 skipped");
    }
}
