//! What an engine reports of a pull: an object to a line.

use bollard::errors::Error as EngineError;
use bollard::models::CreateImageInfo;
use bytes::{Buf, BytesMut};
use http_body_util::BodyExt;
use hyper::body::Incoming;

/// The longest line, in bytes.
const LINE: usize = 256 << 10;

/// The reports of one pull, as they come.
#[derive(Debug)]
pub(crate) struct Progress {
    body: Incoming,
    buffer: BytesMut,
}

impl Progress {
    pub(crate) fn new(body: Incoming) -> Self {
        Self {
            body,
            buffer: BytesMut::new(),
        }
    }

    /// The next report; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    ///
    /// The report of a failure, a line that is no report, and a connection that broke.
    pub(crate) async fn next(&mut self) -> Result<Option<CreateImageInfo>, EngineError> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line = self.buffer.split_to(end);
                self.buffer.advance(1);
                if !line.trim_ascii().is_empty() {
                    return report(&line).map(Some);
                }
                continue;
            }
            if self.buffer.len() > LINE {
                return Err(std::io::Error::other("a line of the report does not end").into());
            }
            match self.body.frame().await {
                Some(frame) => {
                    if let Ok(data) = frame?.into_data() {
                        self.buffer.extend_from_slice(&data);
                    }
                }
                None if self.buffer.trim_ascii().is_empty() => return Ok(None),
                None => {
                    let line = std::mem::take(&mut self.buffer);
                    return report(&line).map(Some);
                }
            }
        }
    }
}

fn report(line: &[u8]) -> Result<CreateImageInfo, EngineError> {
    let report: CreateImageInfo = serde_json::from_slice(line)?;
    match report
        .error_detail
        .as_ref()
        .and_then(|detail| detail.message.clone())
    {
        Some(error) => Err(EngineError::DockerStreamError { error }),
        None => Ok(report),
    }
}
