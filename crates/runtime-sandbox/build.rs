//! Compiles the launcher, which the crate carries inside itself. See `launcher/main.rs`.

use std::env;
use std::error::Error;
use std::path::PathBuf;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=launcher");
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("launcher");
    let (system, machine) = (
        env::var("CARGO_CFG_TARGET_OS")?,
        env::var("CARGO_CFG_TARGET_ARCH")?,
    );
    if system != "linux" || !matches!(machine.as_str(), "x86_64" | "aarch64") {
        // The crate says so when it is asked to confine something.
        std::fs::write(out, [])?;
        return Ok(());
    }
    // Cargo has no way to build a second program with other flags for the sake of a library, so
    // the compiler is asked itself. The program needs `core` and nothing else.
    let mut rustc = rustc(env::var("RUSTC")?);
    rustc
        .args(["--edition", "2024", "--crate-type", "bin"])
        .args(["--crate-name", "launcher"])
        .args(["--target", &env::var("TARGET")?])
        .args(["-C", "opt-level=s", "-C", "panic=abort"])
        .args(["-C", "relocation-model=static"])
        .args(["-C", "target-feature=+crt-static"])
        .args(["-C", "strip=symbols"]);
    for argument in [
        "-nostartfiles",
        "-nostdlib",
        "-static",
        "-Wl,--build-id=none",
    ] {
        rustc.arg("-C").arg(format!("link-arg={argument}"));
    }
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    let status = rustc.arg("-o").arg(&out).arg("launcher/main.rs").status()?;
    if !status.success() {
        return Err(format!("the launcher cannot be compiled: {status}").into());
    }
    Ok(())
}

#[expect(
    clippy::disallowed_methods,
    reason = "a build script starts the compiler, and nothing of what is shipped"
)]
fn rustc(path: String) -> Command {
    Command::new(path)
}
