//! The contract, kept by local processes that landlock confines.

mod driver;

use prx_runtime_core::config::SandboxKind;

fn main() -> std::process::ExitCode {
    prx_conformance::main(driver::SandboxDriver(SandboxKind::Landlock))
}
