//! Moves stdin and output between the engine's stream and the execution's ends of it.

use std::io;

use prx_runtime_core::{OutputSink, StdinSource};
use tokio::io::{AsyncReadExt, AsyncWriteExt, ReadHalf, WriteHalf};

use crate::demux::{Channel, Demux};
use crate::transport::{Attached, Connection};

/// How much is read at once, in bytes.
const BUFFER: usize = 64 << 10;
/// How much of stdin is read at once, in bytes.
const INPUT: usize = 32 << 10;
/// How much is remembered of the start of stderr, and of a message of the engine, in bytes.
const HEAD: usize = 1 << 10;

/// The two directions of an attached stream, or of one for output and one for input.
pub(crate) fn pump(
    (attached, input): (Attached, Option<Attached>),
    stdin: StdinSource,
    stdout: OutputSink,
    stderr: OutputSink,
) -> (Input, Output) {
    let (reader, mut writer) = tokio::io::split(attached.connection);
    if let Some(input) = input {
        (_, writer) = tokio::io::split(input.connection);
    }
    let mut buffer = vec![0; BUFFER.max(attached.read_ahead.len())].into_boxed_slice();
    buffer[..attached.read_ahead.len()].copy_from_slice(&attached.read_ahead);
    let output = Output {
        reader,
        buffer,
        next: 0,
        end: attached.read_ahead.len(),
        demux: Demux::new(),
        pending: None,
        stdout: Some(stdout),
        stderr: Some(stderr),
        ended: false,
        blocked: false,
        seen: Seen::default(),
    };
    let input = Input {
        writer: Some(writer),
        source: stdin,
        chunk: Vec::new(),
        at: 0,
    };
    (input, output)
}

/// From the execution to the command.
#[derive(Debug)]
pub(crate) struct Input {
    /// `None` once stdin is closed.
    writer: Option<WriteHalf<Connection>>,
    source: StdinSource,
    chunk: Vec<u8>,
    at: usize,
}

impl Input {
    pub(crate) fn ended(&self) -> bool {
        self.writer.is_none()
    }

    /// Moves stdin until its end, or until the command does not take it any more. Cancel-safe.
    pub(crate) async fn run(&mut self) {
        let Some(writer) = &mut self.writer else {
            return;
        };
        loop {
            while self.at < self.chunk.len() {
                match writer.write(&self.chunk[self.at..]).await {
                    Ok(written @ 1..) => self.at += written,
                    // A command that stops reading is no error.
                    Ok(0) | Err(_) => {
                        self.close();
                        return;
                    }
                }
            }
            self.at = 0;
            match &mut self.source {
                StdinSource::Bytes(bytes) => {
                    self.chunk = std::mem::take(bytes);
                    self.source = StdinSource::Empty;
                }
                StdinSource::Reader(reader) => {
                    self.chunk.resize(INPUT, 0);
                    // What is here counts only once the read has told how much it is.
                    self.at = self.chunk.len();
                    let read = reader.read(&mut self.chunk).await.unwrap_or(0);
                    self.chunk.truncate(read);
                    self.at = 0;
                    if read == 0 {
                        self.source = StdinSource::Empty;
                    }
                }
                _ => {
                    // Closes this direction only: end of file for the command.
                    let _ = writer.shutdown().await;
                    self.close();
                    return;
                }
            }
        }
    }

    fn close(&mut self) {
        self.writer = None;
        self.source = StdinSource::Empty;
        self.chunk = Vec::new();
        self.at = 0;
    }
}

/// From the command to the execution.
pub(crate) struct Output {
    reader: ReadHalf<Connection>,
    buffer: Box<[u8]>,
    /// What was read and not passed on yet: `buffer[next..end]`.
    next: usize,
    end: usize,
    demux: Demux,
    /// How much of `buffer[next..end]` is payload, and of which stream.
    pending: Option<(Channel, usize)>,
    stdout: Option<OutputSink>,
    stderr: Option<OutputSink>,
    ended: bool,
    blocked: bool,
    seen: Seen,
}

impl std::fmt::Debug for Output {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Output")
            .field("ended", &self.ended)
            .finish_non_exhaustive()
    }
}

/// What went through.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) stdout_bytes: u64,
    pub(crate) stderr_bytes: u64,
    /// The start of stderr.
    pub(crate) stderr_head: Vec<u8>,
    /// The start of what the engine itself said.
    pub(crate) engine: Vec<u8>,
}

impl Output {
    /// Whether both streams are at their end.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Whether a reader holds us back, and not the engine.
    pub(crate) fn blocked(&self) -> bool {
        self.blocked
    }

    pub(crate) fn seen(&self) -> &Seen {
        &self.seen
    }

    /// Moves output until both streams are at their end. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The stream broke, is not framed as it should be, or the engine said something itself.
    pub(crate) async fn run(&mut self) -> io::Result<()> {
        if self.ended {
            return Ok(());
        }
        let result = self.move_all().await;
        self.ended = true;
        // Whoever reads them learns that nothing more comes.
        self.stdout = None;
        self.stderr = None;
        result
    }

    async fn move_all(&mut self) -> io::Result<()> {
        loop {
            self.pass_on().await?;
            let read = self.reader.read(&mut self.buffer).await?;
            (self.next, self.end) = (0, read);
            if read == 0 {
                return self.at_end();
            }
        }
    }

    fn at_end(&self) -> io::Result<()> {
        if !self.seen.engine.is_empty() {
            let said = String::from_utf8_lossy(&self.seen.engine);
            return Err(io::Error::other(format!(
                "the engine said: {}",
                crate::error::one_line(&said)
            )));
        }
        if !self.demux.between_frames() {
            return Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the attached stream ended in the middle of a frame",
            ));
        }
        Ok(())
    }

    /// Passes on all that was read.
    async fn pass_on(&mut self) -> io::Result<()> {
        loop {
            let Some((channel, length)) = self.pending else {
                let unread = &self.buffer[self.next..self.end];
                let mut rest = unread;
                let piece = self.demux.next(&mut rest).map_err(io::Error::other)?;
                let length = piece.map_or(0, |(_, payload)| payload.len());
                self.next += unread.len() - rest.len() - length;
                match piece {
                    Some((channel, _)) => self.pending = Some((channel, length)),
                    None => return Ok(()),
                }
                continue;
            };
            let payload = &self.buffer[self.next..self.next + length];
            let sink = match channel {
                Channel::Stdout => &mut self.stdout,
                Channel::Stderr => &mut self.stderr,
                Channel::Engine => &mut None,
            };
            let mut taken = length;
            if let Some(sink) = sink
                && !sink.push(payload)
            {
                self.blocked = true;
                taken = sink.write(payload).await?;
                self.blocked = false;
            }
            self.seen
                .count(channel, &self.buffer[self.next..self.next + taken]);
            self.next += taken;
            self.pending = (taken < length).then_some((channel, length - taken));
        }
    }
}

impl Seen {
    fn count(&mut self, channel: Channel, bytes: &[u8]) {
        let head = match channel {
            Channel::Stdout => {
                self.stdout_bytes += bytes.len() as u64;
                return;
            }
            Channel::Stderr => {
                self.stderr_bytes += bytes.len() as u64;
                &mut self.stderr_head
            }
            Channel::Engine => &mut self.engine,
        };
        let room = HEAD.saturating_sub(head.len()).min(bytes.len());
        head.extend_from_slice(&bytes[..room]);
    }
}
