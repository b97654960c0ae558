//! What the command `prx-runtime` does. The binary only calls [`main`].

mod args;
mod completions;
mod config;
mod doctor;
mod exit;
mod failure;
mod forward;
mod host;
mod logging;
mod plan;
mod prune;
mod run;
mod run_json;
mod signals;
mod tools;
mod wasm;

use std::process::ExitCode;

use clap::Parser;

use crate::args::{Args, Command};

/// Runs the command line of this process and returns its exit code.
pub fn main() -> ExitCode {
    let args = match Args::try_parse() {
        Ok(args) => args,
        Err(error) => {
            // Help and version are no failures; what cannot be read is, and has our code.
            let code = if error.use_stderr() {
                exit::FAILURE
            } else {
                exit::SUCCESS
            };
            let _ = error.print();
            return code.into();
        }
    };
    logging::start(args.verbose);
    host::prepare();
    let built = host::check_descriptors().and_then(|()| {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
    });
    let runtime = match built {
        Ok(runtime) => runtime,
        Err(error) => return failure::report(&failure::io("cannot start", &error)).into(),
    };
    let code = runtime
        .block_on(dispatch(args))
        .unwrap_or_else(|error| failure::report(&error));
    // A thread may sit in a read of our stdin that never ends.
    runtime.shutdown_background();
    code.into()
}

async fn dispatch(args: Args) -> prx_runtime::Result<exit::Code> {
    let global = args.global;
    match args.command {
        Command::Run(args) => run::run(&global, args).await,
        Command::Plan(args) => plan::run(&global, args).await,
        Command::Tools(args) => tools::run(&global, args.command).await,
        Command::Doctor(args) => doctor::run(&global, &args).await,
        Command::Config(args) => config::run(&global, args.command),
        Command::Prune => prune::run(&global).await,
        Command::Wasm { command } => wasm::run(&global, command).await,
        Command::Completions { shell } => completions::run(shell),
    }
}
