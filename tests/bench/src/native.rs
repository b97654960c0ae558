//! The native backend against `tokio::process`, which it is built on.
//!
//! The peer does the least that gives the same result: a clean environment, no stdin, both streams
//! read to their end. Where its program is a path, the standard library starts it by the fast path;
//! with a bare name and a clean environment it has to fork, which is why there is a row for each.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter as _};
use prx_runtime_native::NativeRuntime;
use tokio::io::AsyncReadExt as _;
use tokio::process::Command;

use crate::harness::{Bench, Row};

/// Longer than any row takes.
const TIMEOUT: Duration = Duration::from_secs(120);

/// What the large host holds.
const BALLAST: usize = 2 << 30;
/// What must stay free beside it.
const HEADROOM: usize = 1 << 30;
/// The smallest page there is: one write to each makes all of it real.
const PAGE: usize = 4096;

/// What the captured command writes.
const OUTPUT: u64 = 1 << 30;
/// What is kept of it.
const KEPT: usize = 1 << 20;
/// How a plain reader reads.
const PEER_READ: usize = 64 << 10;

const SMALL: Row = Row {
    name: "native: true, by path",
    peer: "tokio::process, by path (fast start)",
    max_pairs: u32::MAX,
    bytes: None,
};
const SMALL_BY_NAME: Row = Row {
    name: "native: true, by name",
    peer: "tokio::process, by name",
    ..SMALL
};
const LARGE: Row = Row {
    name: "native: true, by path, host of 2 GiB",
    ..SMALL
};
const LARGE_BY_NAME: Row = Row {
    name: "native: true, by name, host of 2 GiB",
    peer: "tokio::process, by name",
    max_pairs: 50,
    bytes: None,
};
const CAPTURE: Row = Row {
    name: "native: 1 GiB of output, 1 MiB kept",
    peer: "tokio::process, 64 KiB reads, nothing kept",
    max_pairs: 9,
    bytes: Some(OUTPUT),
};

/// Every row of the native backend.
pub(crate) async fn rows(bench: &mut Bench) -> Result<()> {
    let native = NativeRuntime::new(&Config::default())?;
    let program = search("true")?;
    trues(bench, &native, &program, [SMALL, SMALL_BY_NAME]).await?;
    capture(bench, &native).await?;
    large_host(bench, &native, &program).await
}

/// The smallest command there is, by its path and by its name.
async fn trues(
    bench: &mut Bench,
    native: &NativeRuntime,
    path: &Path,
    [by_path, by_name]: [Row; 2],
) -> Result<()> {
    let path = path.to_str().context("a path that is no text")?;
    for (row, program) in [(by_path, path), (by_name, "true")] {
        bench
            .row(
                row,
                async || {
                    let request = ExecutionRequest::program(program).timeout(TIMEOUT);
                    succeeded(&native.run(request).await?)
                },
                async || {
                    let output = bare(program).output().await?;
                    ensure!(output.status.success(), "the peer's command failed");
                    Ok(())
                },
            )
            .await?;
    }
    Ok(())
}

/// The same from a host with a lot of memory, which a start that forks would have to map again.
async fn large_host(bench: &mut Bench, native: &NativeRuntime, path: &Path) -> Result<()> {
    let rows = [LARGE, LARGE_BY_NAME];
    let Some(ballast) = Ballast::for_rows(bench, &rows, BALLAST) else {
        return Ok(());
    };
    trues(bench, native, path, rows).await?;
    drop(ballast);
    Ok(())
}

/// Memory that a host holds.
pub(crate) struct Ballast(Vec<u8>);

impl Ballast {
    /// So many bytes of it, all of them real. `None` where no row wants it, or, and then the rows
    /// are skipped, where there is too little.
    pub(crate) fn for_rows(bench: &mut Bench, rows: &[Row], bytes: usize) -> Option<Self> {
        if !rows.iter().any(|row| bench.wants(row.name)) {
            return None;
        }
        if let Some(available) = available_memory()
            && available < bytes + HEADROOM
        {
            let reason = format!("only {} MiB are available", available >> 20);
            for row in rows {
                bench.skip(row.name, reason.as_str());
            }
            return None;
        }
        let mut ballast = vec![0_u8; bytes];
        for page in ballast.chunks_mut(PAGE) {
            page[0] = 1;
        }
        Some(Self(ballast))
    }
}

impl Drop for Ballast {
    fn drop(&mut self) {
        // In the optimiser's eyes used, until here.
        std::hint::black_box(&self.0);
    }
}

/// A command that writes far more than is kept.
async fn capture(bench: &mut Bench, native: &NativeRuntime) -> Result<()> {
    let program = search("head")?;
    let program = program.to_str().context("a path that is no text")?;
    let count = OUTPUT.to_string();
    let args = ["-c", count.as_str(), "/dev/zero"];
    bench
        .row(
            CAPTURE,
            async || {
                let request = ExecutionRequest::program(program)
                    .args(args)
                    .max_output_bytes(KEPT)
                    .timeout(TIMEOUT);
                let output = native.run(request).await?;
                ensure!(output.stdout.total_bytes() == OUTPUT, "output is missing");
                succeeded(&output)
            },
            async || {
                let mut child = bare(program).args(args).stdout(Stdio::piped()).spawn()?;
                let mut stdout = child.stdout.take().context("no pipe")?;
                let mut buffer = vec![0_u8; PEER_READ];
                let mut total = 0;
                loop {
                    match stdout.read(&mut buffer).await? {
                        0 => break,
                        read => total += read as u64,
                    }
                }
                ensure!(child.wait().await?.success(), "the peer's command failed");
                ensure!(total == OUTPUT, "output is missing");
                Ok(())
            },
        )
        .await
}

/// The peer: what one writes without us.
#[expect(
    clippy::disallowed_methods,
    reason = "the peer we are measured against"
)]
pub(crate) fn bare(program: &str) -> Command {
    let mut command = Command::new(program);
    command.env_clear().stdin(Stdio::null());
    command
}

pub(crate) fn succeeded(output: &ExecutionOutput) -> Result<()> {
    ensure!(
        output.exit_code == 0,
        "the command failed: {}",
        output.exit_code
    );
    Ok(())
}

/// Where the program is.
pub(crate) fn search(name: &str) -> Result<PathBuf> {
    let path = std::env::var_os("PATH").context("PATH is not set")?;
    std::env::split_paths(&path)
        .map(|dir| dir.join(name))
        .find(|candidate| candidate.is_file())
        .with_context(|| format!("no `{name}` on PATH"))
}

/// How many bytes can be had without swapping, where the system says so.
fn available_memory() -> Option<usize> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: usize = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
