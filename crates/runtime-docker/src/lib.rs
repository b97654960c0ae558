//! The Docker backend of prx-runtime: every command in a fresh container of its own.
//!
//! [`DockerRuntime`] is the whole face. Behind it an execution is create, attach, start, stream,
//! wait and remove, through the engine's API; no `docker` command is run. What is asked of the
//! engine is a closed list: ping, info, image inspect and pull, and create, changes, attach, start,
//! wait, kill, inspect, list and remove of containers that carry our label, and the kind and mode of a
//! file in one (of Podman, to prepare one for its start besides). No content of a container is asked
//! for, and no commit, build, exec or privileged request is ever made.
//!
//! What differs between engines (Docker, Podman) is asked of the engine once, never guessed from
//! where its socket lies.

mod adapter;
mod backend;
mod body;
mod container;
mod credentials;
mod demux;
mod engine;
mod error;
mod exec_failure;
mod facts;
mod file;
mod greeting;
mod held;
mod image;
mod init;
mod labels;
mod listener;
mod look;
#[cfg(test)]
mod misbehaving;
mod paths;
mod probe;
mod progress;
mod pump;
mod reaper;
mod reference;
mod running;
#[cfg(test)]
mod scripted;
mod seccomp;
mod socket;
mod sweep;
mod transport;
mod user;
mod verify;
mod watch;
mod workspace;

pub use adapter::DockerRuntime;
pub use sweep::PruneReport;
