//! The process that trials run in: one with things that must not reach a guest.

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::{Descendant, Driver, Marker, Task, Then, TokioKind};

/// Says which part this process plays.
const ROLE: &str = "PRX_CONFORMANCE_ROLE";
const ROLE_SUITE: &str = "suite";
const ROLE_VICTIM: &str = "victim";
/// The delay of a victim's marker, in seconds.
const VICTIM_DELAY: &str = "PRX_CONFORMANCE_DELAY";
/// Which [`VictimTask`] a victim runs.
const VICTIM_TASK: &str = "PRX_CONFORMANCE_TASK";

/// A variable of the host that trials put on the whitelist, and its value.
pub(crate) const LISTED: (&str, &str) = ("PRX_SUITE_LISTED", "value of the host");
/// A variable of the host that nobody lists, and its value.
pub(crate) const UNLISTED: (&str, &str) = ("PRX_SUITE_UNLISTED", "unlisted value");
/// What the value of each secret of the host contains.
pub(crate) const SECRET: &str = "swordfish";
/// Secrets of the host, by the shape of their names.
pub(crate) const SECRET_NAMES: [&str; 7] = [
    "PRX_SUITE_API_KEY",
    "PRX_SUITE_TOKEN",
    "PRX_SUITE_CLIENT_SECRET",
    "PRX_SUITE_PASSWORD",
    "PRX_SUITE_CREDENTIALS",
    "OPENAI_API_KEY",
    "GITHUB_TOKEN",
];
/// What a shell prints that follows the start-up variables of the host.
pub(crate) const STARTED_UP: &str = "the start-up file was read";
/// What can be read on the host's stdin, which stays open.
const FOR_THE_HOST: &[u8] = b"not for a command\n";

/// Runs `work` in a process prepared for trials: host variables that must not reach a guest, an
/// open stdin that speaks, an own directory for temporary files, which is the current directory
/// too and must be empty at the end.
///
/// Called first thing in `main`, it starts this very program again and returns that one's code.
pub fn in_prepared_host(driver: &Arc<dyn Driver>, work: impl FnOnce() -> ExitCode) -> ExitCode {
    let code = match std::env::var(ROLE).as_deref() {
        Ok(ROLE_SUITE) => return work(),
        Ok(ROLE_VICTIM) => victim(&**driver).map(|()| ExitCode::SUCCESS),
        _ => warden().map_err(Into::into),
    };
    code.unwrap_or_else(|error| {
        report(&format!("the suite cannot be run: {error}"));
        ExitCode::FAILURE
    })
}

/// Writes a line for people.
#[expect(
    clippy::print_stderr,
    reason = "the suite is a program with words for people"
)]
pub(crate) fn report(line: &str) {
    eprintln!("{line}");
}

/// Starts the process that does the work, holds its stdin open, and looks at what it leaves.
fn warden() -> std::io::Result<ExitCode> {
    let base = tempfile::Builder::new()
        .prefix("prx-conformance-")
        .tempdir()?;
    let startup = base.path().join("startup.sh");
    std::fs::write(&startup, format!("echo '{STARTED_UP}'\n"))?;
    let temporary = base.path().join("tmp");
    std::fs::create_dir(&temporary)?;
    let mut command = this_program()?;
    command
        .args(std::env::args_os().skip(1))
        .env(ROLE, ROLE_SUITE)
        .envs([LISTED, UNLISTED])
        .envs(SECRET_NAMES.map(|name| (name, format!("{SECRET} of {name}"))))
        .envs(["BASH_ENV", "ENV"].map(|name| (name, &startup)))
        .envs(["TMPDIR", "TMP", "TEMP"].map(|name| (name, &temporary)))
        .current_dir(&temporary)
        .stdin(Stdio::piped());
    let mut suite = command.spawn()?;
    let mut stdin = suite.stdin.take();
    if let Some(stdin) = &mut stdin {
        // A suite that ends at once (`--list`) reads nothing.
        let _ = stdin.write_all(FOR_THE_HOST);
    }
    let status = suite.wait()?;
    drop(stdin);
    let left = names_in(&temporary)?;
    let code = status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .unwrap_or(1);
    if !left.is_empty() {
        report(&format!(
            "left in the directory for temporary files: {}",
            left.join(", ")
        ));
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::from(code))
}

/// The names of what is in a directory, sorted.
pub(crate) fn names_in(directory: &Path) -> std::io::Result<Vec<String>> {
    let mut names = std::fs::read_dir(directory)?
        .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
        .collect::<std::io::Result<Vec<_>>>()?;
    names.sort_unstable();
    Ok(names)
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very program, as the host whose rights and faults are tried"
)]
fn this_program() -> std::io::Result<Command> {
    Ok(Command::new(std::env::current_exe()?))
}

/// The marker of a guest that would write it `delay` after it has started.
pub(crate) fn marker(delay: Duration) -> Marker {
    Marker {
        file: "marker".to_owned(),
        delay,
    }
}

/// What a host runs that is about to be killed.
#[derive(Debug, Clone, Copy)]
pub(crate) enum VictimTask {
    Mark,
    Daemon,
}

impl VictimTask {
    const ALL: [(&str, Self); 2] = [("mark", Self::Mark), ("daemon", Self::Daemon)];

    pub(crate) fn task(self, delay: Duration) -> Task {
        match self {
            Self::Mark => Task::Mark(marker(delay)),
            Self::Daemon => Task::Leave {
                descendant: Descendant::Daemon,
                marker: marker(delay),
                then: Then::Sleep(Duration::from_secs(60)),
            },
        }
    }
}

/// Starts a host that runs `task` in `directory` and waits for its end. To be killed.
pub(crate) fn start_victim(
    task: VictimTask,
    delay: Duration,
    directory: &Path,
) -> std::io::Result<Child> {
    let name = match task {
        VictimTask::Mark => "mark",
        VictimTask::Daemon => "daemon",
    };
    this_program()?
        .env(ROLE, ROLE_VICTIM)
        .env(VICTIM_TASK, name)
        .env(VICTIM_DELAY, delay.as_secs().to_string())
        .current_dir(directory)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

/// The part of the one who is killed.
fn victim(driver: &dyn Driver) -> Result<(), Box<dyn std::error::Error>> {
    let name = std::env::var(VICTIM_TASK)?;
    let (_, task) = VictimTask::ALL
        .into_iter()
        .find(|(known, _)| *known == name)
        .ok_or("the victim has no task")?;
    let delay = Duration::from_secs(std::env::var(VICTIM_DELAY)?.parse()?);
    let request = driver
        .spell(&task.task(delay))
        .ok_or("the task has no spelling")?;
    let request = request.working_dir(std::env::current_dir()?);
    TokioKind::MultiThread.build()?.block_on(async {
        driver.make(&driver.config()).await?.run(request).await?;
        Ok(())
    })
}
