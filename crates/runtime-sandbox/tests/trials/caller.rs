//! Who calls: root, and somebody else.

use std::ffi::OsStr;
use std::fmt;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::OnceLock;

use libtest_mimic::Failed;
use prx_runtime_core::config::SandboxKind;

/// Whoever is meant by nobody.
const NOBODY: Account = Account {
    uid: 65534,
    gid: 65534,
};

/// Somebody who is not root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Account {
    uid: u32,
    gid: u32,
}

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

    /// Why this caller cannot try a sandbox.
    pub(crate) fn missing(self, kind: SandboxKind) -> Option<String> {
        if self.is_us() || account_for(kind).is_some() {
            return None;
        }
        Some(format!(
            "machine has no account but root that {kind} serves"
        ))
    }

    /// Runs one trial in a process of that caller.
    pub(crate) fn run(self, kind: SandboxKind, trial: &str) -> Result<(), Failed> {
        let Account { uid, gid } = account_for(kind).ok_or("no account")?;
        let place = reachable()?;
        let home = place.home(Account { uid, gid })?;
        let (uid, gid) = (uid.to_string(), gid.to_string());
        let output = command("setpriv")
            .args(["--reuid", &uid, "--regid", &gid, "--clear-groups", "--"])
            .arg(&place.program)
            .args(["--exact", trial, "--include-ignored", "--test-threads", "1"])
            .env_clear()
            .env("HOME", &home)
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env("TMPDIR", &home)
            .current_dir(&home)
            .output()?;
        passed(&output).map_err(|text| format!("as uid {uid}: {text}").into())
    }
}

/// Who tries a sandbox beside root. Firejail never serves `nobody`, nor accounts without a shell.
fn account_for(kind: SandboxKind) -> Option<Account> {
    if kind != SandboxKind::Firejail {
        return Some(NOBODY);
    }
    let accounts = std::fs::read_to_string("/etc/passwd").ok()?;
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let (uid, gid) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
        let (home, shell) = (fields.nth(1)?, fields.next()?);
        let account = Account { uid, gid };
        (uid != 0
            && account != NOBODY
            && ["/bin/sh", "/bin/bash", "/bin/dash"].contains(&shell)
            && Path::new(home).is_dir())
        .then_some(account)
    })
}

/// Runs one trial in another process of the same caller, with another variable of the environment,
/// and by way of a command that starts what its arguments say, if there is one.
pub(crate) fn again_by(
    way: &[&str],
    trial: &str,
    (name, value): (&str, &Path),
) -> Result<(), Failed> {
    let own = std::env::current_exe()?;
    let mut words = way.iter().map(OsStr::new).chain([own.as_os_str()]);
    let output = command(words.next().unwrap_or_default())
        .args(words)
        .args(["--exact", trial, "--include-ignored", "--test-threads", "1"])
        .env(name, value)
        .stdin(Stdio::null())
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

/// A copy of this program, and homes, where other users can reach them.
struct Place {
    base: PathBuf,
    program: PathBuf,
}

static PLACE: OnceLock<Result<Place, String>> = OnceLock::new();

fn reachable() -> Result<&'static Place, Failed> {
    let place = PLACE.get_or_init(|| Place::make().map_err(|error| error.to_string()));
    place.as_ref().map_err(Failed::from)
}

/// Removes what was made for other users.
pub(crate) fn clean_up() {
    if let Some(Ok(place)) = PLACE.get() {
        let _ = std::fs::remove_dir_all(&place.base);
    }
}

impl Place {
    fn make() -> io::Result<Self> {
        let base = tempfile::Builder::new()
            .prefix("prx-sandbox-trials-")
            .permissions(PermissionsExt::from_mode(0o755))
            .tempdir()?
            .keep();
        let program = base.join("trials");
        std::fs::copy(std::env::current_exe()?, &program)?;
        std::fs::set_permissions(&program, PermissionsExt::from_mode(0o755))?;
        Ok(Self { base, program })
    }

    fn home(&self, account: Account) -> io::Result<PathBuf> {
        let home = self.base.join(format!("home-{}", account.uid));
        std::fs::create_dir_all(&home)?;
        std::os::unix::fs::chown(&home, Some(account.uid), Some(account.gid))?;
        Ok(home)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very test as another user"
)]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    Command::new(program)
}
