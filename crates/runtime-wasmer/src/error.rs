//! What wasmer's errors mean.

use std::fmt::Write as _;

use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind};
use prx_runtime_wasm::exit_status;
use wasmer::{InstantiationError, LinkError, RuntimeError};
use wasmer_wasix::{WasiError, WasiRuntimeError};

/// As many frames as anyone will read.
const BACKTRACE_FRAMES: usize = 64;

/// An error with its causes, on one line.
pub(crate) fn text_of(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = one_line(&error.to_string());
    let mut cause = error.source();
    while let Some(source) = cause {
        let more = one_line(&source.to_string());
        // Many of these errors print their cause themselves.
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        cause = source.source();
    }
    text
}

fn one_line(text: &str) -> String {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines.collect::<Vec<_>>().join(" ")
}

/// A module that is not valid, or needs what this engine does not have.
pub(crate) fn invalid(error: &(dyn std::error::Error + 'static)) -> Error {
    Error::new(
        ErrorKind::Image,
        format!("the module is not valid: {}", text_of(error)),
    )
}

/// A component, of which wasmer knows nothing.
pub(crate) fn component() -> Error {
    Error::new(
        ErrorKind::Unsupported,
        "it is a component, and wasmer runs core modules only",
    )
    .with_hint("set runtime.wasm.engine = \"wasmtime\", or build the program for `wasm32-wasip1`")
}

/// An import that nothing provides.
pub(crate) fn unlinkable(module: &str, name: &str) -> Error {
    Error::new(
        ErrorKind::Image,
        format!("the module imports `{module}` `{name}`, which nothing provides"),
    )
    .with_hint(match module {
        "env" => "it was linked with an undefined symbol, or built for a browser",
        _ => "only WASI preview 1 (`wasi_snapshot_preview1`) and WASIX are provided",
    })
}

/// How a guest ended that did not return.
pub(crate) enum Ending {
    /// With a status.
    Exit(Exit),
    /// With a trap: the reason in one line, and the account of where, for standard error.
    Trap { reason: String, account: String },
}

/// Reads how a guest ended from the error that its call returned.
pub(crate) fn ending(error: &RuntimeError) -> Ending {
    match error.downcast_ref::<WasiError>() {
        Some(WasiError::Exit(code)) => {
            return Ending::Exit(exit_status(code.raw().cast_unsigned()));
        }
        Some(WasiError::ThreadExit) => return Ending::Exit(exit_status(0)),
        _ => {}
    }
    let reason = one_line(&error.message());
    let mut account = format!("wasm trap: {reason}\n");
    if !error.trace().is_empty() {
        account.push_str("wasm backtrace:\n");
    }
    for (depth, frame) in error.trace().iter().take(BACKTRACE_FRAMES).enumerate() {
        let function = frame.function_name().unwrap_or("<unnamed>");
        let _ = writeln!(
            account,
            "  {depth:>3}: {:#8x} - {}!{function}",
            frame.module_offset(),
            frame.module_name()
        );
    }
    Ending::Trap { reason, account }
}

/// The trap or exit of a start function, where that is why there is no instance.
pub(crate) fn start_error(error: &WasiRuntimeError) -> Option<&RuntimeError> {
    match error {
        WasiRuntimeError::Instantiation(
            InstantiationError::Start(error) | InstantiationError::Link(LinkError::Trap(error)),
        ) => Some(error),
        _ => None,
    }
}

/// Why a guest could not be instantiated although its module was loaded, where that was no trap.
pub(crate) fn not_started(error: &WasiRuntimeError, refused_memory: bool) -> Error {
    let text = text_of(error);
    if refused_memory {
        return Error::new(
            ErrorKind::Refused,
            format!("the module starts with more memory than the limit allows: {text}"),
        )
        .with_hint("raise runtime.wasm.max_memory_mb, or max_memory_mb of the tool");
    }
    Error::new(
        ErrorKind::Image,
        format!("the module cannot be started: {text}"),
    )
}
