//! Linux: a process group, the cookie, ancestry, and descriptors of processes.

mod leader;
mod orphans;
mod proc;
mod whole;

use std::time::Duration;

use tokio::net::unix::pipe;

pub(crate) use leader::{Leader, Spawned};
pub(crate) use orphans::end_orphans;
use whole::Tree;

/// Our end of a stream that the command writes.
pub(crate) type PipeReader = pipe::Receiver;
/// Our end of a stream that the command reads.
pub(crate) type PipeWriter = pipe::Sender;

/// What a pipe is widened to when a command fills it: measured, reads of 256 KiB from a pipe of
/// this size move almost twice as much as reads of 64 KiB from a pipe of the default size.
const WIDE_PIPE: usize = 1 << 20;
/// Between two looks at what is still there.
const ROUND: Duration = Duration::from_millis(2);

/// Makes the pipe behind `reader` hold more. Where the system refuses, it stays as it is.
pub(crate) fn widen(reader: &PipeReader) {
    let _ = rustix::pipe::fcntl_setpipe_size(reader, WIDE_PIPE);
}
