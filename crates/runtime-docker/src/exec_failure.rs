//! Whether the command ran at all.
//!
//! The init reports a program that it could not execute by its exit code and a line on stderr, as a
//! shell reports its own. The line alone proves nothing, since a command could print it. So the file
//! itself is looked for: in the workspace by us, before the start, since a command may change its own
//! file; in the image by a container of it that is never started, which no command can have changed.
//! What such a container does not have, such as the workspace, is not looked at there. What is not
//! proved is the command's own end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::io::ErrorKind::NotFound;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, ExecutionId, Result};

use crate::container::Container;
use crate::engine::{Answer, Client};
use crate::error;
use crate::file::File;
use crate::init::ExecFailure;
use crate::look::{Look, NeverStarted};
use crate::paths::plain;
use crate::pump::Seen;
use crate::running::Command;

/// How many links are followed.
const LINKS: usize = 8;
/// What a container has only once it runs.
const LATER: [&str; 4] = ["/proc", "/sys", "/dev", "/run"];
/// So the engines' inits, in a directory that the image may have elsewhere.
const INITS: [&str; 2] = ["docker-init", "podman-init"];

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
    let failure = command.init.exec_failure(code, stderr, program)?;
    let found = match look(command, container).await {
        Ok(found) => found,
        Err(error) => {
            tracing::debug!(program, %error, "what a program is cannot be told");
            return None;
        }
    };
    match failure {
        ExecFailure::NotFound => found
            .iter()
            .all(|found| *found == Presence::Missing)
            .then(|| error::program_not_found(program, &command.search.path)),
        ExecFailure::NotExecutable => (found.contains(&Presence::Inert)
            && !found.contains(&Presence::Perhaps))
        .then(|| error::not_executable(program)),
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

/// What lies where a program may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Presence {
    Missing,
    /// A file that nobody can execute, or a directory.
    Inert,
    /// A file that somebody can execute, or one that only the container could tell.
    Perhaps,
}

impl Search {
    /// Looks for `program`. `directory`: the working directory in the container; `source`: the
    /// directory of the host that is mounted there.
    pub(crate) fn new(program: &str, path: &str, directory: &str, source: Option<&str>) -> Self {
        let directory = plain(Path::new(directory));
        // Where `..` leads, a link before it may decide.
        let join = |place: &str, program: &str| -> PathBuf {
            directory.join(place).join(program).components().collect()
        };
        let files: Vec<_> = if program.contains('/') {
            vec![join("", program)]
        } else {
            // A relative place is one of the working directory, and so is an empty one.
            path.split(':').map(|place| join(place, program)).collect()
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
            if part == ".." {
                return Self::Perhaps;
            }
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

/// What is, or was before the start, wherever the program may be.
async fn look(command: &Command, container: &Container) -> Result<Vec<Presence>> {
    let search = &command.search;
    let before = |file| search.before.get(file).copied();
    if let Some(all) = search.files.iter().map(before).collect() {
        return Ok(all);
    }
    let client = container.client();
    let look = Look {
        client,
        reaper: container.reaper(),
        config: &command.config,
        image: &command.image,
        init: command.init,
    };
    let what = NeverStarted {
        source: None,
        directory: "/",
        program: "/none",
    };
    let name = format!("prx-look-{}", ExecutionId::random()?);
    let failed = |failure: error::Failure| {
        failure.while_trying_to("look for the program", client.endpoint())
    };
    let mut made = look.make(name, what).await?.map_err(failed)?;
    let mut files = Files {
        client,
        container: made.container.id(),
        mounted: search.mounted.as_deref(),
        known: HashMap::new(),
    };
    let mut found = Vec::new();
    for file in &search.files {
        found.push(match before(file) {
            Some(presence) => Ok(presence),
            None => files.presence(file).await,
        });
    }
    // Where somebody removed it meanwhile, nothing was in it.
    let still_there = client.file(made.container.id(), "/").await;
    made.container.remove().await;
    if still_there.map_err(failed)?.is_none() {
        return Err(Error::new(
            ErrorKind::Engine,
            "the container that was looked at is gone",
        ));
    }
    found.into_iter().collect::<Answer<_>>().map_err(failed)
}

/// The files of a container that was never started.
struct Files<'a> {
    client: &'a Client,
    container: &'a str,
    /// Where the workspace would be mounted in it.
    mounted: Option<&'a Path>,
    /// What was looked at already.
    known: HashMap<PathBuf, Option<File>>,
}

impl Files<'_> {
    /// What lies at `file`, found as the kernel would, link by link. What a link leads to the
    /// workspace, a command may have changed.
    async fn presence(&mut self, file: &Path) -> Answer<Presence> {
        let mut links = 0;
        let mut path = PathBuf::from("/");
        let mut way = parts(file);
        let mut found = Presence::Inert;
        while let Some(part) = way.pop() {
            if part == ".." {
                path.pop();
                found = Presence::Inert;
                continue;
            }
            let is_init = INITS.iter().any(|init| part == *init);
            path.push(part);
            let mut unseen = LATER.iter().map(Path::new).chain(self.mounted);
            if is_init || unseen.any(|place| path.starts_with(place)) {
                return Ok(Presence::Perhaps);
            }
            let Some(file) = self.look(&path).await? else {
                return Ok(Presence::Missing);
            };
            found = match file.leads_to() {
                None if file.is_inert() => Presence::Inert,
                None => Presence::Perhaps,
                Some(_) if links == LINKS => return Ok(Presence::Perhaps),
                Some(target) => {
                    links += 1;
                    let target = Path::new(target);
                    way.extend(parts(target));
                    if target.is_absolute() {
                        path = PathBuf::from("/");
                    } else {
                        path.pop();
                    }
                    Presence::Inert
                }
            };
        }
        Ok(found)
    }

    async fn look(&mut self, path: &Path) -> Answer<Option<File>> {
        if let Some(known) = self.known.get(path) {
            return Ok(known.clone());
        }
        let text = path.to_string_lossy();
        let found = self.client.file(self.container, &text).await?;
        self.known.insert(path.to_owned(), found.clone());
        Ok(found)
    }
}

/// The steps of a path, the last first.
fn parts(path: &Path) -> Vec<OsString> {
    let step = |part: Component<'_>| match part {
        Component::Normal(_) | Component::ParentDir => Some(part.as_os_str().to_owned()),
        _ => None,
    };
    let mut parts: Vec<_> = path.components().filter_map(step).collect();
    parts.reverse();
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::os::unix::fs::{PermissionsExt, symlink};

