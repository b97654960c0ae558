//! Where a backend takes stdin from and puts output.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream, ReadBuf};

use crate::{Capture, Captured};

/// How much a streamed execution may be ahead of its reader, per stream, in bytes.
pub(crate) const PIPE_CAPACITY: usize = 64 * 1024;
/// How much more is kept for a slow reader once the command has ended, per stream, in bytes: above
/// what is on its way through any backend then (a widened pipe holds 1 MiB). What exceeds it comes
/// from something that outlived its end.
const REST_LIMIT: usize = 4 * 1024 * 1024;

/// The three streams of an execution, as its backend sees them.
#[derive(Debug)]
pub struct Stdio {
    /// Where stdin comes from.
    pub stdin: StdinSource,
    /// Where stdout goes.
    pub stdout: OutputSink,
    /// Where stderr goes.
    pub stderr: OutputSink,
}

/// Where the command's stdin comes from.
#[non_exhaustive]
pub enum StdinSource {
    /// End of file at once.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// What this reader gives, until its end.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
}

impl fmt::Debug for StdinSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
        }
    }
}

/// Where one output stream of a command goes: into a bounded capture, or into a pipe to a reader
/// who may be slow.
///
/// Writing never fails: bytes for a reader that has gone are counted and dropped, so that the
/// command neither blocks nor dies for want of one. Dropping the sink ends the stream.
pub struct OutputSink(Target);

enum Target {
    Capture(Arc<Mutex<Capture>>),
    Pipe {
        /// `None` once the reader has gone.
        writer: Option<DuplexStream>,
        shared: Arc<PipeShared>,
    },
}

/// What both ends of a pipe and the supervisor know of it.
#[derive(Debug, Default)]
pub(crate) struct PipeShared {
    total: AtomicU64,
    /// What came after the command's end and is read after all that is in the pipe. `None` until
    /// then, while a slow reader holds the command back.
    rest: Mutex<Option<Vec<u8>>>,
}

impl PipeShared {
    fn rest(&self) -> MutexGuard<'_, Option<Vec<u8>>> {
        self.rest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, bytes: usize) {
        self.total.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

/// The reading end of a pipe.
#[derive(Debug)]
pub(crate) struct PipeReader {
    pipe: DuplexStream,
    shared: Arc<PipeShared>,
    /// How much of the rest was read.
    read: usize,
}

impl AsyncRead for PipeReader {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.pipe).poll_read(cx, buffer))?;
        if buffer.filled().len() > before {
            return Poll::Ready(Ok(()));
        }
        // The writer has gone, so that the rest is complete.
        let shared = Arc::clone(&self.shared);
        if let Some(rest) = &*shared.rest() {
            let rest = &rest[self.read..];
            let some = &rest[..rest.len().min(buffer.remaining())];
            buffer.put_slice(some);
            self.read += some.len();
        }
        Poll::Ready(Ok(()))
    }
}

impl OutputSink {
    pub(crate) fn capture(limit: usize) -> (Self, Account) {
        let capture = Arc::new(Mutex::new(Capture::new(limit)));
        let account = Account::Capture(Arc::clone(&capture));
        (Self(Target::Capture(capture)), account)
    }

    pub(crate) fn pipe() -> (Self, PipeReader, Account) {
        let (writer, pipe) = tokio::io::duplex(PIPE_CAPACITY);
        let shared = Arc::new(PipeShared::default());
        let account = Account::Pipe(Arc::clone(&shared));
        let reader = PipeReader {
            pipe,
            shared: Arc::clone(&shared),
            read: 0,
        };
        let sink = Self(Target::Pipe {
            writer: Some(writer),
            shared,
        });
        (sink, reader, account)
    }

