//! The contract: one module for each clause.

mod c01_invocation;
mod c02_environment;
mod c03_directory;
mod c04_stdin;
mod c05_output;
mod c06_exit;
mod c07_time;
mod c08_tree;
mod c09_cancel;
mod c10_background;
mod c11_isolation;
mod c12_concurrency;
mod c13_probe;
mod c14_nothing_left;

use crate::Clause;

/// Every clause, in order.
pub const CONTRACT: &[Clause] = &[
    c01_invocation::CLAUSE,
    c02_environment::CLAUSE,
    c03_directory::CLAUSE,
    c04_stdin::CLAUSE,
    c05_output::CLAUSE,
    c06_exit::CLAUSE,
    c07_time::CLAUSE,
    c08_tree::CLAUSE,
    c09_cancel::CLAUSE,
    c10_background::CLAUSE,
    c11_isolation::CLAUSE,
    c12_concurrency::CLAUSE,
    c13_probe::CLAUSE,
    c14_nothing_left::CLAUSE,
];
