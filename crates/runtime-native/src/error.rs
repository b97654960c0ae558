//! What the operating system's refusals mean.

use std::io::{self, Read};
use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, Plan, Result};

/// What is to be started: as it was named, and where it was found.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) name: String,
    pub(crate) path: PathBuf,
}

/// The meaning of a failed start. The kernel's answer is one number for many causes; which one it
/// was is looked up here, afterwards.
pub(crate) fn spawn(error: io::Error, plan: &Plan, target: &Target) -> Error {
    let name = &target.name;
    let shown = target.path.display();
    let refuse = |kind, message: String| Error::new(kind, message);
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::PermissionDenied
        | io::ErrorKind::NotADirectory
            if !can_be_entered(plan) =>
        {
            refuse(
                ErrorKind::WorkingDirectory,
                format!(
                    "the working directory `{}` cannot be entered",
                    plan.working_dir.display()
                ),
            )
            .with_source(error)
        }
        io::ErrorKind::NotFound if target.path.exists() => {
            let interpreter = interpreter(&target.path).unwrap_or_else(|| "its loader".into());
            refuse(
                ErrorKind::NotExecutable,
                format!("`{name}` cannot be executed: {interpreter} does not exist"),
            )
            .with_hint("install the interpreter, or correct the first line of the file")
        }
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => refuse(
            ErrorKind::ProgramNotFound,
            format!("program `{name}` was not found; looked at `{shown}`"),
        ),
        io::ErrorKind::PermissionDenied if target.path.is_dir() => refuse(
            ErrorKind::NotExecutable,
            format!("`{name}` cannot be executed: `{shown}` is a directory"),
        ),
        io::ErrorKind::PermissionDenied => refuse(
            ErrorKind::NotExecutable,
            format!("`{name}` cannot be executed: no permission on `{shown}`"),
        )
        .with_hint("make it executable (chmod +x), or name its interpreter as the program"),
        io::ErrorKind::ArgumentListTooLong => refuse(
            ErrorKind::TooLarge,
            format!(
                "arguments and environment of `{name}` are {} bytes in all, more than the system \
                 takes (a quarter of the stack limit, at most 6 MiB)",
                total_length(plan)
            ),
        )
        .with_hint("pass the data on stdin or in a file, or raise the stack limit (ulimit -s)"),
        io::ErrorKind::ExecutableFileBusy => refuse(
            ErrorKind::NotExecutable,
            format!("`{name}` cannot be executed: `{shown}` is open for writing"),
        ),
        _ if is_exec_format(&error) => refuse(
            ErrorKind::NotExecutable,
            format!("`{name}` cannot be executed: `{shown}` has no format that the system knows"),
        )
        .with_hint("a script needs a first line such as #!/bin/sh, or its interpreter as program"),
        _ if is_exhaustion(&error) => refuse(
            ErrorKind::Exhausted,
            format!("`{name}` cannot be started: the system is out of something"),
        )
        .with_source(error)
        .with_hint("look at the limits of processes, memory and open files (ulimit -a)"),
        _ => refuse(ErrorKind::Io, format!("`{name}` cannot be started")).with_source(error),
    }
}

fn can_be_entered(plan: &Plan) -> bool {
    // Reading needs more than entering does: only a refusal of the path itself counts.
    !plan.working_dir_requested || std::fs::metadata(plan.working_dir.join(".")).is_ok()
}

/// The interpreter that the first line of a script names.
fn interpreter(path: &Path) -> Option<String> {
    let mut start = [0; 256];
    let read = std::fs::File::open(path).ok()?.read(&mut start).ok()?;
    let line = start[..read]
        .strip_prefix(b"#!")?
        .split(|byte| *byte == b'\n')
        .next()?;
    let line = String::from_utf8_lossy(line);
    Some(format!(
        "its interpreter `{}`",
        line.split_whitespace().next()?
    ))
}

fn total_length(plan: &Plan) -> usize {
    let command = match &plan.invocation {
        prx_runtime_core::Invocation::Shell { line } => line.len(),
        prx_runtime_core::Invocation::Program { args, .. } => {
            args.iter().map(|arg| arg.len() + 1).sum()
        }
    };
    let environment: usize = plan
        .environment
        .iter()
        .map(|(name, value)| name.len() + value.len() + 2)
        .sum();
    command + environment
}

#[cfg(unix)]
fn is_exec_format(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::ENOEXEC)
}

#[cfg(unix)]
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EMFILE | libc::ENFILE | libc::EAGAIN | libc::ENOMEM | libc::ENOSPC)
    )
}

#[cfg(not(unix))]
fn is_exec_format(error: &io::Error) -> bool {
    // ERROR_BAD_EXE_FORMAT
    error.raw_os_error() == Some(193)
}

#[cfg(not(unix))]
fn is_exhaustion(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::OutOfMemory
}

/// Where the host ignores SIGCHLD the kernel throws exit statuses away, and the end of a command
/// could be seen but not its code.
pub(crate) fn refuse_unreadable_exit_status() -> Result<()> {
    if exit_statuses_are_kept() {
        return Ok(());
    }
    Err(Error::new(
        ErrorKind::Refused,
        "this process ignores SIGCHLD, so the exit code of a command could not be read",
    )
    .with_hint(
        "set SIGCHLD back to its default (signal(SIGCHLD, SIG_DFL)) before running commands",
    ))
}

#[cfg(unix)]
fn exit_statuses_are_kept() -> bool {
    // SAFETY: an all-zero sigaction is a valid value to be overwritten, and with a null new action
    // the call only reads.
    let action = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        if libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) != 0 {
            return true;
        }
        action
    };
    action.sa_sigaction != libc::SIG_IGN && action.sa_flags & libc::SA_NOCLDWAIT == 0
}

#[cfg(not(unix))]
fn exit_statuses_are_kept() -> bool {
    true
}
