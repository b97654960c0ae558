//! Engines that misbehave, each in one phase of an execution: the answer is an error with a kind or
//! the deadline's verdict, it comes in time, and memory stays flat.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use prx_runtime_core::config::Config;
use prx_runtime_core::{
    ErrorKind, ExecutionOutput, ExecutionRequest, Result, Supervisor, Termination,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::backend::DockerBackend;
use crate::engine::Budgets;

/// What goes wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fault {
    /// The connection is closed at once.
    Close,
    /// The request is taken and nothing is said.
    Silence,
    /// The answer never ends.
    Endless,
    /// The answer is no JSON.
    Garbage,
    /// The answer is no HTTP.
    NoHttp,
    /// The client is sent elsewhere.
    Redirect,
    /// A byte comes now and then.
    Drip,
    /// The answer promises more than it has.
    Short,
}

const FAULTS: [Fault; 8] = [
    Fault::Close,
    Fault::Silence,
    Fault::Endless,
    Fault::Garbage,
    Fault::NoHttp,
    Fault::Redirect,
    Fault::Drip,
    Fault::Short,
];

/// The requests of an execution, by what tells them apart in their first line.
const PHASES: [&str; 8] = [
    "/_ping",
    "/info",
    "/images/",
    "/containers/create",
    "/changes",
    "/attach",
    "/start",
    "/wait",
];

/// An engine that answers well, except where its script says otherwise.
struct FakeEngine {
    dir: tempfile::TempDir,
}

#[derive(Clone, Copy)]
struct Script {
    fault: Option<(&'static str, Fault)>,
    /// What comes on the attached stream, and whether it then ends.
    stream: (&'static [u8], StreamEnd),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum StreamEnd {
    Closed,
    /// More and more payload.
    Flood,
}

impl FakeEngine {
    fn start(script: Script) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        tokio::spawn(async move {
            while let Ok((connection, _)) = listener.accept().await {
                tokio::spawn(async move {
                    // Who is cut off finds errors, as an engine does.
                    let _ = answer(connection, script).await;
                });
            }
        });
        Self { dir }
    }

    fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }
}

async fn answer(mut connection: UnixStream, script: Script) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let mut chunk = [0; 4096];
        let read = connection.read(&mut chunk).await?;
        if read == 0 {
            return Ok(());
        }
        head.extend_from_slice(&chunk[..read]);
    }
    let head = String::from_utf8_lossy(&head);
    let line = head.lines().next().unwrap_or_default().to_owned();
    if let Some((phase, fault)) = script.fault
        && line.contains(phase)
    {
        return misbehave(&mut connection, fault).await;
    }
    if line.contains("/attach") {
        let upgrade = "HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: tcp\r\n\r\n";
        connection.write_all(upgrade.as_bytes()).await?;
        let (bytes, end) = script.stream;
        connection.write_all(bytes).await?;
        if end == StreamEnd::Flood {
            loop {
                connection.write_all(&[b'x'; 1 << 16]).await?;
            }
        }
        return Ok(());
    }
    let body = match line
        .split(' ')
        .nth(1)
        .unwrap_or_default()
        .split('?')
        .next()
        .unwrap_or_default()
    {
        "/containers/create" => r#"{"Id":"abcdef","Warnings":[]}"#,
        "/containers/json" => "[]",
        path if path.ends_with("/changes") => "[]",
        // A command that does not end by itself.
        path if path.ends_with("/wait") && script.stream.1 == StreamEnd::Flood => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ""
        }
        path if path.ends_with("/wait") => r#"{"StatusCode":0}"#,
        path if path.starts_with("/images/") => r#"{"Id":"sha256:abcdef","Config":{}}"#,
        _ => "{}",
    };
    let text = format!(
        "HTTP/1.1 200 OK\r\nApi-Version: 1.41\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    connection.write_all(text.as_bytes()).await?;
    connection.shutdown().await
}

async fn misbehave(connection: &mut UnixStream, fault: Fault) -> std::io::Result<()> {
    match fault {
        Fault::Close => Ok(()),
        Fault::Silence => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(())
        }
        Fault::Endless => {
            connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n[\"").await?;
            loop {
                connection.write_all(&[b'x'; 1 << 16]).await?;
            }
        }
        Fault::Garbage => {
            connection
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\ngarbage")
                .await
        }
        Fault::NoHttp => connection.write_all(&[0xFF; 512]).await,
        Fault::Redirect => {
            let text = "HTTP/1.1 301 Moved Permanently\r\nLocation: http://elsewhere/\r\nContent-Length: 0\r\n\r\n";
            connection.write_all(text.as_bytes()).await
        }
        Fault::Drip => {
            for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n"
                .iter()
                .cycle()
            {
                connection.write_all(&[*byte]).await?;
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            Ok(())
        }
        Fault::Short => {
            connection
                .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n{\"Id\":")
                .await
        }
    }
}

