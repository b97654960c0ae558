//! `cargo xtask TASK`: everything one does to this project, one file per task.
//!
//! Nothing here is part of what is shipped. Each task is a thin layer over cargo; what a task knows
//! (which crate belongs to which backend, which crate may depend on which) is a table in its file.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its streams"
)]

mod backend;
mod bench;
mod build;
mod ci;
mod deny;
mod docs;
mod faults;
mod fixtures;
mod fuzz;
mod lint;
mod plan;
mod process;
mod test;
mod tidy;
mod workspace;

use std::fmt;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::workspace::Workspace;

/// The project's own tasks.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the binary with the backends asked for.
    Build(build::Args),
    /// Run every test; the last line is `N passed, N failed, N skipped`.
    Test(test::Args),
    /// Formatting, clippy, rustdoc, the dependency edges, each crate alone.
    Lint(lint::Args),
    /// Licences, bans, sources and advisories of all dependencies (cargo-deny).
    Deny(deny::Args),
    /// Write the generated pages of `docs/`, or check that they are current.
    Docs(docs::Args),
    /// Measure us and a peer in turn, pair by pair.
    Bench(bench::Args),
    /// Build what the tests run inside backends: images, guests.
    Fixtures(fixtures::Args),
    /// Run the fuzz targets for a bounded time.
    Fuzz(fuzz::Args),
    /// Let system calls of a running command fail, one by one, and see that it ends all the same.
    Faults(faults::Args),
    /// Read changed paths on stdin and print the backends they concern, as JSON.
    Plan(plan::Args),
    /// What continuous integration runs: lint, then test.
    Ci(ci::Args),
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    let outcome = Workspace::load().and_then(|workspace| match &cli.task {
        Task::Build(args) => build::run(&workspace, args),
        Task::Test(args) => test::run(&workspace, args),
        Task::Lint(args) => lint::run(&workspace, args),
        Task::Deny(args) => deny::run(&workspace, args),
        Task::Docs(args) => docs::run(&workspace, args),
        Task::Bench(args) => bench::run(&workspace, args),
        Task::Fixtures(args) => fixtures::run(&workspace, args),
        Task::Fuzz(args) => fuzz::run(&workspace, args),
        Task::Faults(args) => faults::run(&workspace, args),
        Task::Plan(args) => plan::run(&workspace, args),
        Task::Ci(args) => ci::run(&workspace, args),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            if !error.is::<AlreadySaid>() {
                eprintln!("error: {error:#}");
            }
            ExitCode::FAILURE
        }
    }
}

/// A failure about which nothing is left to say.
#[derive(Debug)]
struct AlreadySaid;

impl std::error::Error for AlreadySaid {}

impl fmt::Display for AlreadySaid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("failed: see above")
    }
}
