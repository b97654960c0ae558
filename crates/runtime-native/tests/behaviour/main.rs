//! What the native backend does on Linux beyond the clauses that every backend shares: one
//! scenario to a file.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod adapter_dropped;
mod alone;
mod bystanders;
mod caller_panics;
mod closed_stdout;
mod daemon;
mod dialogue;
mod flood;
mod gigabyte;
mod handle_dropped_unpolled;
mod harden_host;
mod host_children;
mod host_signals;
mod isolation;
mod large_arguments;
mod no_descriptors;
mod nothing_left;
mod partial_output;
mod process_substitution;
mod recycled_pid;
mod refused_programs;
mod runtime_shutdown;
mod shell_missing;
mod signals;
mod sleeper;
mod slow_reader;
mod stage;
mod stopped;
mod subreaper;
mod term_once;
mod wiped_environment;
