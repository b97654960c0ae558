//! Connections to the engine: one to a request, and none that can feed us without bound.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bollard::BollardRequest;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::header::{CONNECTION, HOST, HeaderValue, UPGRADE};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpStream, UnixStream};

use crate::listener::Listener;
use crate::socket::Endpoint;

/// What an engine may answer to one request, in bytes. Far more than any answer has.
pub(crate) const ANSWER_LIMIT: u64 = 8 << 20;
/// What an engine may say before an attached stream begins, and of itself.
pub(crate) const HEAD_LIMIT: u64 = 64 << 10;

/// Opens connections to one endpoint.
#[derive(Debug, Clone)]
pub(crate) struct Connector {
    endpoint: Endpoint,
}

impl Connector {
    pub(crate) fn new(endpoint: Endpoint) -> Self {
        Self { endpoint }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// A connection that ends with an error once more than `limit` bytes came in.
    pub(crate) async fn connect(&self, limit: u64) -> io::Result<Connection> {
        let socket = match &self.endpoint {
            Endpoint::Unix(path) => Socket::Unix(UnixStream::connect(path).await?),
            Endpoint::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                stream.set_nodelay(true)?;
                Socket::Tcp(stream)
            }
        };
        Ok(Connection {
            socket,
            left: Some(limit),
        })
    }

    /// Who listens there. `None` for an address of the network, and where the kernel does not say.
    pub(crate) async fn listener(&self) -> Option<Listener> {
        match &self.endpoint {
            Endpoint::Unix(path) => Listener::of(&UnixStream::connect(path).await.ok()?),
            Endpoint::Tcp(_) => None,
        }
    }

    /// A question, whose answer has at most `limit` bytes.
    pub(crate) async fn get(
        &self,
        target: &str,
        limit: u64,
    ) -> Result<Response<Incoming>, bollard::errors::Error> {
        self.send(Method::GET, target, None, limit).await
    }

    /// A request whose answer is its headers.
    pub(crate) async fn head(
        &self,
        target: &str,
    ) -> Result<Response<Incoming>, bollard::errors::Error> {
        self.send(Method::HEAD, target, None, HEAD_LIMIT).await
    }

    /// A request whose answer is read as it comes, at most `limit` bytes of it. For answers that the
    /// client would gather up and look at anew with every piece.
    pub(crate) async fn post(
        &self,
        target: &str,
        auth: Option<HeaderValue>,
        limit: u64,
    ) -> Result<Incoming, bollard::errors::Error> {
        let response = self.send(Method::POST, target, auth, limit).await?;
        Ok(response.into_body())
    }

    async fn send(
        &self,
        method: Method,
        target: &str,
        auth: Option<HeaderValue>,
        limit: u64,
    ) -> Result<Response<Incoming>, bollard::errors::Error> {
        let connection = self.connect(limit).await?;
        let (mut sender, driver) = http1::handshake(TokioIo::new(connection)).await?;
        drive(driver);
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(HOST, "docker")
            .header(CONNECTION, "close");
        if let Some(auth) = auth {
            request = request.header("X-Registry-Auth", auth);
        }
        let request = request.body(http_body_util::Empty::<bytes::Bytes>::new())?;
        let response = sender.send_request(request).await?;
        if response.status().is_success() {
            Ok(response)
        } else {
            Err(refusal(response, std::future::ready(Ok(()))).await)
        }
    }

    /// Attaches to a container that was not started yet. Returns the raw stream, and what was read
    /// of it along with the response.
    pub(crate) async fn attach(
        &self,
        container: &str,
        streams: Streams,
    ) -> Result<Attached, bollard::errors::Error> {
        let connection = self.connect(HEAD_LIMIT).await?;
        let (mut sender, driver) = http1::handshake(TokioIo::new(connection)).await?;
        let stdin = u8::from(streams != Streams::Output);
        let output = u8::from(streams != Streams::Input);
        let target = format!(
            "/containers/{container}/attach?stream=1&stdin={stdin}&stdout={output}&stderr={output}"
        );
        let request = Request::builder()
            .method(Method::POST)
            .uri(target)
            .header(HOST, "docker")
            .header(CONNECTION, "Upgrade")
            .header(UPGRADE, "tcp")
            .body(http_body_util::Empty::<bytes::Bytes>::new())?;
        // Polled to its end here, not in a task: nothing is left behind when this is dropped.
        let mut driver = std::pin::pin!(driver.with_upgrades());
        let response = {
            let sent = sender.send_request(request);
            tokio::pin!(sent);
            tokio::select! {
                biased;
                response = &mut sent => response?,
                ended = &mut driver => {
                    ended?;
                    sent.await?
                }
            }
        };
        if response.status() != StatusCode::SWITCHING_PROTOCOLS {
            return Err(refusal(response, driver).await);
        }
        let upgrade = hyper::upgrade::on(response);
        tokio::pin!(upgrade);
        let upgraded = tokio::select! {
            biased;
            upgraded = &mut upgrade => upgraded?,
            ended = &mut driver => {
                ended?;
                upgrade.await?
            }
        };
        let parts = upgraded
            .downcast::<TokioIo<Connection>>()
            .map_err(|_| io::Error::other("the connection is of a foreign type"))?;
        let mut connection = parts.io.into_inner();
        // From here on output flows, through a buffer of fixed size.
        connection.left = None;
        Ok(Attached {
            connection,
            read_ahead: parts.read_buf,
        })
    }
}

