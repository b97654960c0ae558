//! The contract, on Podman: on a service of its own, started here.
//!
//! Where there is no Podman, or we are not root, the trials are skipped and say so, unless `PRX_REQUIRE_BACKENDS` has
//! `podman` in it.

#[path = "common/apart.rs"]
mod apart;
#[path = "common/driver.rs"]
mod driver;
#[path = "common/images.rs"]
#[expect(dead_code, reason = "the contract needs one image, the scenarios more")]
mod images;
#[path = "common/podman.rs"]
#[expect(dead_code, reason = "the contract needs one kind, the scenarios more")]
mod podman;

use std::process::{Command, ExitCode};

use prx_conformance::TokioKind;

/// Where the service listens, for the processes of the suite.
const ADDRESS: &str = "PRX_TEST_PODMAN";
/// Where none does.
const NOWHERE: &str = "unix:///nowhere/podman.sock";

fn main() -> ExitCode {
    match std::env::var(ADDRESS) {
        Ok(address) => prx_conformance::main(driver::EngineDriver {
            name: "podman",
            socket: Some(address),
            image: images::BUSYBOX.name,
            ambient: &["HOME", "HOSTNAME", "PATH", "TERM", "container"],
            // It starts four processes to a container, and trials start 64 of those at once.
            at_once: 1,
            // What is Podman's own has nothing to do with the runtime.
            tokio_kinds: &[TokioKind::MultiThread],
        }),
        Err(_) => serve(),
    }
}

/// Runs this very program on a service that lives as long as it does.
#[expect(clippy::disallowed_methods, reason = "starts this very program")]
#[expect(clippy::print_stderr, reason = "says why there is no service")]
fn serve() -> ExitCode {
    let can_serve = podman::is_installed() && rustix::process::geteuid().is_root();
    let service = can_serve.then(|| {
        let service = podman::Podman::start(None)?;
        service.make(&images::BUSYBOX)?;
        Ok::<_, std::io::Error>(service)
    });
    let service = match service {
        Some(Ok(service)) => Some(service),
        Some(Err(error)) => {
            eprintln!("{error}");
            return ExitCode::FAILURE;
        }
        // The suite itself says so.
        None => None,
    };
    let address = service.as_ref().map(podman::Podman::address);
    let status = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(std::env::args_os().skip(1))
        .env(ADDRESS, address.as_deref().unwrap_or(NOWHERE))
        .status()
        .expect("this program can be started");
    if status.success() {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}