/// What comes of one execution on that engine, and how long it took.
async fn run(script: Script) -> (Result<ExecutionOutput>, Duration) {
    let engine = FakeEngine::start(script);
    let mut config = Config::default();
    config.runtime.docker.socket = Some(engine.socket().display().to_string());
    config.runtime.docker.image = "fake:1".to_owned();
    config.runtime.kill_grace_ms = 100;
    let budgets = Budgets {
        connect: Duration::from_millis(500),
        answer: Duration::from_secs(1),
        work: Duration::from_secs(1),
    };
    let backend = DockerBackend::new(&config, budgets).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("x")
        .working_dir(dir.path())
        .timeout(Duration::from_secs(1));
    let started = Instant::now();
    let result = Supervisor::new(&config.runtime)
        .run(&backend, request)
        .await;
    let took = started.elapsed();
    assert_eq!(
        std::fs::read_dir(dir.path()).unwrap().count(),
        0,
        "no mark is left"
    );
    (result, took)
}

/// The most memory that this process had, in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM:"))
        .unwrap_or_default();
    line.split_ascii_whitespace()
        .nth(1)
        .and_then(|kib| kib.parse::<u64>().ok())
        .unwrap_or(0)
        << 10
}

/// More than an answer of the largest size costs, several times over.
const FLAT: u64 = 256 << 20;
/// More than all budgets together.
const IN_TIME: Duration = Duration::from_secs(20);

const HELLO: &[u8] = b"\x01\0\0\0\0\0\0\x05hello";

#[tokio::test(flavor = "multi_thread")]
async fn the_fake_engine_is_a_good_one_otherwise() {
    let (result, _) = run(Script {
        fault: None,
        stream: (HELLO, StreamEnd::Closed),
    })
    .await;
    let output = result.unwrap();
    assert_eq!(output.stdout.as_bytes(), b"hello");
    assert!(output.success());
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_in_every_phase() {
    let before = peak();
    let all = PHASES
        .into_iter()
        .flat_map(|phase| FAULTS.map(|fault| (phase, fault)));
    futures_util::stream::iter(all)
        .for_each_concurrent(8, async |(phase, fault)| {
            let script = Script {
                fault: Some((phase, fault)),
                stream: (HELLO, StreamEnd::Closed),
            };
            let (result, took) = run(script).await;
            assert!(took < IN_TIME, "{fault:?} at {phase} took {took:?}");
            match result {
                Err(error) => {
                    let expected = [
                        ErrorKind::Engine,
                        ErrorKind::Image,
                        ErrorKind::Unavailable,
                        ErrorKind::Refused,
                    ];
                    assert!(
                        expected.contains(&error.kind()),
                        "{fault:?} at {phase}: {error:?}"
                    );
                }
                // The start says nothing else; what a body after it is does not matter. A wait
                // that gives no answer is ended by the deadline.
                Ok(output) => assert!(
                    phase == "/start" && output.success()
                        || phase == "/wait" && output.termination == Termination::TimedOut,
                    "{fault:?} at {phase}: {output:?}"
                ),
            }
        })
        .await;
    assert!(
        peak() - before < FLAT,
        "{} bytes more than before",
        peak() - before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bad_header_on_the_stream() {
    for bytes in [
        b"plain text and no frame".as_slice(),
        b"\x07\0\0\0\0\0\0\x01x",
        b"\x01\0\0\x01\0\0\0\x01x",
    ] {
        let (result, took) = run(Script {
            fault: None,
            stream: (bytes, StreamEnd::Closed),
        })
        .await;
        let error = result.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Engine);
        assert!(error.to_string().contains("header"), "{error}");
        assert!(took < IN_TIME);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_that_ends_within_a_frame() {
    let (result, _) = run(Script {
        fault: None,
        stream: (&HELLO[..10], StreamEnd::Closed),
    })
    .await;
    assert_eq!(result.unwrap_err().kind(), ErrorKind::Engine);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_frame_of_4_gib_and_a_flood() {
    let before = peak();
    let header = b"\x01\0\0\0\xFF\xFF\xFF\xFF";
    let (result, took) = run(Script {
        fault: None,
        stream: (header, StreamEnd::Flood),
    })
    .await;
    let output = result.unwrap();
    assert_eq!(output.termination, Termination::TimedOut);
    assert!(output.stdout.total_bytes() > 1 << 20);
    assert!(took < IN_TIME, "{took:?}");
    assert!(
        peak() - before < FLAT,
        "{} bytes more than before",
        peak() - before
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_socket_that_never_answers_is_not_available() {
    let engine = Arc::new(FakeEngine::start(Script {
        fault: Some(("/_ping", Fault::Silence)),
        stream: (HELLO, StreamEnd::Closed),
    }));
    let mut config = Config::default();
    config.runtime.docker.socket = Some(engine.socket().display().to_string());
    let backend = DockerBackend::new(&config, Budgets::default()).unwrap();
    let started = Instant::now();
    let probe = prx_runtime_core::backend::Backend::probe(&backend).await;
    // The bound is part of the contract.
    assert!(started.elapsed() < Duration::from_secs(2));
    assert!(!probe.available, "{probe:?}");
    assert!(probe.detail.contains("engine.sock"), "{probe:?}");
}
