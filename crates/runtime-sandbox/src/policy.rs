//! Which parts of the file system a command may write, read, or not see.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use prx_runtime_core::config::{ConfigPath, SandboxConfig, SandboxLevel};
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::defaults;
use crate::resolve::{Resolved, resolve};

/// What a command may do below a path. Ordered: a later one is stricter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Access {
    Write,
    Read,
    Hidden,
}

/// Who made a rule. Of two for the same path a later one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    /// This crate.
    Default,
    /// The working directory of the call.
    Workspace,
    /// The configuration.
    Configured,
}

/// A rule as it was written.
#[derive(Debug, Clone)]
pub(crate) struct Wish {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) origin: Origin,
}

/// What `[security.sandbox]` says of files, the defaults included.
#[derive(Debug, Clone)]
pub(crate) struct Policy {
    wishes: Vec<Wish>,
    level: SandboxLevel,
}

/// A rule for one execution: its path has no links in it any more.
#[derive(Debug)]
pub(crate) struct Rule {
    pub(crate) path: PathBuf,
    pub(crate) access: Access,
    pub(crate) origin: Origin,
    /// The file that the path led to.
    pub(crate) file: OwnedFd,
    pub(crate) is_dir: bool,
}

impl Policy {
    /// The policy of `config`.
    pub(crate) fn new(config: &SandboxConfig) -> Result<Self> {
        let mut wishes = defaults::wishes(config.allow_network);
        for (paths, access) in [
            (&config.writable_paths, Access::Write),
            (&config.readonly_paths, Access::Read),
            (&config.hidden_paths, Access::Hidden),
        ] {
            for path in paths {
                wishes.push(configured(path, access)?);
            }
        }
        Ok(Self {
            wishes,
            level: config.level,
        })
    }

    /// The rules for a command in `working_dir`: those of outer paths first, so that each is made
    /// within what the ones before it made. At most one for each path.
    pub(crate) fn rules(&self, working_dir: &Path) -> Result<Vec<Rule>> {
        let workspace = Wish {
            path: working_dir.to_owned(),
            access: Access::Write,
            origin: Origin::Workspace,
        };
        let mut resolved = Vec::with_capacity(self.wishes.len() + 1);
        // Writable roots as they are written and as they are: a link below either is suspect.
        let mut open: Vec<PathBuf> = Vec::new();
        for wish in self.wishes.iter().chain([&workspace]) {
            if wish.access == Access::Write {
                open.push(wish.path.clone());
                open.extend(std::fs::canonicalize(&wish.path));
            }
        }
        for wish in self.wishes.iter().chain([&workspace]) {
            let writable = |directory: &Path| open.iter().any(|root| directory.starts_with(root));
            match resolve(&wish.path, writable) {
                Ok(found) => resolved.push((wish, found)),
                // There is nothing to be hidden, and what a default allows may be missing.
                Err(error) if is_missing(&error) && wish.access == Access::Hidden => {}
                // Where the caller cannot walk, the command cannot either.
                Err(_) if wish.origin == Origin::Default => {}
                Err(error) if self.level == SandboxLevel::BestEffort && is_missing(&error) => {
                    tracing::warn!(path = %wish.path.display(), "a path of security.sandbox is not there");
                }
                Err(error) => return Err(unusable(wish, error)),
            }
        }
        let links: Vec<(PathBuf, PathBuf)> = resolved
            .iter()
            // To hide more than a default meant to gives nobody anything.
            .filter(|(wish, _)| (wish.origin, wish.access) != (Origin::Default, Access::Hidden))
            .filter_map(|(wish, found)| Some((wish.path.clone(), found.through.clone()?)))
            .collect();
        for (path, link) in links {
            refuse_gain(&path, &link, &resolved)?;
        }
        let mut rules: Vec<Rule> = Vec::with_capacity(resolved.len());
        for (wish, found) in resolved {
            let rule = Rule {
                path: found.path,
                access: wish.access,
                origin: wish.origin,
                file: found.file,
                is_dir: found.is_dir,
            };
            match rules.iter_mut().find(|other| other.path == rule.path) {
                Some(other) if outranks(&rule, other) => *other = rule,
                Some(_) => {}
                None => rules.push(rule),
            }
        }
        rules.sort_by_key(|rule| rule.path.components().count());
        let root = rules.iter().any(|rule| rule.path == Path::new("/"));
        if root && access_of(&rules, Path::new("/")) == Access::Write {
            return Err(Error::new(
                ErrorKind::Refused,
                "the command would run in `/`, all of which the sandbox would have to make writable",
            )
            .with_hint("give the command a working directory of its own"));
        }
        if let Some(rule) = rules
            .iter()
            .find(|rule| rule.path.as_os_str() == "/" && rule.access == Access::Hidden)
        {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "security.sandbox.hidden_paths hides `{}`, and with it every program",
                    rule.path.display()
                ),
            ));
        }
        Ok(rules)
    }
}

fn configured(path: &ConfigPath, access: Access) -> Result<Wish> {
    Ok(Wish {
        path: path.expand()?,
        access,
        origin: Origin::Configured,
    })
}

/// Of two rules for one path: what is configured counts more than what is not, and of two that are
/// configured the stricter. A configured permission does not open what the workspace needs less.
fn outranks(rule: &Rule, other: &Rule) -> bool {
    (rule.origin, rule.access) > (other.origin, other.access)
}

/// What holds at `path` by the innermost rule around it. Without any: reading.
pub(crate) fn access_of(rules: &[Rule], path: &Path) -> Access {
    rules
        .iter()
        .filter(|rule| path.starts_with(&rule.path))
        .max_by_key(|rule| rule.path.components().count())
        .map_or(Access::Read, |rule| rule.access)
}

/// A path that a planted link leads elsewhere may give the command nothing that it does not have
/// without: then the link was as good as the directory.
fn refuse_gain(path: &Path, link: &Path, resolved: &[(&Wish, Resolved)]) -> Result<()> {
    let Some((wish, found)) = resolved.iter().find(|(wish, _)| wish.path == path) else {
        return Ok(());
    };
    let without = resolved
        .iter()
        .filter(|(other, _)| other.path != path)
        .filter(|(_, other)| other.through.is_none() && found.path.starts_with(&other.path))
        .max_by_key(|(other, at)| (at.path.components().count(), other.origin, other.access))
        .map_or(Access::Read, |(other, _)| other.access);
    if wish.access == Access::Write && without == Access::Write {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        format!(
            "`{}` leads through the symbolic link `{}`, which lies where commands may write, to `{}`",
            path.display(),
            link.display(),
            found.path.display()
        ),
    )
    .with_hint("a command may have planted the link: remove it, or name the directory itself"))
}

fn is_missing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}

fn unusable(wish: &Wish, error: io::Error) -> Error {
    let key = match (wish.origin, wish.access) {
        (Origin::Workspace, _) => {
            return Error::new(
                ErrorKind::WorkingDirectory,
                format!(
                    "the working directory `{}` cannot be used",
                    wish.path.display()
                ),
            )
            .with_source(error);
        }
        (_, Access::Write) => "writable_paths",
        (_, Access::Read) => "readonly_paths",
        (_, Access::Hidden) => "hidden_paths",
    };
    Error::new(
        ErrorKind::Refused,
        format!(
            "`{}` in security.sandbox.{key} cannot be used",
            wish.path.display()
        ),
    )
    .with_source(error)
    .with_hint("make the directory, or take the path out of the configuration")
}
