//! Confines the local commands of prx-runtime by what `[security.sandbox]` and
//! `[security.resources]` say.
//!
//! A [`Confiner`](prx_runtime_core::confine::Confiner) from here is handed to the native backend,
//! which starts and ends processes; this crate knows namespaces, filters and limits.
//!
//! # What confines
//!
//! * **bubblewrap**: namespaces by the program `bwrap`, with a seccomp filter, no capabilities, a
//!   fresh `/proc` and `/dev`, nothing of `/run`, and the rest of the file system read-only.
//! * **landlock**: the kernel's own, on the thread that starts the command; with a seccomp filter
//!   that leaves it no sockets (with the network allowed, no Unix sockets) and no other process to
//!   limit or slow down, and no capabilities. The host itself is never restricted.
//! * **firejail**: namespaces by the program of that name, which is setuid and needs no user
//!   namespaces, with mounts that hide, and with what landlock and a seccomp filter do inside.
//!
//! Between each and a command stands a launcher of a few kilobytes that this crate carries
//! inside itself: it sets limits, and as the first process of a PID namespace it reports the exact
//! end of the command, out of the command's reach.
//!
//! Linux on x86-64 and aarch64 only; elsewhere the crate is empty.

#![cfg(target_os = "linux")]

mod account;
mod bubblewrap;
mod capabilities;
mod cgroup;
mod claims;
mod confiner;
mod create;
mod defaults;
mod error;
mod firejail;
mod landlock;
mod limits;
mod machine;
mod memfd;
mod mounts;
mod order;
mod policy;
mod resolve;
mod seccomp;

pub use create::{AUTO, confiner, confiner_on, unconfined};
pub use machine::Machine;
