//! Who calls: root, and somebody else.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use libtest_mimic::Failed;

/// Whoever is meant by nobody.
const NOBODY: &str = "65534";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Caller {
    Root,
    User,
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Root => "root",
            Self::User => "user",
        })
    }
}

impl Caller {
    /// Root can be anybody; whoever is not can only be themselves.
    pub(crate) fn all() -> Vec<Self> {
        let root = rustix::process::getuid().is_root();
        if root {
            vec![Self::Root, Self::User]
        } else {
            vec![Self::User]
        }
    }

    /// Whether this process is that caller.
    pub(crate) fn is_us(self) -> bool {
        rustix::process::getuid().is_root() == (self == Self::Root)
    }

    /// Runs one trial in a process of that caller.
    pub(crate) fn run(self, trial: &str) -> Result<(), Failed> {
        let (program, home) = reachable()?;
        let output = command("setpriv")
            .args(["--reuid", NOBODY, "--regid", NOBODY, "--clear-groups", "--"])
            .arg(program)
            .args(["--exact", trial, "--include-ignored", "--test-threads", "1"])
            .env_clear()
            .env("HOME", home)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TMPDIR", home)
            .current_dir(home)
            .output()?;
        passed(&output).map_err(|text| format!("as uid {NOBODY}: {text}").into())
    }
}

/// Runs one trial in another process of the same caller, with another home.
pub(crate) fn again(trial: &str, home: &Path) -> Result<(), Failed> {
    let output = command(std::env::current_exe()?)
        .args(["--exact", trial, "--include-ignored", "--test-threads", "1"])
        .env("HOME", home)
        .output()?;
    passed(&output).map_err(Failed::from)
}

/// Whether the one trial ran and passed; otherwise what was said.
fn passed(output: &Output) -> Result<(), String> {
    let said = String::from_utf8_lossy(&output.stdout);
    if output.status.success() && said.contains("1 passed") {
        return Ok(());
    }
    Err(format!("{said}{}", String::from_utf8_lossy(&output.stderr)))
}

/// A copy of this program, and a home, where another user can reach them.
fn reachable() -> Result<(&'static Path, &'static Path), Failed> {
    static PLACE: OnceLock<Result<(PathBuf, PathBuf), String>> = OnceLock::new();
    let place = PLACE.get_or_init(|| make_reachable().map_err(|error| error.to_string()));
    let (program, home) = place.as_ref().map_err(Clone::clone)?;
    Ok((program, home))
}

fn make_reachable() -> std::io::Result<(PathBuf, PathBuf)> {
    use std::os::unix::fs::PermissionsExt;
    // Stays until the next start of the machine: this process ends without a last word.
    let place = std::env::temp_dir().join("prx-sandbox-trials");
    let _ = std::fs::remove_dir_all(&place);
    std::fs::create_dir_all(&place)?;
    std::fs::set_permissions(&place, PermissionsExt::from_mode(0o755))?;
    let program = place.join("trials");
    std::fs::copy(std::env::current_exe()?, &program)?;
    std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
    let home = place.join("home");
    std::fs::create_dir_all(&home)?;
    let nobody = NOBODY.parse().ok();
    std::os::unix::fs::chown(&home, nobody, nobody)?;
    Ok((program, home))
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very test as another user"
)]
pub(crate) fn command(program: impl AsRef<std::ffi::OsStr>) -> Command {
    Command::new(program)
}
