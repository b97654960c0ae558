//! Directories a WebAssembly guest may see.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use super::config_path::{ConfigPath, home};
use crate::{Error, ErrorKind, Result};

/// What stands for the working directory of the execution.
const WORKSPACE: &str = "/workspace";

/// What a grant may look like, for error messages.
const EXPECTED: &str = "\"/workspace\", an absolute path, `~/…` or \"host::guest\"";

/// One directory of the host and where the guest sees it.
///
/// Read from `"/workspace"` (the working directory of the execution), from a path of the host
/// (`"/srv/data"`, `"~/data"`), which the guest sees at the same place, or from `"host::guest"`.
///
/// ```
/// # use prx_runtime_core::config::{Grant, GrantHost};
/// let grant: Grant = "/srv/data::/data".parse()?;
/// assert_eq!(grant.host, GrantHost::Path("/srv/data".into()));
/// assert_eq!(grant.guest, "/data");
/// # Ok::<(), prx_runtime_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub struct Grant {
    /// What is granted.
    pub host: GrantHost,
    /// Where the guest sees it: an absolute path without `.`, `..` and slash at the end.
    pub guest: String,
}

/// The host's side of a [`Grant`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum GrantHost {
    /// The working directory of the execution.
    Workspace,
    /// A path of the host, absolute, with `~` expanded.
    Path(PathBuf),
}

impl Grant {
    /// Reads a grant for a given home directory.
    pub(super) fn parse_in(text: &str, home: Option<&Path>) -> Result<Self, String> {
        if text.is_empty() {
            return Err(format!("is empty; expected {EXPECTED}"));
        }
        let (host, guest) = match text.split_once("::") {
            Some((host, guest)) => (host, Some(guest)),
            None => (text, None),
        };
        let trimmed = host.trim_end_matches('/');
        let host = if trimmed == WORKSPACE {
            GrantHost::Workspace
        } else if guest.is_none() && trimmed.starts_with("/workspace/") {
            return Err(format!(
                "{text:?} could be below the working directory or a path of the host; \
                 for the path of the host write \"{text}::{text}\""
            ));
        } else {
            let path = ConfigPath::new(host);
            path.check_absolute()?;
            let path = path.expand_in(home)?;
            if path.parent().is_none() {
                return Err(format!(
                    "{text:?} grants the whole host; expected the directories that are needed"
                ));
            }
            GrantHost::Path(path)
        };
        let guest = match (guest, &host) {
            (Some(guest), _) => guest_path(guest)?,
            (None, GrantHost::Workspace) => WORKSPACE.to_owned(),
            (None, GrantHost::Path(path)) => {
                let same = path
                    .to_str()
                    .ok_or_else(|| format!("{text:?} is not UTF-8"))?;
                guest_path(same)?
            }
        };
        Ok(Self { host, guest })
    }

    /// What is wrong with `text` as a grant, whoever's home directory `~` is.
    pub(super) fn check(text: &str) -> Result<Self, String> {
        // Any home will do: the text alone is checked.
        let anywhere = if cfg!(windows) { "C:\\home" } else { "/home" };
        Self::parse_in(text, Some(Path::new(anywhere)))
    }
}

/// `text` as a path of the guest, in its shortest form.
fn guest_path(text: &str) -> Result<String, String> {
    if !text.starts_with('/') {
        return Err(format!(
            "{text:?} is no absolute path of the guest; expected \"host::/guest\""
        ));
    }
    let parts: Vec<&str> = text.split('/').filter(|part| !part.is_empty()).collect();
    if parts.iter().any(|part| *part == ".." || *part == ".") {
        return Err(format!(
            "{text:?} contains `..` or `.`; expected a plain path of the guest"
        ));
    }
    if text.contains('\0') {
        return Err(format!("{text:?} contains a NUL byte"));
    }
    Ok(format!("/{}", parts.join("/")))
}

impl FromStr for Grant {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse_in(text, home().as_deref())
            .map_err(|problem| Error::new(ErrorKind::InvalidConfig, problem))
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.host {
            GrantHost::Workspace => write!(f, "{WORKSPACE}::{}", self.guest),
            GrantHost::Path(path) => write!(f, "{}::{}", path.display(), self.guest),
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Grant, String> {
        Grant::parse_in(text, Some(Path::new("/home/ana")))
    }

    #[test]
    fn reads_every_form() {
        for (text, host, guest) in [
            ("/workspace", None, "/workspace"),
            ("/workspace/", None, "/workspace"),
            ("/workspace::/src", None, "/src"),
            ("/tmp", Some("/tmp"), "/tmp"),
            ("/srv//data/", Some("/srv/data"), "/srv/data"),
            ("~/x", Some("/home/ana/x"), "/home/ana/x"),
            ("~/x::/x/", Some("/home/ana/x"), "/x"),
            ("/srv::/", Some("/srv"), "/"),
            (
                "/workspace/a::/workspace/a",
                Some("/workspace/a"),
                "/workspace/a",
            ),
        ] {
            let grant = parse(text).unwrap();
            let expected = host.map_or(GrantHost::Workspace, |host| GrantHost::Path(host.into()));
            assert_eq!(
                (grant.host, grant.guest.as_str()),
                (expected, guest),
                "{text}"
            );
        }
    }

    #[test]
    fn display_is_read_back() {
        for text in ["/workspace", "/srv/data::/data", "~/x"] {
            let grant = parse(text).unwrap();
            assert_eq!(parse(&grant.to_string()).unwrap(), grant);
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        for (text, problem) in [
            ("", "is empty"),
            ("data", "\"data\" is relative"),
            ("::/x", "is empty; expected a path"),
            ("/a::x", "\"x\" is no absolute path of the guest"),
            ("/a::", "\"\" is no absolute path of the guest"),
            ("/a::/b/../c", "\"/b/../c\" contains `..`"),
            ("/a/../b", "\"/a/../b\" contains `..`"),
            ("~root/x", "\"~root/x\" names another user's home"),
            ("/", "\"/\" grants the whole host"),
            ("/::/host", "\"/::/host\" grants the whole host"),
            (
                "/workspace/a",
                "\"/workspace/a\" could be below the working directory",
            ),
        ] {
            let found = parse(text).unwrap_err();
            assert!(found.starts_with(problem), "{text}: {found}");
        }
    }
}
