//! The shell that lines are given to.

use std::path::{Path, PathBuf};

use prx_runtime_core::config::NativeConfig;
use prx_runtime_core::{Error, ErrorKind, Result};

/// Tried where the configuration names no shell and its default is not installed.
const FALLBACK: &str = "/bin/sh";

/// A shell that was found when the runtime was made.
#[derive(Debug, Clone)]
pub(crate) struct Shell {
    path: PathBuf,
}

impl Shell {
    /// The configured shell, or the default one with its fallback.
    pub(crate) fn from_config(config: &NativeConfig) -> Result<Self> {
        let configured = config.shell.is_some();
        let shell = config.shell();
        match find(shell) {
            Ok(path) => Ok(Self { path }),
            Err(_) if !configured && cfg!(unix) => {
                find(Path::new(FALLBACK)).map(|path| Self { path })
            }
            Err(error) => Err(error),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The arguments that make the shell run `line`.
    pub(crate) fn args<'a>(&self, line: &'a str) -> impl Iterator<Item = &'a str> + use<'a> {
        let flag = if cfg!(windows) { "/C" } else { "-c" };
        // A line that looks like an option would be read as one.
        let guard = (cfg!(unix) && line.starts_with(['-', '+'])).then_some("--");
        [Some(flag), guard, Some(line)].into_iter().flatten()
    }
}

fn find(shell: &Path) -> Result<PathBuf> {
    which::which(shell).map_err(|_| {
        let reason = match std::fs::metadata(shell) {
            Ok(metadata) if metadata.is_dir() => "is a directory",
            Ok(_) => "is not executable",
            Err(_) if shell.components().count() > 1 => "does not exist",
            Err(_) => "is not on PATH",
        };
        Error::new(
            ErrorKind::InvalidConfig,
            format!(
                "the shell `{}` (runtime.native.shell) {reason}",
                shell.display()
            ),
        )
        .with_hint("name an installed shell, such as /bin/sh")
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_line_that_looks_like_an_option_is_guarded() {
        let shell = Shell {
            path: "/bin/sh".into(),
        };
        assert!(shell.args("-x").eq(["-c", "--", "-x"]));
        assert!(shell.args("ls -x").eq(["-c", "ls -x"]));
    }

    #[test]
    fn shells_that_cannot_be_run_are_named() {
        for (shell, text) in [
            (
                "/nowhere/sh",
                "the shell `/nowhere/sh` (runtime.native.shell) does not exist",
            ),
            ("/etc", "is a directory"),
            ("/etc/passwd", "is not executable"),
            ("no-such-shell", "is not on PATH"),
        ] {
            let error = find(Path::new(shell)).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.to_string().contains(text), "{error}");
        }
    }
}
