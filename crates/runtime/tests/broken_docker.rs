//! Docker is there but broken: `auto` goes on and says why, an explicit `docker` fails with a hint,
//! and neither waits for long.

#![cfg(all(unix, feature = "native", feature = "docker"))]
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is said"
)]

use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prx_runtime::config::Config;
use prx_runtime::{Error, create_runtime};

/// What either may take, and as much again for a busy machine.
const BOUND: Duration = Duration::from_secs(10);

/// What was logged by the code under test.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

fn config(backend: &str, socket: &Path, more: &str) -> Config {
    let text = format!(
        "[runtime]\nbackend = \"{backend}\"\n[runtime.docker]\nsocket = \"{}\"\n{more}",
        socket.display()
    );
    Config::from_toml_str(&text, "config.toml").unwrap()
}

/// Asserts that `auto` takes native and logs `reason`, and returns what `docker` says.
async fn check(socket: &Path, more: &str, reason: &str) -> Error {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_writer(move || writer.clone())
        .with_ansi(false)
        .finish();
    let auto = {
        let _logged = tracing::subscriber::set_default(subscriber);
        let config = config("auto", socket, more);
        let made = create_runtime(&config);
        Box::pin(tokio::time::timeout(BOUND, made))
            .await
            .unwrap()
            .unwrap()
    };
    // Where WebAssembly is compiled in, modules go there and the rest to native.
    assert!(
        matches!(auto.name(), "native" | "wasm+native"),
        "{}",
        auto.name()
    );
    let text = log.text();
    assert!(
        text.contains("backend chosen by auto") && text.contains(reason),
        "{text}"
    );

    let config = config("docker", socket, more);
    let made = create_runtime(&config);
    let Err(error) = Box::pin(tokio::time::timeout(BOUND, made)).await.unwrap() else {
        panic!("a broken engine was accepted");
    };
    assert!(error.to_string().contains(reason), "{error}");
    assert!(error.hint().is_some(), "{error}");
    error
}

/// An engine that answers every request with `answer`, and nothing where that is empty.
fn engine(directory: &Path, answer: &'static str) -> PathBuf {
    let socket = directory.join("docker.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            std::thread::spawn(move || serve(stream, answer));
        }
    });
    socket
}

fn serve(mut stream: UnixStream, answer: &str) {
    let mut request = [0; 4096];
    while let Ok(1..) = stream.read(&mut request) {
        if stream.write_all(answer.as_bytes()).is_err() {
            return;
        }
    }
}

#[tokio::test]
async fn a_socket_that_is_not_there() {
    let error = check(
        Path::new("/nowhere/docker.sock"),
        "",
        "/nowhere/docker.sock",
    )
    .await;
    assert_eq!(error.kind(), prx_runtime::ErrorKind::Unavailable);
}

#[tokio::test]
async fn an_engine_that_accepts_and_never_answers() {
    let directory = tempfile::tempdir().unwrap();
    check(&engine(directory.path(), ""), "", "docker.sock").await;
}

#[tokio::test]
async fn an_engine_with_an_old_interface() {
    let directory = tempfile::tempdir().unwrap();
    let answer = "HTTP/1.1 200 OK\r\nApi-Version: 1.12\r\nContent-Type: application/json\r\n\
                  Content-Length: 22\r\n\r\n{\"ApiVersion\":\"1.12\" }";
    check(&engine(directory.path(), answer), "", "1.12").await;
}

#[tokio::test]
async fn an_image_that_is_missing_and_may_not_be_pulled() {
    let socket = Path::new("/var/run/docker.sock");
    if UnixStream::connect(socket).is_err() {
        let reason = format!("no engine answers at {}", socket.display());
        return prx_fixtures::skip("docker", reason);
    }
    let more = "image = \"prx-runtime-test/not-there:1\"\nauto_pull = false\n";
    let error = check(socket, more, "prx-runtime-test/not-there:1").await;
    assert_eq!(error.kind(), prx_runtime::ErrorKind::Image);
}
