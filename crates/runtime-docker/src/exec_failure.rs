//! Whether the command ran at all.
//!
//! The init reports a program that it could not execute by its exit code and a line on stderr, as a
//! shell reports its own. The line alone proves nothing, since a command could print it. So the file
//! itself is looked for: in the workspace by us, in the image by a container that is never started.
//! Docker is asked to make a directory in its place there, which it refuses where a file is; Podman
//! to prepare the start of that very file, which it refuses where none is.

use std::path::{Component, Path, PathBuf};

use futures_util::future::join_all;
use prx_runtime_core::{Error, ExecutionId, Result};

use crate::body::NeverStarted;
use crate::container::Container;
use crate::error::{self, Failure};
use crate::init::{ExecFailure, Init};
use crate::look::Look;
use crate::pump::Seen;
use crate::running::Command;

/// The error, if the program was never executed.
pub(crate) async fn judge(
    code: i64,
    seen: &Seen,
    command: &Command,
    container: &Container,
) -> Option<Error> {
    if seen.stdout_bytes > 0 {
        return None;
    }
    let program = &command.program;
    // Cut, it holds more than a report.
    let stderr = str::from_utf8(&seen.stderr_head)
        .ok()
        .filter(|stderr| seen.stderr_bytes == stderr.len() as u64)?;
    match command.init.exec_failure(code, stderr, program)? {
        ExecFailure::NotFound => {
            let exists = exists(command, container).await.unwrap_or(true);
            (!exists).then(|| error::program_not_found(program, &command.image.path))
        }
        ExecFailure::NotExecutable => {
            let executable = command
                .on_host(Path::new(program))
                .is_some_and(|path| is_executable(&path));
            (!executable).then(|| error::not_executable(program))
        }
    }
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
    let look = Look {
        client: container.client(),
        reaper: container.reaper(),
        config: &command.config,
        image: &command.image,
        init: command.init,
    };
    let (directory, program) = match look.init {
        Init::Tini => (directory, "/none"),
        Init::Catatonit => ("/", directory),
    };
    let what = NeverStarted {
        source: None,
        directory,
        program,
    };
    let failed = |failure: Failure| {
        failure.while_trying_to("look for the program", container.client().endpoint())
    };
    match look.make(name, what).await? {
        Ok(mut made) => {
            made.container.remove().await;
            match look.init {
                Init::Tini => Ok(false),
                Init::Catatonit => match (made.finds_program(), made.prepared) {
                    (Some(is_there), _) => Ok(is_there),
                    (None, Err(failure)) => Err(failed(failure)),
                    (None, Ok(())) => Ok(true),
                },
            }
        }
        Err(failure)
            if failure
                .refusal()
                .is_some_and(|(_, message)| message.contains("not a directory")) =>
        {
            Ok(true)
        }
        Err(failure) => Err(failed(failure)),
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

    #[test]
    fn paths_are_made_plain() {
        assert_eq!(
            normal(Path::new("/workspace/./a/../b")),
            Path::new("/workspace/b")
        );
        assert_eq!(normal(Path::new("/../a")), Path::new("/a"));
    }
}
