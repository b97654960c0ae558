//! What this machine has for a sandbox, and what it says of itself when namespaces cannot be made.

use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use prx_runtime_core::{Error, ErrorKind, Result};

use crate::landlock;

/// What a sandbox finds on a machine. Another one than the machine we run on is for trials: whether
/// what is missing is said.
#[derive(Debug, Clone)]
pub struct Machine {
    /// Where programs are looked for, as PATH has it; `None` is PATH itself.
    search: Option<OsString>,
    landlock: i32,
    settings: PathBuf,
}

impl Machine {
    /// The machine that this process runs on.
    pub fn current() -> Self {
        Self {
            search: None,
            landlock: landlock::kernel_version(),
            settings: "/proc/sys".into(),
        }
    }

    /// The same with programs in `directories` only, which are written like PATH.
    #[must_use]
    pub fn with_programs_in(mut self, directories: impl Into<OsString>) -> Self {
        self.search = Some(directories.into());
        self
    }

    /// The same with a kernel that has that version of Landlock's interface; 0 is none.
    #[must_use]
    pub fn with_landlock(mut self, version: i32) -> Self {
        self.landlock = version;
        self
    }

    /// The same with the kernel's settings read from below `directory` and not from `/proc/sys`.
    #[must_use]
    pub fn with_settings_in(mut self, directory: impl Into<PathBuf>) -> Self {
        self.settings = directory.into();
        self
    }

    /// The version of Landlock's interface, if the kernel has it and it is on.
    pub fn landlock(&self) -> Option<i32> {
        Some(self.landlock).filter(|version| *version > 0)
    }

    /// The file of a program, for a sandbox of that name.
    pub(crate) fn find(&self, program: &str, sandbox: &str) -> Result<PathBuf> {
        let found = match &self.search {
            Some(search) => which::which_in(program, Some(search), "/"),
            None => which::which(program),
        };
        found
            .ok()
            .and_then(|path| path.canonicalize().ok())
            .ok_or_else(|| {
                Error::new(
                    ErrorKind::Unavailable,
                    format!(
                        "security.sandbox.backend = \"{sandbox}\" needs the program `{program}`, \
                         which is not on PATH"
                    ),
                )
                .with_hint(format!("install the package `{sandbox}`"))
            })
    }

    /// Which setting forbids namespaces, and what to do.
    pub(crate) fn hint(&self) -> Option<String> {
        hint_by(|setting| fs::read_to_string(self.settings.join(setting)).ok())
    }
}

/// Settings that forbid namespaces to those who are not root, the value that does, and what lifts
/// it.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone = 0 forbids user namespaces: set it to 1",
    ),
    (
        "user/max_user_namespaces",
        "0",
        "user.max_user_namespaces = 0 forbids user namespaces: raise it",
    ),
    (
        "kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns = 1 restricts user namespaces: install a \
         profile for bwrap that permits them, or set it to 0",
    ),
];

fn hint_by(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let forbids = |(setting, value, _): &&(&str, &str, &str)| {
        read(setting).is_some_and(|found| found.trim() == *value)
    };
    let (_, _, advice) = SETTINGS.iter().find(forbids).copied().unwrap_or((
        "",
        "",
        "in a container the engine has to permit namespaces and a fresh /proc; or choose \
         security.sandbox.backend = \"landlock\"",
    ));
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_is_named() {
        for (setting, value, _) in SETTINGS {
            let hint = hint_by(|asked| (asked == setting).then(|| format!("{value}\n"))).unwrap();
            let name = setting.replace('/', ".");
            assert!(hint.contains(&name), "{hint}");
        }
        assert!(hint_by(|_| None).unwrap().contains("container"));
    }
}