/// What of a container a connection is attached to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Streams {
    Both,
    Input,
    Output,
}

/// The raw stream of an attached container.
pub(crate) struct Attached {
    pub(crate) connection: Connection,
    pub(crate) read_ahead: bytes::Bytes,
}

/// What an engine said instead of attaching.
async fn refusal(
    response: Response<Incoming>,
    driver: impl Future<Output = hyper::Result<()>>,
) -> bollard::errors::Error {
    use http_body_util::BodyExt;

    let status_code = response.status().as_u16();
    let body = response.into_body().collect();
    tokio::pin!(body, driver);
    // The driver moves the body along, and goes on where the engine keeps the connection.
    let body = tokio::select! {
        biased;
        body = &mut body => body,
        _ = &mut driver => body.await,
    };
    let body = body
        .map(http_body_util::Collected::to_bytes)
        .unwrap_or_default();
    let message = serde_json::from_slice::<serde_json::Value>(&body)
        .ok()
        .and_then(|value| Some(value.get("message")?.as_str()?.to_owned()))
        .unwrap_or_else(|| String::from_utf8_lossy(&body).into_owned());
    bollard::errors::Error::DockerResponseServerError {
        status_code,
        message,
    }
}

pub(crate) type ResponseFuture =
    Pin<Box<dyn Future<Output = Result<Response<Incoming>, bollard::errors::Error>> + Send>>;

impl Connector {
    /// The way of one request to the engine, for its client.
    pub(crate) fn into_transport(self) -> impl Fn(BollardRequest) -> ResponseFuture + Send + Sync {
        move |request| self.request(request)
    }

    fn request(&self, mut request: BollardRequest) -> ResponseFuture {
        let connector = self.clone();
        Box::pin(async move {
            make_relative(&mut request)?;
            let connection = connector.connect(ANSWER_LIMIT).await?;
            let (mut sender, driver) = http1::handshake(TokioIo::new(connection)).await?;
            drive(driver);
            Ok(sender.send_request(request).await?)
        })
    }
}

/// Moves a connection along until the body of its response ends, or nobody waits for it any more.
fn drive(driver: impl Future<Output = hyper::Result<()>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = driver.await {
            tracing::trace!(%error, "a connection to the engine ended");
        }
    });
}

/// Brings a request into the form that a server expects, without the name of a proxied host.
fn make_relative(request: &mut BollardRequest) -> Result<(), bollard::errors::Error> {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str());
    *request.uri_mut() = target.parse()?;
    let headers = request.headers_mut();
    headers.insert(HOST, HeaderValue::from_static("docker"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    Ok(())
}

/// A connection that counts what comes in.
#[derive(Debug)]
pub(crate) struct Connection {
    socket: Socket,
    /// How much may still come in; `None` for a stream whose reader needs no more memory for more.
    left: Option<u64>,
}

#[derive(Debug)]
enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let result = match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_read(cx, buffer),
            Socket::Tcp(stream) => Pin::new(stream).poll_read(cx, buffer),
        };
        if let (Poll::Ready(Ok(())), Some(left)) = (&result, &mut self.left) {
            let read = (buffer.filled().len() - before) as u64;
            let Some(rest) = left.checked_sub(read) else {
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::FileTooLarge,
                    "the engine's answer does not end",
                )));
            };
            *left = rest;
        }
        result
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_write(cx, bytes),
            Socket::Tcp(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_flush(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.socket {
            Socket::Unix(stream) => Pin::new(stream).poll_shutdown(cx),
            Socket::Tcp(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
