//! Measures backends against peers, pair by pair, in one run. `cargo xtask bench` runs it.
//!
//! A backend adds its rows in a file of its own, behind its feature, and one line in [`rows`].

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command-line tool speaks on its streams"
)]
#![cfg_attr(
    not(any(
        feature = "native",
        feature = "docker",
        feature = "wasmtime",
        feature = "wasmer"
    )),
    expect(
        dead_code,
        unused_variables,
        reason = "without a backend there is no row"
    )
)]

#[cfg(feature = "docker")]
mod docker;
#[cfg(any(feature = "wasmtime", feature = "wasmer"))]
mod guests;
mod harness;
#[cfg(feature = "native")]
mod native;
#[cfg(all(target_os = "linux", feature = "sandbox"))]
mod sandbox;
#[cfg(feature = "wasmer")]
mod wasmer;
#[cfg(feature = "wasmtime")]
mod wasmtime;

use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Parser;

use crate::harness::{Bench, Options};

/// Us and a peer in turn, pair by pair.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
struct Args {
    /// One JSON object on standard output instead of a table.
    #[arg(long)]
    json: bool,
    /// How often each row measures us and the peer; heavy rows have a lower bound of their own.
    #[arg(long, value_name = "N", default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..))]
    pairs: u32,
    /// Only rows whose name contains this.
    #[arg(long, value_name = "TEXT")]
    row: Option<String>,
}

fn main() -> ExitCode {
    let args = Args::parse();
    match measure(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn measure(args: &Args) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("no tokio runtime")?;
    let mut bench = Bench::new(Options {
        pairs: args.pairs,
        only: args.row.clone(),
    });
    runtime.block_on(rows(&mut bench))?;
    let report = bench.finish()?;
    if args.json {
        println!("{}", serde_json::to_string_pretty(&report)?);
    } else {
        print!("{report}");
    }
    Ok(())
}

/// The rows of every backend that is compiled in.
async fn rows(bench: &mut Bench) -> Result<()> {
    #[cfg(feature = "native")]
    native::rows(bench).await?;
    #[cfg(all(target_os = "linux", feature = "sandbox"))]
    sandbox::rows(bench).await?;
    #[cfg(feature = "docker")]
    docker::rows(bench).await?;
    #[cfg(feature = "wasmtime")]
    wasmtime::rows(bench).await?;
    #[cfg(feature = "wasmer")]
    wasmer::rows(bench).await?;
    Ok(())
}
