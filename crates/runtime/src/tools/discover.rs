//! Skills: modules that were dropped into the module directory.

use std::path::{Path, PathBuf};

use prx_runtime_core::config::WasmConfig;
use prx_runtime_core::{Error, ErrorKind, Result};

/// The directory of modules, looked at anew each time: a skill that was added a moment ago counts.
pub(super) fn directory(wasm: &WasmConfig) -> Result<PathBuf> {
    wasm.module_path.expand()
}

/// The modules there: name and file, sorted. A directory that does not exist has none.
///
/// # Errors
///
/// [`ErrorKind::Io`] for a directory that exists and cannot be read.
pub(super) fn skills(directory: &Path) -> Result<Vec<(String, PathBuf)>> {
    let cannot = |error| {
        Error::new(
            ErrorKind::Io,
            format!(
                "the module directory `{}` cannot be read",
                directory.display()
            ),
        )
        .with_source(error)
    };
    let entries = match std::fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(cannot(error)),
    };
    let mut skills = Vec::new();
    for entry in entries {
        let path = entry.map_err(cannot)?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "wasm")
            && path.is_file()
            && let Some(name) = path.file_stem().and_then(|stem| stem.to_str())
            && !name.starts_with('.')
        {
            skills.push((name.to_owned(), path));
        }
    }
    skills.sort();
    Ok(skills)
}
