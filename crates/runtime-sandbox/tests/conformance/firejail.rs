//! The contract, kept by local processes that firejail confines.

mod driver;

use prx_runtime_core::config::SandboxKind;

fn main() -> std::process::ExitCode {
    prx_conformance::main(driver::SandboxDriver(SandboxKind::Firejail))
}
