//! What a sandbox costs: `true` without one, in each, and by the bare `bwrap`; from a small host
//! and from one that holds memory (in GiB, the first argument; 4 unless it is said).
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
    println!("  none        {:>8.2?}", middle(|| call(&none)));
    println!("  bare bwrap  {:>8.2?}", middle(bare));
    for kind in [SandboxKind::Bubblewrap, SandboxKind::Landlock] {
        config.security.sandbox.backend = kind;
        let confiner = prx_runtime_sandbox::confiner(kind, &config.security)?;
        let runtime = NativeRuntime::confined(&config, confiner)?;
        println!(
            "  {:<10}  {:>8.2?}",
            kind.as_str(),
            middle(|| call(&runtime))
        );
    }
    Ok(())
}

fn middle(mut run: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..CALLS)
        .map(|_| {
            let begin = Instant::now();
            run();
            begin.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[CALLS / 2]
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
fn bare() {
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
