//! Whether the command ran at all.
//!
//! The init reports a program that it could not execute by exit code 127 or 126 and a line on
//! stderr, as a shell reports its own. The line alone proves nothing, since a command could print
//! it. So the file itself is looked for: in the workspace by us, in the image by asking the engine
//! to make a directory in its place in a container that is never started, which it refuses where a
//! file is.

use std::path::{Component, Path, PathBuf};

use futures_util::future::join_all;
use prx_runtime_core::{Error, ExecutionId, Result};

use crate::body::never_started;
use crate::container::Container;
use crate::error;
use crate::pump::Seen;
use crate::running::Command;

/// Exit code for a program that was not found.
pub(crate) const NOT_FOUND: i64 = 127;
/// Exit code for a file that cannot be executed.
pub(crate) const NOT_EXECUTABLE: i64 = 126;

/// The error, if the program was never executed.
pub(crate) async fn judge(
    code: i64,
    seen: &Seen,
    command: &Command,
    container: &Container,
) -> Option<Error> {
    if seen.stdout_bytes > 0 || !is_inits_report(seen, &command.program) {
        return None;
    }
    match code {
        NOT_FOUND => {
            let exists = exists(command, container).await.unwrap_or(true);
            (!exists).then(|| error::program_not_found(&command.program, &command.image.path))
        }
        NOT_EXECUTABLE => {
            let executable = command
                .on_host(Path::new(&command.program))
                .is_some_and(|path| is_executable(&path));
            (!executable).then(|| error::not_executable(&command.program))
        }
        _ => None,
    }
}

/// Whether stderr holds nothing but the init's report on `program`.
fn is_inits_report(seen: &Seen, program: &str) -> bool {
    let Ok(text) = str::from_utf8(&seen.stderr_head) else {
        return false;
    };
    if seen.stderr_bytes != text.len() as u64 {
        return false;
    }
    let report = text
        .strip_prefix("[FATAL tini (")
        .and_then(|rest| rest.split_once(")] exec "))
        .filter(|(pid, _)| pid.bytes().all(|b| b.is_ascii_digit()))
        .and_then(|(_, rest)| {
            rest.strip_prefix(program)?
                .strip_prefix(" failed: ")?
                .strip_suffix('\n')
        });
    report.is_some_and(|reason| !reason.contains('\n'))
}

/// Whether a file is where the program would be.
async fn exists(command: &Command, container: &Container) -> Result<bool> {
    let program = Path::new(&command.program);
    let candidates: Vec<PathBuf> = if command.program.contains('/') {
        vec![normal(&Path::new(&command.directory).join(program))]
    } else {
        let path = command
            .image
            .path
            .split(':')
            .filter(|dir| dir.starts_with('/'));
        path.map(|dir| Path::new(dir).join(program)).collect()
    };
    let found = join_all(
        candidates
            .iter()
            .map(|path| is_there(path, command, container)),
    )
    .await;
    found
        .into_iter()
        .try_fold(false, |any, found| Ok(any || found?))
}

async fn is_there(path: &Path, command: &Command, container: &Container) -> Result<bool> {
    if let Some(path) = command.on_host(path) {
        return Ok(path.symlink_metadata().is_ok());
    }
    let Some(directory) = path.to_str().filter(|path| *path != "/") else {
        return Ok(true);
    };
    let name = format!("prx-look-{}", ExecutionId::random()?);
    let body = never_started(&command.config, &command.image, None, directory);
    match Container::create(container.client(), container.reaper(), name, body).await {
        Ok((mut made, _)) => {
            made.remove().await;
            Ok(false)
        }
        Err(failure)
            if failure
                .refusal()
                .is_some_and(|(_, message)| message.contains("not a directory")) =>
        {
            Ok(true)
        }
        Err(failure) => {
            Err(failure.while_trying_to("look for the program", container.client().endpoint()))
        }
    }
}

/// The path without `.` and `..`, as plain text has it.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                normal.pop();
            }
            part => normal.push(part),
        }
    }
    normal
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;

    path.metadata()
        .is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(stderr: &str) -> Seen {
        Seen {
            stderr_bytes: stderr.len() as u64,
            stderr_head: stderr.into(),
            ..Seen::default()
        }
    }

    #[test]
    fn only_the_inits_own_line_is_its_report() {
        let line = "[FATAL tini (8)] exec nope failed: No such file or directory\n";
        assert!(is_inits_report(&seen(line), "nope"));
        assert!(!is_inits_report(&seen(line), "other"));
        assert!(!is_inits_report(&seen(&format!("x{line}")), "nope"));
        assert!(!is_inits_report(&seen(&format!("{line}x")), "nope"));
        assert!(!is_inits_report(&seen("sh: nope: not found\n"), "nope"));
        let mut cut = seen(line);
        cut.stderr_bytes += 1;
        assert!(!is_inits_report(&cut, "nope"));
    }

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(
            normal(Path::new("/workspace/./a/../b")),
            Path::new("/workspace/b")
        );
        assert_eq!(normal(Path::new("/../a")), Path::new("/a"));
    }
}
