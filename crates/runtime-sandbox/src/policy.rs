//! Which parts of the file system a command may write, read, or not see.

use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use prx_runtime_core::config::{ConfigPath, SandboxConfig, SandboxLevel};
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::error::{self, is_missing, is_unreachable};
use crate::resolve::{Resolved, resolve};
use crate::{defaults, mounts};

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
    /// What of the defaults cannot be said for this caller.
    pub(crate) not_enforced: Option<&'static str>,
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
        Self::of_homes(config, &defaults::homes()?)
    }

    /// The policy of a caller whose secrets lie in `homes`.
    fn of_homes(config: &SandboxConfig, homes: &[PathBuf]) -> Result<Self> {
        let mut wishes = defaults::wishes(config.allow_network, homes, mounts::all()?);
        wishes.extend(configured(config)?);
        Ok(Self {
            wishes,
            level: config.level,
            not_enforced: homes.is_empty().then_some(defaults::NO_HOME),
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
                match std::fs::canonicalize(&wish.path) {
                    Ok(real) => open.push(real),
                    // Judged below, where it is walked.
                    Err(error) if is_unreachable(&error) => {}
                    Err(error) => return Err(unusable(wish, error)),
                }
            }
        }
        for wish in self.wishes.iter().chain([&workspace]) {
            let writable = |directory: &Path| open.iter().any(|root| directory.starts_with(root));
            match resolve(&wish.path, writable) {
                Ok(found) => resolved.push((wish, found)),
                // There is nothing to be hidden, and what a default allows may be missing.
                Err(error) if is_missing(&error) && wish.access == Access::Hidden => {}
                // Where the caller cannot walk, the command cannot either. That the caller has no
                // descriptor left for the walk keeps nothing from the command.
                Err(error) if is_unreachable(&error) && wish.origin == Origin::Default => {}
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

/// What is configured of files.
pub(crate) fn configured(config: &SandboxConfig) -> Result<Vec<Wish>> {
    let wish = |path: &ConfigPath, access| {
        Ok(Wish {
            path: path.expand()?,
            access,
            origin: Origin::Configured,
        })
    };
    [
        (&config.writable_paths, Access::Write),
        (&config.readonly_paths, Access::Read),
        (&config.hidden_paths, Access::Hidden),
    ]
    .into_iter()
    .flat_map(|(paths, access)| paths.iter().map(move |path| wish(path, access)))
    .collect()
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

fn unusable(wish: &Wish, error: io::Error) -> Error {
    let path = wish.path.display();
    let key = match wish.access {
        Access::Write => "writable_paths",
        Access::Read => "readonly_paths",
        Access::Hidden => "hidden_paths",
    };
    let (kind, what) = match wish.origin {
        Origin::Workspace => (
            ErrorKind::WorkingDirectory,
            format!("the working directory `{path}` cannot be used"),
        ),
        Origin::Default => (
            ErrorKind::Refused,
            format!("`{path}`, for which the sandbox has a rule of its own, cannot be looked at"),
        ),
        Origin::Configured => (
            ErrorKind::Refused,
            format!("`{path}` in security.sandbox.{key} cannot be used"),
        ),
    };
    let (kind, hint) = match wish.origin {
        _ if error::is_shortage(&error) => (ErrorKind::Exhausted, error::remedy(&error)),
        Origin::Workspace => return Error::new(kind, what).with_source(error),
        Origin::Default => (kind, error::remedy(&error)),
        Origin::Configured => (
            kind,
            "make the directory, or take the path out of the configuration",
        ),
    };
    Error::new(kind, what).with_source(error).with_hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A policy of nothing but a default that hides `path`.
    fn hiding(path: &Path) -> Policy {
        Policy {
            wishes: vec![Wish {
                path: path.to_owned(),
                access: Access::Hidden,
                origin: Origin::Default,
            }],
            level: SandboxLevel::Require,
            not_enforced: None,
        }
    }

    #[test]
    fn what_the_command_cannot_reach_either_needs_no_rule() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path();
        std::fs::create_dir(base.join("work")).unwrap();
        std::fs::write(base.join("file"), "").unwrap();
        std::os::unix::fs::symlink("loop", base.join("loop")).unwrap();
        for nowhere in ["nowhere", "file/below", "loop", &"x".repeat(300)] {
            let rules = hiding(&base.join(nowhere)).rules(&base.join("work"));
            assert_eq!(rules.unwrap().len(), 1, "{nowhere}");
        }
        let rules = hiding(&base.join("file")).rules(&base.join("work"));
        assert_eq!(rules.unwrap().len(), 2);
    }

    #[test]
    fn what_could_not_be_looked_at_is_an_error_with_its_path() {
        let wish = |origin| Wish {
            path: "/home/ana/.ssh".into(),
            access: Access::Hidden,
            origin,
        };
        let of = |number| io::Error::from_raw_os_error(number);
        for number in [libc::EMFILE, libc::ENFILE, libc::ENOMEM] {
            assert!(!is_unreachable(&of(number)));
            for origin in [Origin::Default, Origin::Workspace, Origin::Configured] {
                let error = unusable(&wish(origin), of(number));
                assert_eq!(error.kind(), ErrorKind::Exhausted, "{error}");
                assert!(error.to_string().contains("/home/ana/.ssh"), "{error}");
            }
        }
        for number in [libc::EIO, libc::ESTALE, libc::ENOTCONN] {
            assert!(!is_unreachable(&of(number)));
            let error = unusable(&wish(Origin::Default), of(number));
            assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
            assert!(error.to_string().contains("/home/ana/.ssh"), "{error}");
        }
        for number in [libc::ENOENT, libc::ENOTDIR, libc::EACCES, libc::ELOOP] {
            assert!(is_unreachable(&of(number)));
        }
    }

    #[test]
    fn without_a_home_it_is_said_that_its_secrets_are_not_hidden() {
        let config = SandboxConfig::default();
        let homeless = Policy::of_homes(&config, &[]).unwrap();
        let said = homeless.not_enforced.unwrap();
        assert!(
            said.contains("secrets at home") && said.contains("HOME"),
            "{said}"
        );
        let housed = Policy::of_homes(&config, &["/home/ana".into()]).unwrap();
        assert_eq!(housed.not_enforced, None);
    }
}
