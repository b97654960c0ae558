//! An open file, as wasmer wants it.

use std::fs::{File, FileTimes};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use prx_runtime_wasm::GrantedDirectory;
use virtual_fs::{AsyncRead, AsyncSeek, AsyncWrite, FsError, ReadBuf, VirtualFile};

use super::error;

/// As many bytes as are said to be writable at once.
const READY: usize = 64 << 10;

/// A file of the host. Reading and writing it goes straight to the system, from the thread of the
/// guest.
#[derive(Debug)]
pub(super) struct HostFile {
    file: File,
    directory: Arc<GrantedDirectory>,
    path: PathBuf,
}

impl HostFile {
    pub(super) fn new(file: File, directory: Arc<GrantedDirectory>, path: PathBuf) -> Self {
        Self {
            file,
            directory,
            path,
        }
    }

    fn time(&self, of: impl Fn(&std::fs::Metadata) -> io::Result<SystemTime>) -> u64 {
        self.file
            .metadata()
            .and_then(|metadata| of(&metadata))
            .ok()
            .and_then(|time| time.duration_since(UNIX_EPOCH).ok())
            .and_then(|since| u64::try_from(since.as_nanos()).ok())
            .unwrap_or_default()
    }
}

impl AsyncRead for HostFile {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = self.file.read(buffer.initialize_unfilled())?;
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for HostFile {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(self.file.write(bytes))
    }

    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

impl AsyncSeek for HostFile {
    fn start_seek(mut self: Pin<&mut Self>, position: SeekFrom) -> io::Result<()> {
        match self.file.seek(position) {
            // wasmer seeks before every read and write, also in what has no position.
            Err(error) if error.kind() != io::ErrorKind::NotSeekable => Err(error),
            _ => Ok(()),
        }
    }

    fn poll_complete(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<u64>> {
        match self.file.stream_position() {
            Err(error) if error.kind() == io::ErrorKind::NotSeekable => Poll::Ready(Ok(0)),
            position => Poll::Ready(position),
        }
    }
}

impl VirtualFile for HostFile {
    fn last_accessed(&self) -> u64 {
        self.time(std::fs::Metadata::accessed)
    }

    fn last_modified(&self) -> u64 {
        self.time(std::fs::Metadata::modified)
    }

    fn created_time(&self) -> u64 {
        self.time(std::fs::Metadata::created)
    }

    fn set_times(&mut self, atime: Option<u64>, mtime: Option<u64>) -> virtual_fs::Result<()> {
        if !self.directory.is_writable() {
            return Err(FsError::PermissionDenied);
        }
        let time = |nanoseconds| UNIX_EPOCH + Duration::from_nanos(nanoseconds);
        let mut times = FileTimes::new();
        if let Some(atime) = atime {
            times = times.set_accessed(time(atime));
        }
        if let Some(mtime) = mtime {
            times = times.set_modified(time(mtime));
        }
        self.file.set_times(times).map_err(error)
    }

    fn size(&self) -> u64 {
        self.file.metadata().map_or(0, |metadata| metadata.len())
    }

    fn set_len(&mut self, size: u64) -> virtual_fs::Result<()> {
        if !self.directory.is_writable() {
            return Err(FsError::PermissionDenied);
        }
        self.file.set_len(size).map_err(error)
    }

    fn unlink(&mut self) -> virtual_fs::Result<()> {
        self.directory.remove_file(&self.path).map_err(error)
    }

    fn poll_read_ready(mut self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let left = self
            .size()
            .saturating_sub(self.file.stream_position().unwrap_or_default());
        Poll::Ready(Ok(usize::try_from(left).unwrap_or(usize::MAX)))
    }

    fn poll_write_ready(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(READY))
    }
}
