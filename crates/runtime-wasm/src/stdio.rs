//! The streams of a guest, for engines to put behind their own traits.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use prx_runtime_core::{OutputSink, StdinSource};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// How much a guest may write at once, in bytes.
pub const WRITE_PERMIT: usize = 64 * 1024;

/// How much is read ahead of a guest, in bytes.
const READ_AHEAD: usize = 64 * 1024;

/// An output stream of a guest. Clones are the same stream.
///
/// Into a bounded capture a write goes at once. Towards a slow reader what was written last is
/// held, at most [`WRITE_PERMIT`] bytes of it, and the guest has to wait until that has gone.
#[derive(Clone)]
pub struct GuestOutput(Arc<Mutex<Output>>);

struct Output {
    /// `None` once the stream was closed.
    sink: Option<OutputSink>,
    held: Bytes,
}

impl GuestOutput {
    /// A stream into `sink`.
    pub(crate) fn new(sink: OutputSink) -> Self {
        Self(Arc::new(Mutex::new(Output {
            sink: Some(sink),
            held: Bytes::new(),
        })))
    }

    /// A stream that leads nowhere.
    pub(crate) fn nowhere() -> Self {
        Self(Arc::new(Mutex::new(Output {
            sink: None,
            held: Bytes::new(),
        })))
    }

    /// How much may be written now: nothing while something is held.
    pub fn permit(&self) -> usize {
        if self.lock().held.is_empty() {
            WRITE_PERMIT
        } else {
            0
        }
    }

    /// Writes `bytes`, of which there are no more than the [permit](Self::permit). After the
    /// stream was closed they go nowhere.
    pub fn write(&self, bytes: Bytes) {
        let mut output = self.lock();
        let output = &mut *output;
        let Some(sink) = &mut output.sink else { return };
        if output.held.is_empty() {
            if !sink.push(&bytes) {
                output.held = bytes;
            }
        } else {
            output.held = [&*output.held, &*bytes].concat().into();
        }
    }

    /// Ready when nothing is held.
    pub fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut output = self.lock();
        let output = &mut *output;
        while let Some(sink) = &mut output.sink
            && !output.held.is_empty()
        {
            match ready!(Pin::new(sink).poll_write(cx, &output.held)) {
                Ok(written) => output.held.advance(written),
                Err(_) => output.held.clear(),
            }
        }
        Poll::Ready(())
    }

    /// Ends the stream.
    pub(crate) fn close(&self) {
        self.lock().sink = None;
    }

    /// A panic while the lock is held leaves a stream that is at worst one chunk short.
    fn lock(&self) -> MutexGuard<'_, Output> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GuestOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuestOutput")
    }
}

/// The standard input of a guest. Clones are the same stream.
#[derive(Clone)]
pub struct GuestInput(Arc<Mutex<Input>>);

enum Input {
    /// What is left, then the end.
    Bytes(Bytes),
    Reader {
        reader: Box<dyn AsyncRead + Send + Unpin>,
        ahead: Bytes,
    },
    Failed(io::ErrorKind),
}

/// What a read of [`GuestInput`] finds.
#[derive(Debug)]
pub enum InputRead {
    /// Some bytes, not none.
    Bytes(Bytes),
    /// Nothing yet; [`GuestInput::poll_readable`] says when.
    Nothing,
    /// The end.
    End,
    /// The reader that gives the input failed.
    Failed(io::ErrorKind),
}

impl GuestInput {
    /// A stream of what `source` gives.
    pub(crate) fn new(source: StdinSource) -> Self {
        Self(Arc::new(Mutex::new(match source {
            StdinSource::Bytes(bytes) => Input::Bytes(bytes.into()),
            StdinSource::Reader(reader) => Input::Reader {
                reader,
                ahead: Bytes::new(),
            },
            // Of what is not known nothing can be read.
            _ => Input::Bytes(Bytes::new()),
        })))
    }

    /// Takes up to `max` bytes of what is there.
    pub fn read(&self, max: usize) -> InputRead {
        match &mut *self.lock() {
            Input::Bytes(bytes) if bytes.is_empty() => InputRead::End,
            Input::Reader { ahead, .. } if ahead.is_empty() => InputRead::Nothing,
            Input::Bytes(bytes) | Input::Reader { ahead: bytes, .. } => {
                InputRead::Bytes(bytes.split_to(max.min(bytes.len())))
            }
            Input::Failed(kind) => InputRead::Failed(*kind),
        }
    }

    /// Ready when a read would not find [`InputRead::Nothing`].
    pub fn poll_readable(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut input = self.lock();
        let Input::Reader { reader, ahead } = &mut *input else {
            return Poll::Ready(());
        };
        if !ahead.is_empty() {
            return Poll::Ready(());
        }
        let mut room = vec![0; READ_AHEAD];
        let mut buffer = ReadBuf::new(&mut room);
        match ready!(Pin::new(reader).poll_read(cx, &mut buffer)) {
            Ok(()) => {
                let read = buffer.filled().len();
                room.truncate(read);
                if read == 0 {
                    *input = Input::Bytes(Bytes::new());
                } else {
                    *ahead = room.into();
                }
            }
            Err(error) => *input = Input::Failed(error.kind()),
        }
        Poll::Ready(())
    }

    /// As for [`GuestOutput`].
    fn lock(&self) -> MutexGuard<'_, Input> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for GuestInput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GuestInput")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::future::poll_fn;
    use tokio::io::AsyncWriteExt;

    #[tokio::test]
    async fn a_reader_is_read_to_its_end() {
        let (mut writer, reader) = tokio::io::duplex(16);
        let input = GuestInput::new(StdinSource::Reader(Box::new(reader)));
        assert!(matches!(input.read(1), InputRead::Nothing));
        writer.write_all(b"hello").await.unwrap();
        drop(writer);
        poll_fn(|cx| input.poll_readable(cx)).await;
        assert!(matches!(input.read(2), InputRead::Bytes(bytes) if bytes == "he"));
        assert!(matches!(input.read(9), InputRead::Bytes(bytes) if bytes == "llo"));
        poll_fn(|cx| input.poll_readable(cx)).await;
        assert!(matches!(input.read(9), InputRead::End));
    }

    #[tokio::test]
    async fn bytes_are_read_to_their_end() {
        let input = GuestInput::new(StdinSource::Bytes(b"abc".to_vec()));
        poll_fn(|cx| input.poll_readable(cx)).await;
        assert!(matches!(input.read(2), InputRead::Bytes(bytes) if bytes == "ab"));
        assert!(matches!(input.read(2), InputRead::Bytes(bytes) if bytes == "c"));
        assert!(matches!(input.read(2), InputRead::End));
    }
}
