//! Passes a stream of the command on to one of ours.

use std::io::{self, Write};
use std::sync::mpsc as blocking;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::mpsc;

/// How much is read from the command at once, in bytes.
const CHUNK: usize = 64 * 1024;

/// Passes on what comes as it comes, without buffering, so that a prompt without a newline is
/// seen. Ends with the stream, or with an error of ours.
///
/// A thread writes, made when there is something to write: whoever reads us may be slow for as
/// long as he likes, and the command's deadline and our signals must hold all the same. Where this
/// future is dropped the thread stays in its last write, and ends with this process.
pub(crate) async fn forward(
    stream: Option<impl AsyncRead + Unpin>,
    target: impl Write + Send + 'static,
) -> io::Result<()> {
    let Some(mut stream) = stream else {
        return Ok(());
    };
    let mut chunk = vec![0; CHUNK];
    let mut read = stream.read(&mut chunk).await?;
    if read == 0 {
        return Ok(());
    }
    let mut writer = Writer::start(target)?;
    while read > 0 {
        chunk = writer.write(chunk, read).await?;
        read = stream.read(&mut chunk).await?;
    }
    Ok(())
}

/// Our end of the thread. The one buffer goes there and comes back.
struct Writer {
    work: blocking::SyncSender<(Vec<u8>, usize)>,
    done: mpsc::Receiver<io::Result<Vec<u8>>>,
}

impl Writer {
    fn start(mut target: impl Write + Send + 'static) -> io::Result<Self> {
        let (work, todo) = blocking::sync_channel::<(Vec<u8>, usize)>(1);
        let (report, done) = mpsc::channel(1);
        std::thread::Builder::new()
            .name("prx-runtime-output".into())
            .spawn(move || {
                for (chunk, length) in todo {
                    let written = target
                        .write_all(&chunk[..length])
                        .and_then(|()| target.flush());
                    if report.blocking_send(written.map(|()| chunk)).is_err() {
                        return;
                    }
                }
            })?;
        Ok(Self { work, done })
    }

    /// Writes the first `length` bytes of `chunk` and gives it back.
    async fn write(&mut self, chunk: Vec<u8>, length: usize) -> io::Result<Vec<u8>> {
        let gone = || io::Error::other("the writing thread has ended");
        self.work.send((chunk, length)).map_err(|_| gone())?;
        self.done.recv().await.unwrap_or_else(|| Err(gone()))
    }
}
