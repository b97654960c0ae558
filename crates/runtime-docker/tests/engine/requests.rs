//! What is asked of the engine is a closed list.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use rustix::fs::{CWD, RenameFlags, renameat_with};
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

/// Before the first request whose path ends so is passed on, this is done with that directory.
/// Others like it wait meanwhile.
pub(crate) struct Hold {
    path: &'static str,
    directory: PathBuf,
    act: Mutex<Option<Act>>,
}
type Act = fn(&Path);

impl Hold {
    fn new(path: &'static str, directory: &Path, act: Act) -> Self {
        Self {
            path,
            directory: directory.to_owned(),
            act: Mutex::new(Some(act)),
        }
    }

    fn see(&self, line: &str) {
        let target = line.split(['?', ' ']).nth(1);
        if target.is_some_and(|target| target.ends_with(self.path)) {
            let mut act = self.act.lock().unwrap();
            if let Some(act) = act.take() {
                act(&self.directory);
            }
        }
    }
}

impl Recorder {
    pub(crate) fn start(engine: PathBuf, hold: Option<Hold>) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(dir.path().join("engine.sock")).unwrap();
        let lines = Arc::<Mutex<Vec<String>>>::default();
        let seen = Arc::clone(&lines);
        let hold = Arc::new(hold);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(pass_on(
                    client,
                    engine.clone(),
                    Arc::clone(&seen),
                    Arc::clone(&hold),
                ));
            }
        });
        Self { dir, lines }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.dir.path().join("engine.sock")
    }

    /// How many requests began so.
    pub(crate) fn count(&self, begin: &str) -> usize {
        let lines = self.lines.lock().unwrap();
        lines.iter().filter(|line| line.starts_with(begin)).count()
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

async fn pass_on(
    mut client: UnixStream,
    engine: PathBuf,
    seen: Arc<Mutex<Vec<String>>>,
    hold: Arc<Option<Hold>>,
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
    if let Some(hold) = &*hold {
        hold.see(&line);
    }
    seen.lock().unwrap().push(line);
    let mut engine = UnixStream::connect(engine).await.unwrap();
    engine.write_all(&head).await.unwrap();
    let _ = tokio::io::copy_bidirectional(&mut client, &mut engine).await;
}

/// What an attacker would do: the directory becomes a link to another one.
fn swap(directory: &Path) {
    std::fs::rename(directory, directory.with_extension("moved")).unwrap();
    std::os::unix::fs::symlink("/etc", directory).unwrap();
}

/// And back again: who looks before and after finds what was there.
fn swap_and_back(directory: &Path) {
    let link = directory.with_extension("link");
    std::os::unix::fs::symlink("/etc", &link).unwrap();
    for _ in 0..2 {
        renameat_with(CWD, directory, CWD, &link, RenameFlags::EXCHANGE).unwrap();
    }
    std::fs::remove_file(link).unwrap();
}

pub(crate) fn engine_socket() -> Option<PathBuf> {
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
    for program in ["no-such-program", "/etc/passwd"] {
        let request = ExecutionRequest::program(program)
            .arg("x")
            .working_dir(dir.path());
        runtime.run(request).await.unwrap_err();
    }
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
            "HEAD /containers/ID/archive",
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
    let acts: [(_, Act); 3] = [
        ("/containers/create", swap),
        ("/start", swap),
        ("/start", swap_and_back),
    ];
    for (turn, (moment, act)) in acts.into_iter().enumerate() {
        let dir = tempfile::tempdir().unwrap();
        let work = dir.path().join("work");
        std::fs::create_dir(&work).unwrap();
        let hold = Hold::new(moment, &work, act);
        let recorder = Recorder::start(engine.clone(), Some(hold));
        let runtime = runtime(&format!("socket = {:?}", recorder.socket()));
        let request = ExecutionRequest::program("sleep")
            .arg("60")
            .working_dir(&work);
        let error = runtime.run(request).await.expect_err(moment);
        assert_eq!(error.kind(), ErrorKind::Refused, "{turn} {moment}: {error}");
        // Before the creation it is noticed by the mark as well, which then is elsewhere.
        let said = error.to_string().contains("was replaced");
        assert!(said || moment != "/start", "{turn}: {error}");
        assert_eq!(
            crate::support::count(&format!("volume={}", work.display())),
            0
        );
        let moved = work.with_extension("moved");
        let left = if moved.exists() { moved } else { work };
        let left = std::fs::read_dir(left).unwrap().count();
        assert_eq!(left, 0, "no mark is left");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_directory_that_is_gone_at_the_start_is_not_a_missing_program() {
    need_engine!();
    let Some(engine) = engine_socket() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let gone = |directory: &Path| std::fs::remove_dir(directory).unwrap();
    let recorder = Recorder::start(engine, Some(Hold::new("/start", &work, gone)));
    let runtime = runtime(&format!("socket = {:?}", recorder.socket()));
    let request = ExecutionRequest::program("ls").working_dir(&work);
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::WorkingDirectory, "{error}");
}
