//! The sandboxes around a local command, against the bare program that makes the same namespaces,
//! and against no sandbox.
//!
//! The peers of bubblewrap and firejail mount what any caller would: the file system to read, the
//! working directory to write. They hide nothing, filter no system call, and limit nothing.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prx_runtime_core::config::{Config, SandboxKind};
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter as _};
use prx_runtime_native::NativeRuntime;

use crate::harness::{Bench, Row};
use crate::native::{Ballast, bare, search, succeeded};

/// Longer than any row takes.
const TIMEOUT: Duration = Duration::from_secs(60);
/// What the large host holds.
const BALLAST: usize = 4 << 30;

/// A sandbox, and whom it is measured against.
struct Contest {
    kind: SandboxKind,
    /// From a small host, and from one that holds much.
    rows: [Row; 2],
    /// The peer's command line for `true` in a working directory.
    peer: fn(&Path) -> Result<Vec<OsString>>,
}

const fn row(name: &'static str, peer: &'static str, max_pairs: u32) -> Row {
    Row {
        name,
        peer,
        max_pairs,
        bytes: None,
    }
}

const BWRAP: &str = "bwrap, same namespaces";
const NONE: &str = "native, no sandbox";
const FIREJAIL: &str = "firejail, no profile";

const CONTESTS: [Contest; 3] = [
    Contest {
        kind: SandboxKind::Bubblewrap,
        rows: [
            row("sandbox: true in bubblewrap", BWRAP, u32::MAX),
            row("sandbox: true in bubblewrap, host of 4 GiB", BWRAP, 100),
        ],
        peer: bubblewrap,
    },
    Contest {
        kind: SandboxKind::Landlock,
        rows: [
            row("sandbox: true in landlock", NONE, u32::MAX),
            row("sandbox: true in landlock, host of 4 GiB", NONE, 100),
        ],
        peer: |_| Ok(Vec::new()),
    },
    Contest {
        kind: SandboxKind::Firejail,
        rows: [
            row("sandbox: true in firejail", FIREJAIL, 50),
            row("sandbox: true in firejail, host of 4 GiB", FIREJAIL, 20),
        ],
        peer: firejail,
    },
];

/// Every row of the sandboxes.
pub(crate) async fn rows(bench: &mut Bench) -> Result<()> {
    for contest in &CONTESTS {
        measure(bench, contest, contest.rows[0]).await?;
    }
    let large = CONTESTS.map(|contest| contest.rows[1]);
    let Some(ballast) = Ballast::for_rows(bench, &large, BALLAST) else {
        return Ok(());
    };
    for contest in &CONTESTS {
        measure(bench, contest, contest.rows[1]).await?;
    }
    drop(ballast);
    Ok(())
}

async fn measure(bench: &mut Bench, contest: &Contest, row: Row) -> Result<()> {
    if !bench.wants(row.name) {
        return Ok(());
    }
    let mut config = Config::default();
    let unconfined = NativeRuntime::new(&config)?;
    config.security.sandbox.backend = contest.kind;
    let runtime = prx_runtime_sandbox::confiner(contest.kind, &config.security)
        .and_then(|confiner| NativeRuntime::confined(&config, confiner));
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            bench.skip(row.name, error.to_string());
            return Ok(());
        }
    };
    let directory = tempfile::tempdir().context("no directory to work in")?;
    let program = search("true")?;
    let program = program.to_str().context("a path that is no text")?;
    let request = || {
        ExecutionRequest::program(program)
            .working_dir(directory.path())
            .timeout(TIMEOUT)
    };
    let mut peer = (contest.peer)(directory.path())?;
    if !peer.is_empty() {
        peer.push(program.into());
    }
    bench
        .row(
            row,
            async || succeeded(&runtime.run(request()).await?),
            async || {
                let Some((first, rest)) = peer.split_first() else {
                    return succeeded(&unconfined.run(request()).await?);
                };
                let first = first.to_str().context("a path that is no text")?;
                let output = bare(first).args(rest).output().await?;
                ensure!(output.status.success(), "the peer failed: {output:?}");
                Ok(())
            },
        )
        .await
}

fn bubblewrap(directory: &Path) -> Result<Vec<OsString>> {
    let mut line = vec![search("bwrap")?.into()];
    line.extend(
        [
            "--unshare-user",
            "--unshare-ipc",
            "--unshare-pid",
            "--unshare-uts",
            "--unshare-cgroup-try",
            "--unshare-net",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--bind",
        ]
        .map(OsString::from),
    );
    line.extend([directory.into(), directory.into(), OsString::from("--")]);
    Ok(line)
}

fn firejail(directory: &Path) -> Result<Vec<OsString>> {
    let mut line = vec![search("firejail")?.into()];
    line.extend(["--quiet", "--noprofile", "--net=none"].map(OsString::from));
    let mut writable = OsString::from("--read-write=");
    writable.push(directory);
    line.extend([writable, OsString::from("--")]);
    Ok(line)
}
