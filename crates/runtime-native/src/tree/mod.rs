//! A command's main process and all it started: how they are found, waited for and ended.
//!
//! One module per operating system with the same face: `Leader` is the main process, `Tree` is
//! what can be signalled from anywhere.

mod cookie;
#[cfg(not(target_os = "linux"))]
mod either;
#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, not(target_os = "linux")))]
mod unix;
#[cfg(windows)]
mod windows;

pub(crate) use cookie::Cookie;
#[cfg(target_os = "linux")]
pub(crate) use linux::{Leader, PipeReader, PipeWriter, Spawned, end_orphans, widen};
#[cfg(all(unix, not(target_os = "linux")))]
pub(crate) use unix::{Leader, PipeReader, PipeWriter, end_orphans, widen};
#[cfg(windows)]
pub(crate) use windows::{Leader, PipeReader, PipeWriter, end_orphans, widen};

/// A started main process and our ends of its streams.
pub(crate) struct Started {
    pub(crate) leader: Leader,
    pub(crate) stdin: Option<PipeWriter>,
    pub(crate) stdout: PipeReader,
    pub(crate) stderr: PipeReader,
}
