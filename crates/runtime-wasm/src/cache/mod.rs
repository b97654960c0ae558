//! Compiled modules on disk, so that a module is compiled once for all processes of a user.
//!
//! Loading an artifact means executing it, so the directory is the user's own and nobody else's,
//! or there is no cache. Anything wrong with an entry means compiling again, and a line in the log.

mod directory;
mod entry;
mod key;

pub(crate) use directory::DiskCache;
pub(crate) use key::Key;
