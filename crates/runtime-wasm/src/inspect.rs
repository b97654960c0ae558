//! Whether a module is a command, before anything is compiled, and how much memory it starts with.

use std::path::Path;

use prx_runtime_core::{Error, ErrorKind, Result};
use wasmparser::{ComponentExternalKind, ExternalKind, MemoryType, Parser, Payload, TypeRef};

use crate::ModuleKind;
use crate::error::unusable;

/// What a core module calls what a command starts with.
const START: &str = "_start";

/// The interface whose export makes a component a command, with its generation.
const RUN: &str = "wasi:cli/run@0.2.";

/// How large a page of memory is where the module does not say.
const PAGE: u64 = 64 * 1024;

/// What is known of a module from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Facts {
    /// The size of all memories at the start, in bytes.
    pub(crate) minimum_memory: u64,
}

impl Facts {
    /// A guest that has too little memory before it starts is not started.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if the module `path` starts with more than `limit` bytes.
    pub(crate) fn require_within(&self, limit: u64, path: &Path) -> Result<()> {
        if self.minimum_memory <= limit {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Refused,
            format!(
                "`{}` starts with {} MiB of memory, and the limit is {} MiB",
                path.display(),
                self.minimum_memory.div_ceil(1 << 20),
                limit >> 20
            ),
        )
        .with_hint("raise runtime.wasm.max_memory_mb, or max_memory_mb of the tool"))
    }
}

/// Reads the head of the module `bytes`, which is the file `path`.
///
/// # Errors
///
/// [`ErrorKind::Image`](prx_runtime_core::ErrorKind::Image) for what is malformed, for a library,
/// and for a command of another system.
pub(crate) fn inspect(bytes: &[u8], kind: ModuleKind, path: &Path) -> Result<Facts> {
    let mut found = Found::default();
    for payload in Parser::new(0).parse_all(bytes) {
        payload
            .and_then(|payload| found.note(payload))
            .map_err(|error| malformed(path, kind, &error))?;
    }
    match kind {
        ModuleKind::Core => found.require_start(path)?,
        ModuleKind::Component => found.require_run(path)?,
    }
    Ok(Facts {
        minimum_memory: found.minimum_memory,
    })
}

fn malformed(path: &Path, kind: ModuleKind, error: &wasmparser::BinaryReaderError) -> Error {
    unusable(
        path,
        &format!(
            "is a damaged {}: {} at byte {}",
            kind.as_str(),
            error.message(),
            error.offset()
        ),
    )
}

#[derive(Default)]
struct Found {
    /// How deep the parser is in modules and components inside the outermost one.
    depth: usize,
    exports: Vec<String>,
    minimum_memory: u64,
}

impl Found {
    fn note(&mut self, payload: Payload<'_>) -> wasmparser::Result<()> {
        match payload {
            Payload::ModuleSection { .. } | Payload::ComponentSection { .. } => self.depth += 1,
            Payload::End(_) => self.depth = self.depth.saturating_sub(1),
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.add_memory(&memory?);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    if let TypeRef::Memory(memory) = import?.ty
                        && self.depth == 0
                    {
                        self.add_memory(&memory);
                    }
                }
            }
            Payload::ExportSection(exports) if self.depth == 0 => {
                for export in exports {
                    let export = export?;
                    if export.kind == ExternalKind::Func {
                        self.exports.push(export.name.to_owned());
                    }
                }
            }
            Payload::ComponentExportSection(exports) if self.depth == 0 => {
                for export in exports {
                    let export = export?;
                    if export.kind != ComponentExternalKind::Type {
                        self.exports.push(export.name.name.to_owned());
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn add_memory(&mut self, memory: &MemoryType) {
        let page = memory
            .page_size_log2
            .map_or(PAGE, |log2| 1_u64.checked_shl(log2).unwrap_or(PAGE));
        self.minimum_memory = self
            .minimum_memory
            .saturating_add(memory.initial.saturating_mul(page));
    }

    fn require_start(&self, path: &Path) -> Result<()> {
        if self.exports.iter().any(|name| name == START) {
            return Ok(());
        }
        let error = unusable(path, "exports no function `_start`, so it is no command");
        Err(if self.exports.iter().any(|name| name == "_initialize") {
            error.with_hint("it is a library (a reactor): build it as a command")
        } else {
            error.with_hint("build it for `wasm32-wasi` as a program, with a `main`")
        })
    }

    fn require_run(&self, path: &Path) -> Result<()> {
        if self.exports.iter().any(|name| name.starts_with(RUN)) {
            return Ok(());
        }
        let exports = if self.exports.is_empty() {
            "nothing".to_owned()
        } else {
            let quoted: Vec<_> = self
                .exports
                .iter()
                .map(|name| format!("`{name}`"))
                .collect();
            quoted.join(", ")
        };
        Err(unusable(
            path,
            &format!(
                "is a component of another world: it exports {exports}, not `wasi:cli/run@0.2`"
            ),
        )
        .with_hint("build it for the world `wasi:cli/command` of WASI 0.2"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(text: &str, kind: ModuleKind) -> Result<Facts> {
        inspect(&wat::parse_str(text).unwrap(), kind, Path::new("x.wasm"))
    }

    #[test]
    fn memories_are_summed() {
        let text = r#"(module (memory 2) (memory 3) (func (export "_start")))"#;
        assert_eq!(
            facts(text, ModuleKind::Core).unwrap().minimum_memory,
            5 * PAGE
        );
    }

    #[test]
    fn what_is_no_command_is_named() {
        for (text, kind, what) in [
            ("(module)", ModuleKind::Core, "exports no function `_start`"),
            (
                r#"(module (func (export "_initialize")))"#,
                ModuleKind::Core,
                "it is a library (a reactor)",
            ),
            (
                r#"(module (memory (export "_start") 1))"#,
                ModuleKind::Core,
                "exports no function",
            ),
            (
                "(component)",
                ModuleKind::Component,
                "it exports nothing, not `wasi:cli/run@0.2`",
            ),
            (
                r#"(component (instance $i) (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#,
                ModuleKind::Component,
                "it exports `wasi:http/incoming-handler@0.2.0`",
            ),
        ] {
            let error = facts(text, kind).unwrap_err().to_string();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn damage_is_named_with_its_place() {
        let mut bytes = wat::parse_str(r#"(module (func (export "_start")))"#).unwrap();
        bytes.truncate(bytes.len() - 3);
        let error = inspect(&bytes, ModuleKind::Core, Path::new("x.wasm"))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("`x.wasm` is a damaged module") && error.contains("at byte"),
            "{error}"
        );
    }
}
