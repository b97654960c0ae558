//! Our own failures, and how they are said: one message on stderr.

use std::io::{self, Write};

use prx_runtime::{Error, ErrorKind};

use crate::exit::{self, Code};

/// Says the error and gives the code for it.
pub(crate) fn report(error: &Error) -> Code {
    // Where stderr is gone there is nobody to tell.
    let _ = writeln!(io::stderr(), "prx-runtime: {error}");
    exit::FAILURE
}

/// An error of input or output.
pub(crate) fn io(what: &str, error: &io::Error) -> Error {
    Error::new(ErrorKind::Io, format!("{what}: {error}"))
}

/// Prints to stdout; a reader that has gone is an error like any other.
pub(crate) fn print(text: &str) -> prx_runtime::Result<()> {
    let mut stdout = io::stdout().lock();
    stdout
        .write_all(text.as_bytes())
        .and_then(|()| stdout.flush())
        .map_err(|error| io("cannot write to stdout", &error))
}
