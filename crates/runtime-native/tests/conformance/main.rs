//! The contract, kept by local processes.

mod driver;

fn main() -> std::process::ExitCode {
    prx_conformance::main(driver::NativeDriver)
}
