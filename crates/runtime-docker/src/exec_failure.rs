//! Whether the command ran at all.
//!
//! The init reports a program that it could not execute by its exit code and a line on stderr, as a
//! shell reports its own. The line alone proves nothing, since a command could print it. So the file
//! itself is looked for. In the workspace by us, before the start, since a command may change its own
//! file. That a file is missing in the image is told by a container that is never started: Docker is
//! asked to make a directory in its place there, which it refuses where a file is; Podman to prepare
//! the start of that very file, which it refuses where none is. That a file of the image cannot be
//! executed is told by its mode. What is not proved is the command's own end.

use std::collections::HashMap;
use std::io::ErrorKind::NotFound;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use prx_runtime_core::{Error, ExecutionId, Result};

use crate::container::Container;
use crate::error::{self, Failure};
use crate::init::{ExecFailure, Init};
use crate::look::{Look, NeverStarted};
use crate::paths::plain;
use crate::pump::Seen;
use crate::running::Command;

/// How many links are followed.
const LINKS: usize = 8;

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
            (!exists).then(|| error::program_not_found(program, &command.search.path))
        }
        ExecFailure::NotExecutable => {
            let inert = is_inert(command, container).await;
            inert.then(|| error::not_executable(program))
        }
    }
}

/// Where a program may lie, and what lay there before the start.
#[derive(Debug)]
pub(crate) struct Search {
    /// The PATH of the container.
    pub(crate) path: String,
    /// Every file that the name may mean, as paths of the container, in order.
    files: Vec<PathBuf>,
    /// What was there of those in the workspace.
    before: HashMap<PathBuf, Presence>,
    /// Where the workspace is mounted, if it is.
    mounted: Option<PathBuf>,
}

/// What lies at a path of the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Missing,
    /// A file that nobody can execute, or a directory.
    Inert,
    /// A file that somebody can execute, or one that only the container can tell.
    Perhaps,
}

impl Search {
    /// Looks for `program`. `directory`: the working directory in the container; `source`: the
    /// directory of the host that is mounted there.
    pub(crate) fn new(program: &str, path: &str, directory: &str, source: Option<&str>) -> Self {
        let directory = plain(Path::new(directory));
        let files: Vec<_> = if program.contains('/') {
            vec![plain(&directory.join(program))]
        } else {
            // A relative place is one of the working directory, and so is an empty one.
            path.split(':')
                .map(|place| plain(&directory.join(place).join(program)))
                .collect()
        };
        let on_host = |file: &PathBuf| {
            let below = file.strip_prefix(&directory).ok()?;
            let presence = Presence::of(Path::new(source?), below);
            Some((file.clone(), presence))
        };
        Self {
            path: path.to_owned(),
            before: files.iter().filter_map(on_host).collect(),
            files,
            mounted: source.map(|_| directory),
        }
    }
}

impl Presence {
    /// Of what lies below a directory of the host. Where a link leads, the container alone can tell.
    fn of(source: &Path, below: &Path) -> Self {
        let mut file = source.to_owned();
        let mut found = Self::Perhaps;
        for part in below {
            file.push(part);
            found = match file.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => return Self::Perhaps,
                Ok(metadata) if metadata.is_file() && metadata.mode() & 0o111 != 0 => Self::Perhaps,
                Ok(_) => Self::Inert,
                Err(error) if error.kind() == NotFound => return Self::Missing,
                Err(_) => return Self::Perhaps,
            };
        }
        found
    }
}

/// Whether a file is where the program would be.
async fn exists(command: &Command, container: &Container) -> Result<bool> {
    let search = &command.search;
    let found = join_all(search.files.iter().map(|file| async move {
        match search.before.get(file) {
            Some(presence) => Ok(*presence != Presence::Missing),
            None => is_there(file, command, container).await,
        }
    }));
    found
        .await
        .into_iter()
        .try_fold(false, |any, found| Ok(any || found?))
}

/// Whether something is where the program would be, and nobody can execute it: by its mode, which a
/// command cannot have changed, since the image is read-only.
async fn is_inert(command: &Command, container: &Container) -> bool {
    let search = &command.search;
    let mut is_there = false;
    for file in &search.files {
        let presence = match search.before.get(file) {
            Some(presence) => *presence,
            None => in_image(file, search, container).await,
        };
        match presence {
            Presence::Missing => {}
            Presence::Inert => is_there = true,
            Presence::Perhaps => return false,
        }
    }
    is_there
}

/// What lies at a path that is not of the workspace. An engine that does not say has no proof.
async fn in_image(file: &Path, search: &Search, container: &Container) -> Presence {
    let mut path = file.to_owned();
    for _ in 0..LINKS {
        let Some(text) = path.to_str() else {
            return Presence::Perhaps;
        };
        let told = container.client().file(container.id(), text).await;
        let found = match told {
            Ok(None) => return Presence::Missing,
            Ok(Some(found)) => found,
            Err(failure) => {
                tracing::debug!(path = text, ?failure, "what a program is cannot be told");
                return Presence::Perhaps;
            }
        };
        match found.leads_to() {
            None if found.is_inert() => return Presence::Inert,
            None => return Presence::Perhaps,
            Some(target) => path = plain(&path.with_file_name(target)),
        }
        // What a command may have changed proves nothing.
        if search
            .mounted
            .as_ref()
            .is_some_and(|place| path.starts_with(place))
        {
            return Presence::Perhaps;
        }
    }
    Presence::Perhaps
}

async fn is_there(path: &Path, command: &Command, container: &Container) -> Result<bool> {
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

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{PermissionsExt, symlink};

    fn files(search: &Search) -> Vec<&str> {
        search
            .files
            .iter()
            .map(|file| file.to_str().unwrap())
            .collect()
    }

    #[test]
    fn a_name_may_mean_several_files() {
        let search = |program| Search::new(program, "/bin:sub:", "/w", None);
        assert_eq!(files(&search("x")), ["/bin/x", "/w/sub/x", "/w/x"]);
        assert_eq!(files(&search("./a/../x")), ["/w/x"]);
        assert_eq!(files(&search("/x")), ["/x"]);
        assert!(search("./x").before.is_empty(), "nothing is mounted");
    }

    #[test]
    fn what_lies_in_the_workspace_is_looked_at_before() {
        let dir = tempfile::tempdir().unwrap();
        let make = |name: &str, mode| {
            let file = dir.path().join(name);
            std::fs::write(&file, "").unwrap();
            std::fs::set_permissions(&file, PermissionsExt::from_mode(mode)).unwrap();
        };
        make("script", 0o755);
        make("text", 0o644);
        std::fs::create_dir(dir.path().join("directory")).unwrap();
        symlink("/nowhere", dir.path().join("link")).unwrap();
        for (program, expected) in [
            ("./script", Some(Presence::Perhaps)),
            ("./text", Some(Presence::Inert)),
            ("/w/directory", Some(Presence::Inert)),
            ("./none", Some(Presence::Missing)),
            ("./none/none", Some(Presence::Missing)),
            ("./link", Some(Presence::Perhaps)),
            ("./link/none", Some(Presence::Perhaps)),
            ("/bin/text", None),
            ("../text", None),
        ] {
            let search = Search::new(program, "/bin", "/w", dir.path().to_str());
            let found = search.before.get(&search.files[0]).copied();
            assert_eq!(found, expected, "{program}");
        }
    }
}
