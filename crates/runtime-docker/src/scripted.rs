//! An engine for tests that answers by a script, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::engine::{Budgets, Client, Engine};
use crate::socket::Candidates;

/// What it says to one request.
pub(crate) enum Answer {
    /// A status and a body.
    Says(u16, String),
    /// Nothing, and the connection stays open.
    Silence,
}

impl Answer {
    pub(crate) fn ok(body: &str) -> Self {
        Self::Says(200, body.to_owned())
    }

    pub(crate) fn refusal(status: u16, message: &str) -> Self {
        Self::Says(status, format!("{{\"message\":\"{message}\"}}"))
    }
}

/// It listens until it is dropped.
pub(crate) struct ScriptedEngine {
    dir: tempfile::TempDir,
    /// The requests so far: `METHOD /path`.
    asked: Arc<Mutex<Vec<String>>>,
}

impl ScriptedEngine {
    /// `script`: the answer to `METHOD /path`, and to the how manieth request that is, from 0.
    pub(crate) fn start(
        script: impl Fn(&str, usize) -> Answer + Clone + Send + Sync + 'static,
    ) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let asked = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                let (script, seen) = (script.clone(), Arc::clone(&seen));
                tokio::spawn(async move {
                    let Ok(Some((connection, request))) = read(connection).await else {
                        return;
                    };
                    let turn = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    // Who is cut off finds errors, as an engine does.
                    let _ = answer(connection, script(&request, turn)).await;
                });
            }
        });
        Self { dir, asked }
    }

    pub(crate) async fn client(&self) -> Client {
        let socket = self.dir.path().join("engine.sock");
        let engine = Engine {
            candidates: Candidates::new(socket.to_str()).unwrap(),
            budgets: Budgets {
                connect: Duration::from_secs(5),
                answer: Duration::from_secs(5),
                work: Duration::from_secs(60),
            },
        };
        engine.connect().await.unwrap()
    }

    /// How many requests began so.
    pub(crate) fn count(&self, begin: &str) -> usize {
        let asked = self.asked.lock().unwrap();
        asked.iter().filter(|line| line.starts_with(begin)).count()
    }

    /// Waits for a request that begins so.
    pub(crate) async fn asked(&self, begin: &str) {
        while self.count(begin) == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// The first words of a request; `None` where the connection was only tried.
async fn read(mut connection: UnixStream) -> std::io::Result<Option<(UnixStream, String)>> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = connection.read(&mut chunk).await?;
        if read == 0 {
            return Ok(None);
        }
        head.extend_from_slice(&chunk[..read]);
    }
    let head = String::from_utf8_lossy(&head);
    let target = head.split(['?', '\r']).next().unwrap_or_default();
    let mut words = target.split(' ');
    let (method, path) = (
        words.next().unwrap_or_default(),
        words.next().unwrap_or_default(),
    );
    Ok(Some((connection, format!("{method} {path}"))))
}

async fn answer(mut connection: UnixStream, answer: Answer) -> std::io::Result<()> {
    match answer {
        Answer::Silence => tokio::time::sleep(Duration::from_secs(60)).await,
        Answer::Says(status, body) => {
            let text = format!(
                "HTTP/1.1 {status} Said\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            connection.write_all(text.as_bytes()).await?;
            connection.shutdown().await?;
        }
    }
    Ok(())
}
