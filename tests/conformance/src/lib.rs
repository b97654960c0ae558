//! The contract of prx-runtime, clause by clause, as trials that every backend runs.
//!
//! A backend supplies a [`Driver`]: how an adapter is made from a configuration, and how a guest
//! is told what to do ([`Task`]). Its `tests/conformance.rs`, with `harness = false`, is then
//!
//! ```ignore
//! fn main() -> std::process::ExitCode {
//!     prx_conformance::main(MyDriver)
//! }
//! ```
//!
//! Each trial runs on both kinds of tokio runtime and is named for its clause, so that
//! `cargo test --test conformance c05_output` tries one clause. A trial that means nothing on a
//! backend, because a capability is not there or a task has no spelling, is listed as ignored with
//! its reason. So are all where the backend cannot be used here and now, unless
//! `PRX_REQUIRE_BACKENDS` (names with commas between) has its name: then that is a failure.
//!
//! The suite runs in a process of its own, which [`main`] starts: with host variables that must
//! not reach a guest, with a stdin that is open and speaks, in a directory for temporary files that
//! must be empty at the end. At that end no process of ours, no zombie, no descriptor and no thread
//! may be left.

mod clause;
mod clauses;
mod contract;
mod driver;
mod host;
mod meeting;
mod posix;
mod remains;
mod stage;
mod suite;
mod task;
mod trial;

pub use clause::{Clause, Need, Trial};
pub use clauses::CONTRACT;
pub use contract::contract_markdown;
pub use driver::Driver;
pub use host::in_prepared_host;
pub use posix::PosixSpelling;
pub use stage::{Effort, Halt, Stage};
pub use suite::main;
pub use task::{Descendant, FILLING, Marker, Task, Then};
pub use trial::{Outcome, TokioKind};
