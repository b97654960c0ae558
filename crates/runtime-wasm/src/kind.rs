//! What a file is, by its first bytes.

use std::path::Path;

use prx_runtime_core::{Error, Result};

use crate::error::unusable;

/// What WebAssembly begins with.
pub(crate) const MAGIC: &[u8] = b"\0asm";

/// The two binary forms of WebAssembly.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ModuleKind {
    /// A core module, run as a command of WASI preview 1.
    Core,
    /// A component, run as a command of WASI preview 2.
    Component,
}

impl ModuleKind {
    /// The kind in words.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Core => "module",
            Self::Component => "component",
        }
    }

    /// Tells the kind of the file `path` whose content is `bytes`.
    ///
    /// # Errors
    ///
    /// Anything else is [`ErrorKind::Image`](prx_runtime_core::ErrorKind::Image), and the message
    /// says what it is.
    pub(crate) fn of(bytes: &[u8], path: &Path) -> Result<Self> {
        if let Some(version) = bytes.strip_prefix(MAGIC) {
            return match version {
                [1, 0, 0, 0, ..] => Ok(Self::Core),
                [_, _, 1, 0, ..] => Ok(Self::Component),
                _ => Err(unusable(
                    path,
                    "is WebAssembly of a version that is not known",
                )),
            };
        }
        Err(not_binary(bytes, path))
    }
}

fn not_binary(bytes: &[u8], path: &Path) -> Error {
    if bytes.is_empty() {
        return unusable(path, "is empty").with_hint("the build that wrote it may have failed");
    }
    if is_text_form(bytes) {
        return unusable(path, "is WebAssembly text, and only the binary form is run")
            .with_hint("translate it, with `wasm-tools parse` or `wat2wasm`");
    }
    let what = if bytes.starts_with(b"#!") {
        "a script"
    } else if bytes.starts_with(b"\x7fELF") {
        "a program for Linux"
    } else if bytes.starts_with(&[0x1f, 0x8b]) {
        "compressed with gzip"
    } else {
        "no WebAssembly"
    };
    unusable(path, &format!("is {what}")).with_hint("a module starts with the bytes `\\0asm`")
}

/// Whether the first thing after blanks and comments is a parenthesis.
fn is_text_form(bytes: &[u8]) -> bool {
    let mut rest = bytes.trim_ascii_start();
    while let Some(comment) = rest.strip_prefix(b";;") {
        let end = comment
            .iter()
            .position(|byte| *byte == b'\n')
            .unwrap_or(comment.len());
        rest = comment[end..].trim_ascii_start();
    }
    rest.starts_with(b"(")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_told() {
        let path = Path::new("/m/x.wasm");
        let of = |bytes: &[u8]| ModuleKind::of(bytes, path).map_err(|error| error.to_string());
        assert_eq!(of(b"\0asm\x01\0\0\0"), Ok(ModuleKind::Core));
        assert_eq!(of(b"\0asm\x0d\0\x01\0"), Ok(ModuleKind::Component));
        for (bytes, text) in [
            (&b""[..], "`/m/x.wasm` is empty"),
            (b"\0asm\x09\0\0\0", "of a version that is not known"),
            (b"\0asm", "of a version that is not known"),
            (b"(module)", "is WebAssembly text"),
            (b";; hello\n  (component)", "is WebAssembly text"),
            (b"#!/bin/sh\n", "is a script"),
            (b"\x7fELF\x02", "is a program for Linux"),
            (b"\x1f\x8b\x08", "is compressed with gzip"),
            (b"MZ", "is no WebAssembly"),
        ] {
            let error = of(bytes).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
