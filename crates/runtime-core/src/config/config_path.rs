//! Paths as they stand in a configuration.

use std::env;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Error, ErrorKind, Result};

/// A path whose leading `~` means the home directory of the user who runs the host.
///
/// The text is kept as it was written; [`ConfigPath::expand`] turns it into a path. `~user` is
/// refused: looking up other users' homes is not the business of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ConfigPath(String);

impl ConfigPath {
    /// A path from its text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text as it was written.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The path, with a leading `~` or `~/` replaced by the home directory (`HOME`; `USERPROFILE`
    /// on Windows). A relative path stays relative.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for an empty path, a NUL byte, `~user`, and where a `~` needs a
    /// home directory and the variable is unset or no absolute path.
    pub fn expand(&self) -> Result<PathBuf> {
        self.expand_in(home().as_deref())
            .map_err(|problem| Error::new(ErrorKind::InvalidConfig, problem))
    }

    /// [`ConfigPath::expand`] for a given home directory.
    pub(super) fn expand_in(&self, home: Option<&Path>) -> Result<PathBuf, String> {
        let text = &self.0;
        self.check()?;
        let Some(rest) = text.strip_prefix('~') else {
            return Ok(PathBuf::from(text));
        };
        let home = home.ok_or_else(|| {
            format!("{text:?} needs a home directory, and {HOME} is not set to an absolute path")
        })?;
        match rest.trim_start_matches('/') {
            "" => Ok(home.to_path_buf()),
            below => Ok(home.join(below)),
        }
    }

    /// What is wrong with the text, whatever the home directory is.
    pub(super) fn check(&self) -> Result<(), String> {
        let text = &self.0;
        if text.is_empty() {
            return Err("is empty; expected a path".to_owned());
        }
        if text.contains('\0') {
            return Err(format!("{text:?} contains a NUL byte"));
        }
        if text.starts_with('~') && text != "~" && !text.starts_with("~/") {
            return Err(format!(
                "{text:?} names another user's home; write `~/…` or the path itself"
            ));
        }
        Ok(())
    }

    /// [`ConfigPath::check`], and the path is absolute (or below `~`) without `..`.
    pub(super) fn check_absolute(&self) -> Result<(), String> {
        self.check()?;
        let text = &self.0;
        let path = Path::new(text);
        if !text.starts_with(['~', '/']) && !path.is_absolute() {
            return Err(format!(
                "{text:?} is relative; expected an absolute path or `~/…`"
            ));
        }
        if path.components().any(|part| part.as_os_str() == "..") {
            return Err(format!("{text:?} contains `..`; expected the path itself"));
        }
        Ok(())
    }
}

/// The variable that holds the home directory.
const HOME: &str = if cfg!(windows) { "USERPROFILE" } else { "HOME" };

/// The home directory of the user who runs the host, where the environment says it.
pub(super) fn home() -> Option<PathBuf> {
    env::var_os(HOME)
        .map(PathBuf::from)
        .filter(|home| home.is_absolute())
}

impl fmt::Display for ConfigPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for ConfigPath {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let path = Self::new(text);
        path.check()
            .map_err(|problem| Error::new(ErrorKind::InvalidConfig, problem))?;
        Ok(path)
    }
}

impl From<&str> for ConfigPath {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for ConfigPath {
    fn from(text: String) -> Self {
        Self(text)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for ConfigPath {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "ConfigPath".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": "string", "format": "path", "minLength": 1 })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn expand(text: &str) -> Result<PathBuf, String> {
        ConfigPath::new(text).expand_in(Some(Path::new("/home/ana")))
    }

    #[test]
    fn a_leading_tilde_is_the_home_directory() {
        for (text, path) in [
            ("~", "/home/ana"),
            ("~/", "/home/ana"),
            ("~/x/y", "/home/ana/x/y"),
            ("~//x", "/home/ana/x"),
            ("/etc/~", "/etc/~"),
            ("a/~/b", "a/~/b"),
        ] {
            assert_eq!(expand(text).unwrap(), Path::new(path), "{text}");
        }
    }

    #[test]
    fn errors_say_what_is_wrong() {
        assert_eq!(expand("").unwrap_err(), "is empty; expected a path");
        assert_eq!(
            expand("~root/x").unwrap_err(),
            "\"~root/x\" names another user's home; write `~/…` or the path itself"
        );
        assert_eq!(expand("a\0b").unwrap_err(), "\"a\\0b\" contains a NUL byte");
        assert_eq!(
            ConfigPath::new("~/x").expand_in(None).unwrap_err(),
            "\"~/x\" needs a home directory, and HOME is not set to an absolute path"
        );
        assert_eq!(
            ConfigPath::new("x").check_absolute().unwrap_err(),
            "\"x\" is relative; expected an absolute path or `~/…`"
        );
        assert_eq!(
            ConfigPath::new("/a/../b").check_absolute().unwrap_err(),
            "\"/a/../b\" contains `..`; expected the path itself"
        );
    }
}
