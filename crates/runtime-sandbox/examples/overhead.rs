//! What a sandbox costs: `true` without one, in each, and by the bare `bwrap` and `firejail`; from a
//! small host and from one that holds memory (in GiB, the first argument; 4 unless it is said).
//!
//! `cargo run --release -p prx-runtime-sandbox --example overhead`

use std::time::{Duration, Instant};

use prx_runtime_core::config::{Config, SandboxKind};
use prx_runtime_core::{ExecutionRequest, Result, RuntimeAdapter};
use prx_runtime_native::NativeRuntime;

/// Calls of each kind, of which the middle one counts.
const CALLS: usize = 60;

#[expect(clippy::print_stdout, reason = "an example speaks to people")]
fn main() -> Result<()> {
    let gibibytes = std::env::args()
        .nth(1)
        .and_then(|text| text.parse().ok())
        .unwrap_or(4_usize);
    println!("a small host");
    measure()?;
    let held = vec![1_u8; gibibytes << 30];
    println!("a host that holds {gibibytes} GiB");
    measure()?;
    drop(std::hint::black_box(held));
    Ok(())
}

#[expect(clippy::print_stdout, reason = "an example speaks to people")]
fn measure() -> Result<()> {
    let mut config = Config::default();
    let none = NativeRuntime::new(&config)?;
    let none = middle(|| call(&none));
    println!("  none           {none:>8.2?}");
    for (kind, bare) in [
        (SandboxKind::Bubblewrap, Some(bare_bwrap as fn())),
        (SandboxKind::Landlock, None),
        (SandboxKind::Firejail, Some(bare_firejail as fn())),
    ] {
        config.security.sandbox.backend = kind;
        let confiner = prx_runtime_sandbox::confiner(kind, &config.security)?;
        let runtime = NativeRuntime::confined(&config, confiner)?;
        let (ours, against) = match bare {
            // By turns: what else the machine does hits both.
            Some(bare) => {
                let (ours, bare) = both(|| call(&runtime), bare);
                let ratio = ours.as_secs_f64() / bare.as_secs_f64();
                (ours, format!("{ratio:.2} of the bare program's {bare:.2?}"))
            }
            None => {
                let ours = middle(|| call(&runtime));
                let more = ours.saturating_sub(none);
                (ours, format!("{more:.2?} more than none"))
            }
        };
        println!("  {:<13}  {ours:>8.2?}  {against}", kind.as_str());
    }
    Ok(())
}

fn middle(mut run: impl FnMut()) -> Duration {
    middle_of((0..CALLS).map(|_| time(&mut run)).collect())
}

fn both(mut one: impl FnMut(), mut other: impl FnMut()) -> (Duration, Duration) {
    let times = (0..CALLS).map(|_| (time(&mut one), time(&mut other)));
    let (one, other) = times.unzip();
    (middle_of(one), middle_of(other))
}

fn time(run: &mut impl FnMut()) -> Duration {
    let begin = Instant::now();
    run();
    begin.elapsed()
}

fn middle_of(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn call(runtime: &NativeRuntime) {
    let request = ExecutionRequest::program("/bin/true").working_dir(std::env::temp_dir());
    let output = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime can be made")
        .block_on(runtime.run(request));
    assert!(output.is_ok_and(|output| output.success()), "`true` fails");
}

/// The namespaces that the sandbox makes, and nothing else of it.
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is the program itself"
)]
fn bare_bwrap() {
    let status = std::process::Command::new("bwrap")
        .args([
            "--unshare-all",
            "--die-with-parent",
            "--new-session",
            "--cap-drop",
            "ALL",
        ])
        .args([
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/run",
        ])
        .args(["--bind", "/tmp", "/tmp", "--", "/bin/true"])
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the bare bwrap fails"
    );
}

/// The same for firejail.
#[expect(
    clippy::disallowed_methods,
    reason = "what is measured is the program itself"
)]
fn bare_firejail() {
    let status = std::process::Command::new("firejail")
        .args([
            "--noprofile",
            "--quiet",
            "--caps.drop=all",
            "--nonewprivs",
            "--ipc-namespace",
            "--net=none",
            "--private-dev",
            "--allusers",
            "--whitelist=/run/firejail",
            "--read-only=/",
            "--read-write=/tmp",
        ])
        .args(["--", "/bin/true"])
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "the bare firejail fails"
    );
}
