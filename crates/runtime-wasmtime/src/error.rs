//! What wasmtime's errors mean.

use std::fmt::Write as _;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind};
use prx_runtime_wasm::exit_status;
use wasmtime::{PoolConcurrencyLimitError, Trap, UnknownImportError, WasmBacktrace};
use wasmtime_wasi::I32Exit;

/// How wasmtime heads a backtrace that it attaches to an error.
const BACKTRACE: &str = "error while executing at wasm backtrace";

/// A wasmtime error as the source of ours: its causes on one line.
pub(crate) fn text_of(error: &wasmtime::Error) -> String {
    let mut text = String::new();
    for cause in error.chain().map(ToString::to_string) {
        // Backtraces are many lines, and shown elsewhere.
        if cause.starts_with(BACKTRACE) {
            continue;
        }
        let line = cause.lines().map(str::trim).filter(|line| !line.is_empty());
        let line = line.collect::<Vec<_>>().join(" ");
        if !text.is_empty() {
            text.push_str(": ");
        }
        text.push_str(&line);
    }
    text
}

/// A module that is not valid, or needs what this engine does not have.
pub(crate) fn invalid(error: &wasmtime::Error) -> Error {
    Error::new(
        ErrorKind::Image,
        format!("the module is not valid: {}", text_of(error)),
    )
}

/// A module whose imports are not all there.
pub(crate) fn unlinkable(error: &wasmtime::Error) -> Error {
    if let Some(import) = error.downcast_ref::<UnknownImportError>() {
        let (module, name) = (import.module(), import.name());
        let error = Error::new(
            ErrorKind::Image,
            format!("the module imports `{module}` `{name}`, which nothing provides"),
        );
        return error.with_hint(match module {
            "wasi_unstable" => "it was built for an early WASI: build it for `wasm32-wasip1`",
            "env" => "it was linked with an undefined symbol, or built for a browser",
            _ => "only WASI preview 1 (`wasi_snapshot_preview1`) is provided to modules",
        });
    }
    Error::new(
        ErrorKind::Image,
        format!("the imports cannot be provided: {}", text_of(error)),
    )
    .with_hint("only the interfaces of `wasi:cli/command` of WASI 0.2 are provided to components")
}

/// How a guest ended that did not return.
pub(crate) enum Ending {
    /// With a status.
    Exit(Exit),
    /// With a trap: the reason in one line, and the account of where, for standard error.
    Trap { reason: String, account: String },
}

/// Reads how a guest ended from the error that its call returned.
pub(crate) fn ending(error: &wasmtime::Error) -> Ending {
    if let Some(I32Exit(status)) = error.downcast_ref::<I32Exit>() {
        return Ending::Exit(exit_status(status.cast_unsigned()));
    }
    let reason = match error.downcast_ref::<Trap>() {
        Some(trap) => trap
            .to_string()
            .trim_start_matches("wasm trap: ")
            .to_owned(),
        None => text_of(error),
    };
    let mut account = format!("wasm trap: {reason}\n");
    if let Some(backtrace) = error.downcast_ref::<WasmBacktrace>() {
        let _ = writeln!(account, "{}", backtrace.to_string().trim_end());
    }
    Ending::Trap { reason, account }
}

/// Why a guest could not be instantiated although its module was loaded, where that was no trap.
pub(crate) fn not_started(error: &wasmtime::Error, refused_memory: bool) -> Error {
    if refused_memory {
        return Error::new(
            ErrorKind::Refused,
            format!(
                "the module starts with more memory than the limit allows: {}",
                text_of(error)
            ),
        )
        .with_hint("raise runtime.wasm.max_memory_mb, or max_memory_mb of the tool");
    }
    if error.is::<PoolConcurrencyLimitError>() {
        return Error::new(
            ErrorKind::Exhausted,
            format!("there is no room for another guest: {}", text_of(error)),
        )
        .with_hint("raise runtime.max_concurrent, by which the room is measured");
    }
    Error::new(
        ErrorKind::Image,
        format!("the module cannot be started: {}", text_of(error)),
    )
}
