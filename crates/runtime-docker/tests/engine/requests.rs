//! What is asked of the engine is a closed list.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};

use crate::images::docker;
use crate::support::{need_engine, runtime};

/// Listens beside the engine, passes everything on, and writes down the first line of each
/// connection, which has one request each.
pub(crate) struct Recorder {
    dir: tempfile::TempDir,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Recorder {
    pub(crate) fn start(engine: PathBuf, hold: Option<(&'static str, PathBuf)>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&lines);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(
                    client,
                    engine.clone(),
                    Arc::clone(&seen),
                    hold.clone(),
                ));
            }
        });
        Self { dir, lines }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// `METHOD /path`, with ids and queries made alike.
    fn requests(&self) -> Vec<String> {
        let mut requests: Vec<_> = self
            .lines
            .lock()
            .unwrap()
            .iter()
            .map(|line| shape(line))
            .collect();
        requests.sort_unstable();
        requests.dedup();
        requests
    }
}

fn shape(line: &str) -> String {
    let mut words = line.split(' ');
    let (method, target) = (words.next().unwrap(), words.next().unwrap());
    let path = target.split('?').next().unwrap();
    let parts: Vec<_> = path.split('/').collect();
    match parts[..] {
        ["", "containers", _, action] => format!("{method} /containers/ID/{action}"),
        ["", "containers", last] if !matches!(last, "json" | "create") => {
            format!("{method} /containers/ID")
        }
        ["", "images", .., "json"] => format!("{method} /images/NAME/json"),
        _ => format!("{method} {path}"),
    }
}

/// `hold`: before a request whose path ends so is passed on, this command line of the test is run.
async fn pass_on(
    mut client: UnixStream,
    engine: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
    hold: Option<(&'static str, PathBuf)>,
) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n") {
        match client.read(&mut byte).await {
            Ok(1) => head.push(byte[0]),
            _ => return,
        }
    }
    let line = String::from_utf8_lossy(&head).trim().to_owned();
    if let Some((path, directory)) = &hold
        && line
            .split(['?', ' '])
            .nth(1)
            .is_some_and(|target| target.ends_with(path))
    {
        swap(directory);
    }
    seen.lock().unwrap().push(line);
    let mut engine = UnixStream::connect(engine).await.unwrap();
    engine.write_all(&head).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
}

/// What an attacker would do: the directory becomes a link to another one.
fn swap(directory: &Path) {
    if directory.is_symlink() {
        return;
    }
    std::fs::rename(directory, directory.with_extension("moved")).unwrap();
    std::os::unix::fs::symlink("/etc", directory).unwrap();
}

fn engine_socket() -> Option<PathBuf> {
    let host = docker(&[
        "context",
        "inspect",
        "--format",
        "{{.Endpoints.docker.Host}}",
    ])
    .ok()?;
    Some(host.strip_prefix("unix://")?.into())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_else_is_asked_for() {
    need_engine!();
    let Some(engine) = engine_socket() else {
        return;
    };
    let recorder = Recorder::start(engine, None);
    let runtime = runtime(&format!("socket = {:?}", recorder.socket()));
    runtime.validate().await.unwrap();
    assert!(runtime.is_available().await);
    let dir = tempfile::tempdir().unwrap();
    for line in [
        "cat; exit 3",
        "kill -9 $$",
        "no-such-program",
        "exec no-such-program",
    ] {
        let request =
            ExecutionRequest::shell(line).stdin(prx_runtime_core::Stdin::Bytes(b"x".to_vec()));
        runtime.run(request.working_dir(dir.path())).await.unwrap();
    }
    let request = ExecutionRequest::program("no-such-program")
        .arg("x")
        .working_dir(dir.path());
    runtime.run(request).await.unwrap_err();
    let request = ExecutionRequest::program("sleep")
        .arg("60")
        .working_dir(dir.path());
    runtime
        .run(request.timeout(Duration::from_millis(100)))
        .await
        .unwrap();
    runtime.sweep().await.unwrap();
    assert_eq!(
        recorder.requests(),
        [
            "DELETE /containers/ID",
            "GET /_ping",
            "GET /containers/ID/changes",
            "GET /containers/ID/json",
            "GET /containers/json",
            "GET /images/NAME/json",
            "GET /info",
            "POST /containers/ID/attach",
            "POST /containers/ID/kill",
            "POST /containers/ID/start",
            "POST /containers/ID/wait",
            "POST /containers/create",
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_swapped_meanwhile_is_noticed() {
    need_engine!();
    let Some(engine) = engine_socket() else {
        return;
    };
    for moment in ["/containers/create", "/start"] {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let recorder = Recorder::start(engine.clone(), Some((moment, work.clone())));
        let runtime = runtime(&format!("socket = {:?}", recorder.socket()));
        let request = ExecutionRequest::program("sleep")
            .arg("60")
            .working_dir(&work);
        let error = runtime.run(request).await.expect_err(moment);
        assert_eq!(
            error.kind(),
            prx_runtime_core::ErrorKind::Refused,
            "{moment}: {error}"
        );
        assert_eq!(
            crate::support::count(&format!("volume={}", work.display())),
            0
        );
        let left = std::fs::read_dir(work.with_extension("moved"))
            .unwrap()
            .count();
        assert_eq!(left, 0, "no mark is left");
    }
}