    use crate::scripted::{Answer, ScriptedEngine};

    #[tokio::test]
    async fn files_are_found_as_the_kernel_finds_them() {
        let file = |mode: u32, target: &str| -> Option<File> {
            let file = serde_json::json!({"mode": mode, "linkTarget": target});
            Some(serde_json::from_value(file).unwrap())
        };
        let directories = [
            "/bin",
            "/etc",
            "/opt",
            "/usr",
            "/usr/bin",
            "/usr/lib",
            "/usr/lib/deep",
        ];
        let links = [
            ("/sbin", "bin"),
            ("/opt/bin", "/w/bin"),
            ("/usr/bin/up", "../../bin/x"),
            ("/a", "/a"),
            ("/deep", "/usr/lib/deep"),
        ];
        let directories = directories.map(|path| (path, file(1 << 31 | 0o755, "")));
        let links = links.map(|(path, target)| (path, file(1 << 27 | 0o777, target)));
        let image = directories
            .into_iter()
            .chain(links)
            .chain([("/bin/x", file(0o755, ""))]);
        // Of nothing else the engine knows.
        let engine = ScriptedEngine::start(|_, _| Answer::refusal(404, "no such file"));
        let client = engine.client().await;
        let mut files = Files {
            client: &client,
            container: "x",
            mounted: Some(Path::new("/w")),
            known: image.map(|(path, file)| (path.into(), file)).collect(),
        };
        for (file, expected) in [
            ("/bin/x", Presence::Perhaps),
            ("/bin/none", Presence::Missing),
            ("/none/bin/x", Presence::Missing),
            ("/etc", Presence::Inert),
            ("/", Presence::Inert),
            ("/sbin/x", Presence::Perhaps),
            ("/sbin/none", Presence::Missing),
            ("/usr/bin/up", Presence::Perhaps),
            // A link decides where `..` leads.
            ("/deep/../../../bin/x", Presence::Perhaps),
            ("/deep/../none", Presence::Missing),
            // Round and round.
            ("/a", Presence::Perhaps),
            // In the workspace, and what is there only later.
            ("/opt/bin/none", Presence::Perhaps),
            ("/w/none", Presence::Perhaps),
            ("/proc/self/root/bin/none", Presence::Perhaps),
            ("/sbin/docker-init", Presence::Perhaps),
            ("/bin/docker-init", Presence::Perhaps),
        ] {
            let found = files.presence(Path::new(file)).await.unwrap();
            assert_eq!(found, expected, "{file}");
        }
    }

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
        assert_eq!(files(&search("./a/../x")), ["/w/a/../x"]);
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
            ("../text", Some(Presence::Perhaps)),
            ("./link/../text", Some(Presence::Perhaps)),
        ] {
            let search = Search::new(program, "/bin", "/w", dir.path().to_str());
            let found = search.before.get(&search.files[0]).copied();
            assert_eq!(found, expected, "{program}");
        }
    }
}
