//! The one door through which processes are started.

use std::path::PathBuf;

use prx_runtime_core::{Error, ErrorKind, Invocation, Owner, Plan, Result, StdinSource, Stdio};

use crate::error::{self, Target};
use crate::pump::{InputPump, OutputPump};
use crate::running::NativeRunning;
use crate::shell::Shell;
use crate::tree::{Cookie, Leader, Started};

/// Where programs are looked for when the command's environment has no PATH.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";
/// The longest single argument or variable that Linux takes, in bytes, its closing NUL included.
const LONGEST_STRING: usize = 128 * 1024;
/// How often a program is tried that another thread of this host is still writing: a fork in
/// between holds its descriptor open for a moment.
const BUSY_TRIES: u32 = 5;

/// What confines the commands of a runtime, if anything does.
#[cfg(target_os = "linux")]
pub(crate) type Confiners = Option<std::sync::Arc<dyn prx_runtime_core::confine::Confiner>>;
#[cfg(not(target_os = "linux"))]
pub(crate) type Confiners = ();

/// A command for an asynchronous child, such as a probe needs.
#[expect(clippy::disallowed_methods, reason = "this is the door")]
pub(crate) fn new(program: &std::path::Path) -> tokio::process::Command {
    tokio::process::Command::new(program)
}

#[expect(clippy::disallowed_methods, reason = "this is the door")]
fn std_command(program: &std::path::Path) -> std::process::Command {
    std::process::Command::new(program)
}

/// The command that a confiner puts in the place of another.
#[cfg(target_os = "linux")]
pub(crate) fn confined(program: &std::path::Path) -> std::process::Command {
    std_command(program)
}

/// Starts what `plan` says, confined where there is a confiner.
pub(crate) async fn start(
    plan: &Plan,
    stdio: Stdio,
    shell: &Shell,
    confinement: &Confiners,
) -> Result<NativeRunning> {
    error::refuse_unreadable_exit_status()?;
    let target = resolve(plan, shell)?;
    check_lengths(plan)?;
    #[cfg(target_os = "linux")]
    if let Some(confiner) = confinement {
        return crate::confined::start(plan, stdio, shell, &target, &**confiner).await;
    }
    #[cfg(not(target_os = "linux"))]
    let () = *confinement;
    let with_stdin = !matches!(stdio.stdin, StdinSource::Empty);
    let cookie = Cookie::new(plan.id, Owner::current());
    let mut tries = 0;
    let started = loop {
        match Leader::spawn(build(plan, shell, &target), cookie.clone(), with_stdin) {
            Ok(started) => break started,
            Err(error)
                if error.kind() == std::io::ErrorKind::ExecutableFileBusy && tries < BUSY_TRIES =>
            {
                tries += 1;
                tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            }
            Err(error) => return Err(error::spawn(error, plan, &target)),
        }
    };
    let Started {
        leader,
        stdin,
        stdout,
        stderr,
    } = started;
    Ok(NativeRunning::new(
        leader,
        InputPump::new(stdin, stdio.stdin),
        OutputPump::new(stdout, stdio.stdout),
        OutputPump::new(stderr, stdio.stderr),
    ))
}

/// What [`start`] would start, word by word, the program by its path.
pub(crate) fn argv(plan: &Plan, shell: &Shell) -> Result<Vec<String>> {
    let target = resolve(plan, shell)?;
    let mut argv = vec![target.path.display().to_string()];
    match &plan.invocation {
        Invocation::Program { args, .. } => argv.extend(args.iter().cloned()),
        Invocation::Shell { line } => argv.extend(shell.args(line).map(str::to_owned)),
    }
    Ok(argv)
}

fn build(plan: &Plan, shell: &Shell, target: &Target) -> std::process::Command {
    // An absolute path keeps the standard library on its fast path: it need not look at PATH
    // after a fork, so it does not fork a large host.
    let mut command = std_command(&target.path);
    match &plan.invocation {
        Invocation::Program { program, args } => {
            set_name(&mut command, program);
            command.args(args);
        }
        Invocation::Shell { line } => {
            command.args(shell.args(line));
        }
    }
    command.env_clear().envs(plan.environment.iter());
    if plan.working_dir_requested {
        command.current_dir(&plan.working_dir);
    }
    command
}

/// Programs that are many in one go by the name they are called by.
#[cfg(unix)]
fn set_name(command: &mut std::process::Command, name: &str) {
    std::os::unix::process::CommandExt::arg0(command, name);
}

#[cfg(not(unix))]
fn set_name(_: &mut std::process::Command, _: &str) {}

fn resolve(plan: &Plan, shell: &Shell) -> Result<Target> {
    let program = match &plan.invocation {
        Invocation::Shell { .. } => {
            return Ok(Target {
                name: shell.path().display().to_string(),
                path: shell.path().to_owned(),
            });
        }
        Invocation::Program { program, .. } => program,
    };
    if program.contains(std::path::is_separator) {
        return Ok(Target {
            name: program.clone(),
            path: plan.working_dir.join(program),
        });
    }
    let path = plan
        .environment
        .get("PATH")
        .unwrap_or(DEFAULT_PATH.as_ref());
    match which::which_in(program, Some(path), &plan.working_dir) {
        Ok(found) => Ok(Target {
            name: program.clone(),
            path: std::path::absolute(&found).unwrap_or(found),
        }),
        Err(_) => Err(not_found(program, path, plan)),
    }
}

fn not_found(program: &str, path: &std::ffi::OsStr, plan: &Plan) -> Error {
    let there: Option<PathBuf> = std::env::split_paths(path)
        .map(|directory| plan.working_dir.join(directory).join(program))
        .find(|candidate| candidate.exists());
    if let Some(there) = there {
        return Error::new(
            ErrorKind::NotExecutable,
            format!(
                "`{program}` cannot be executed: `{}` is no executable file",
                there.display()
            ),
        )
        .with_hint("make it executable (chmod +x), or name its interpreter as the program");
    }
    let error = Error::new(
        ErrorKind::ProgramNotFound,
        format!(
            "program `{program}` was not found; searched PATH: {}",
            path.display()
        ),
    );
    if program.contains(char::is_whitespace) {
        error.with_hint("with arguments the command is a program's name, not a shell line")
    } else if plan.environment.get("PATH").is_none() {
        error.with_hint("the command gets no PATH; add PATH to runtime.env_whitelist")
    } else {
        error
    }
}

/// What the kernel would refuse with a bare number.
fn check_lengths(plan: &Plan) -> Result<()> {
    if !cfg!(target_os = "linux") {
        return Ok(());
    }
    let too_large = |what: String, length: usize| {
        Err(Error::new(
            ErrorKind::TooLarge,
            format!(
                "{what} has {length} bytes; the system takes at most {} in one",
                LONGEST_STRING - 1
            ),
        )
        .with_hint("pass it on stdin or in a file"))
    };
    match &plan.invocation {
        Invocation::Shell { line } if line.len() >= LONGEST_STRING => {
            return too_large("the command line".into(), line.len());
        }
        Invocation::Shell { .. } => {}
        Invocation::Program { args, .. } => {
            for (index, arg) in args.iter().enumerate() {
                if arg.len() >= LONGEST_STRING {
                    return too_large(format!("argument {}", index + 1), arg.len());
                }
            }
        }
    }
    for (name, value) in plan.environment.iter() {
        // The system's string is NAME=VALUE.
        let length = name.len() + 1 + value.len();
        if length >= LONGEST_STRING {
            return too_large(format!("the variable `{name}`"), length);
        }
    }
    Ok(())
}
