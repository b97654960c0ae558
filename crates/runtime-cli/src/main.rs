//! The command `prx-runtime`.

fn main() -> std::process::ExitCode {
    prx_runtime_cli::main()
}
