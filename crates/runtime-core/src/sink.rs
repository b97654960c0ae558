//! Where a backend takes stdin from and puts output.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, DuplexStream};

use crate::{Capture, Captured};

/// How much a streamed execution may be ahead of its reader, per stream, in bytes.
pub(crate) const PIPE_CAPACITY: usize = 64 * 1024;

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
        total: Arc<AtomicU64>,
    },
}

impl OutputSink {
    pub(crate) fn capture(limit: usize) -> (Self, Account) {
        let capture = Arc::new(Mutex::new(Capture::new(limit)));
        let account = Account::Capture(Arc::clone(&capture));
        (Self(Target::Capture(capture)), account)
    }

    pub(crate) fn pipe() -> (Self, DuplexStream, Account) {
        let (writer, reader) = tokio::io::duplex(PIPE_CAPACITY);
        let total = Arc::new(AtomicU64::new(0));
        let account = Account::Count(Arc::clone(&total));
        let sink = Self(Target::Pipe {
            writer: Some(writer),
            total,
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
                total,
            } => {
                total.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                true
            }
            Target::Pipe { .. } => false,
        }
    }
}

/// A panic while the lock is held leaves a capture that is at worst one chunk short.
fn lock(capture: &Mutex<Capture>) -> std::sync::MutexGuard<'_, Capture> {
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
        let Target::Pipe { writer, total } = &mut self.0 else {
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
        total.fetch_add(written as u64, Ordering::Relaxed);
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
    Count(Arc<AtomicU64>),
}

impl Account {
    pub(crate) fn finish(self) -> Captured {
        match self {
            Self::Capture(capture) => {
                std::mem::replace(&mut *lock(&capture), Capture::new(0)).finish()
            }
            Self::Count(total) => {
                Captured::from_parts(Vec::new(), 0, total.load(Ordering::Relaxed))
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
}