    /// Takes all of `bytes` if that is possible without waiting, which it always is for a capture.
    /// Returns whether it took them; otherwise none were taken, and the asynchronous write of
    /// [`AsyncWrite`] has to be used.
    pub fn push(&mut self, bytes: &[u8]) -> bool {
        match &mut self.0 {
            Target::Capture(capture) => {
                lock(capture).push(bytes);
                true
            }
            Target::Pipe {
                writer: None,
                shared,
            } => {
                shared.count(bytes.len());
                true
            }
            Target::Pipe { shared, .. } => {
                let mut rest = shared.rest();
                let Some(rest) = &mut *rest else {
                    return false;
                };
                let room = REST_LIMIT.saturating_sub(rest.len());
                rest.extend_from_slice(&bytes[..bytes.len().min(room)]);
                shared.count(bytes.len());
                true
            }
        }
    }
}

/// A panic while the lock is held leaves a capture that is at worst one chunk short.
fn lock(capture: &Mutex<Capture>) -> MutexGuard<'_, Capture> {
    capture.lock().unwrap_or_else(PoisonError::into_inner)
}

impl AsyncWrite for OutputSink {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.push(bytes) {
            return Poll::Ready(Ok(bytes.len()));
        }
        let Target::Pipe { writer, shared } = &mut self.0 else {
            return Poll::Ready(Ok(bytes.len()));
        };
        let written = match writer {
            None => bytes.len(),
            Some(pipe) => match ready!(Pin::new(pipe).poll_write(cx, bytes)) {
                Ok(written) => written,
                Err(_reader_gone) => {
                    *writer = None;
                    bytes.len()
                }
            },
        };
        shared.count(written);
        Poll::Ready(Ok(written))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Target::Pipe { writer, .. } = &mut self.0 {
            *writer = None;
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for OutputSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Target::Capture(_) => "OutputSink(capture)",
            Target::Pipe { .. } => "OutputSink(pipe)",
        })
    }
}

/// The supervisor's view of a sink: what went through it, readable whatever the backend does.
#[derive(Debug)]
pub(crate) enum Account {
    Capture(Arc<Mutex<Capture>>),
    Pipe(Arc<PipeShared>),
}

impl Account {
    /// Ends the holding back: what is still on its way is taken at once and kept for the reader,
    /// however slow that is. For a command that has ended, so that little can come.
    pub(crate) fn release(&self) {
        if let Self::Pipe(shared) = self {
            shared.rest().get_or_insert_default();
        }
    }

    pub(crate) fn finish(self) -> Captured {
        match self {
            Self::Capture(capture) => {
                std::mem::replace(&mut *lock(&capture), Capture::new(0)).finish()
            }
            Self::Pipe(shared) => {
                Captured::from_parts(Vec::new(), 0, shared.total.load(Ordering::Relaxed))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    #[tokio::test]
    async fn a_reader_that_has_gone_costs_no_error() {
        let (mut sink, reader, account) = OutputSink::pipe();
        drop(reader);
        sink.write_all(&vec![b'x'; 1 << 20]).await.unwrap();
        assert_eq!(account.finish().total_bytes(), 1 << 20);
    }

    #[tokio::test]
    async fn a_slow_reader_holds_the_writer_back() {
        let (mut sink, mut reader, account) = OutputSink::pipe();
        let writer = tokio::spawn(async move { sink.write_all(&vec![b'x'; 1 << 20]).await });
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        writer.await.unwrap().unwrap();
        assert_eq!(all.len(), 1 << 20);
        assert_eq!(account.finish().total_bytes(), 1 << 20);
    }

    #[tokio::test]
    async fn what_comes_after_the_end_waits_for_a_slow_reader() {
        let (mut sink, mut reader, account) = OutputSink::pipe();
        let pattern: Vec<u8> = (0..1 << 18).map(|n: u32| n.to_le_bytes()[1]).collect();
        let (first, rest) = pattern.split_at(PIPE_CAPACITY);
        sink.write_all(first).await.unwrap();
        assert!(!sink.push(rest));
        account.release();
        assert!(sink.push(rest));
        drop(sink);
        let mut all = Vec::new();
        reader.read_to_end(&mut all).await.unwrap();
        assert!(all == pattern);
        assert_eq!(account.finish().total_bytes(), 1 << 18);
    }
}
