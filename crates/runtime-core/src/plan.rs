//! A request that was checked and resolved: what a backend is given.

use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::{
    Environment, EnvironmentRules, Error, ErrorKind, ExecutionId, ExecutionRequest, Invocation,
    Result,
};

/// One command, checked and resolved. Holds nothing that the rules would not allow.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Plan {
    /// The random name of the execution.
    pub id: ExecutionId,
    /// What is to be run; not empty and without NUL bytes.
    pub invocation: Invocation,
    /// The environment, built by the rules of the backend.
    pub environment: Environment,
    /// The directory to run in: absolute, and a directory when it was looked at.
    pub working_dir: PathBuf,
    /// Whether the request named that directory. Otherwise it is the caller's own, which a local
    /// process inherits even where its path cannot be walked.
    pub working_dir_requested: bool,
    /// The tool that the command belongs to.
    pub tool: Option<String>,
    /// How long it may run from its start on, if that is bounded. The supervisor sees to it; a
    /// backend may tell others.
    pub timeout: Option<Duration>,
}

impl Plan {
    /// Checks `request` and resolves it by `rules`. Runs nothing.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for an empty command, a NUL byte or a zero timeout or bound;
    /// [`ErrorKind::WorkingDirectory`] for a directory that cannot be used.
    pub fn prepare(request: &ExecutionRequest, rules: &EnvironmentRules) -> Result<Self> {
        check_invocation(&request.invocation)?;
        if request.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(invalid("the timeout is zero")
                .with_hint("give a positive duration; it may be as long as you like"));
        }
        if request.max_output_bytes == Some(0) {
            return Err(invalid("the output bound is zero bytes"));
        }
        Ok(Self {
            id: ExecutionId::random()?,
            invocation: request.invocation.clone(),
            environment: rules.build(&request.env)?,
            working_dir: resolve_directory(request.working_dir.as_deref())?,
            working_dir_requested: request.working_dir.is_some(),
            tool: request.tool.clone(),
            timeout: request.timeout,
        })
    }
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

fn check_invocation(invocation: &Invocation) -> Result<()> {
    let (what, command) = match invocation {
        Invocation::Program { program, args } => {
            if let Some(index) = args.iter().position(|arg| arg.contains('\0')) {
                return Err(invalid(format!(
                    "argument {} has a NUL byte in it",
                    index + 1
                )));
            }
            ("program", program)
        }
        Invocation::Shell { line } => ("command line", line),
    };
    if command.contains('\0') {
        return Err(invalid(format!(
            "the {what} has a NUL byte in it: {command:?}"
        )));
    }
    if command.trim().is_empty() {
        return Err(invalid(format!("the {what} is empty")));
    }
    Ok(())
}

fn resolve_directory(requested: Option<&Path>) -> Result<PathBuf> {
    let current = || {
        std::env::current_dir().map_err(|error| {
            directory_error("the current directory cannot be used", error)
                .with_hint("it may have been removed; change to another one or name one")
        })
    };
    let Some(requested) = requested else {
        return current();
    };
    let directory = if requested.is_absolute() {
        requested.to_owned()
    } else {
        current()?.join(requested)
    };
    let shown = directory.display();
    let metadata = std::fs::metadata(&directory).map_err(|error| {
        directory_error(
            format!("the working directory `{shown}` cannot be used"),
            error,
        )
    })?;
    if !metadata.is_dir() {
        return Err(Error::new(
            ErrorKind::WorkingDirectory,
            format!("the working directory `{shown}` is not a directory"),
        ));
    }
    Ok(directory)
}

fn directory_error(message: impl Into<String>, error: std::io::Error) -> Error {
    Error::new(ErrorKind::WorkingDirectory, message).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepare(request: ExecutionRequest) -> Result<Plan> {
        Plan::prepare(&request, &EnvironmentRules::default())
    }

    #[test]
    fn bad_requests_are_named() {
        for (request, kind, text) in [
            (
                ExecutionRequest::program(""),
                ErrorKind::InvalidRequest,
                "the program is empty",
            ),
            (
                ExecutionRequest::shell(" \t"),
                ErrorKind::InvalidRequest,
                "the command line is empty",
            ),
            (
                ExecutionRequest::program("a\0b"),
                ErrorKind::InvalidRequest,
                r#"the program has a NUL byte in it: "a\0b""#,
            ),
            (
                ExecutionRequest::program("a").arg("x").arg("\0"),
                ErrorKind::InvalidRequest,
                "argument 2 has a NUL byte in it",
            ),
            (
                ExecutionRequest::program("a").timeout(Duration::ZERO),
                ErrorKind::InvalidRequest,
                "the timeout is zero",
            ),
            (
                ExecutionRequest::program("a").max_output_bytes(0),
                ErrorKind::InvalidRequest,
                "the output bound is zero bytes",
            ),
            (
                ExecutionRequest::program("a").env("A", "\0"),
                ErrorKind::InvalidRequest,
                "the value of `A` has a NUL byte in it",
            ),
            (
                ExecutionRequest::program("a").working_dir("/nowhere"),
                ErrorKind::WorkingDirectory,
                "the working directory `/nowhere` cannot be used",
            ),
            (
                ExecutionRequest::program("a")
                    .working_dir(file!().replace("crates/runtime-core/", "")),
                ErrorKind::WorkingDirectory,
                "is not a directory",
            ),
        ] {
            let error = prepare(request).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(text), "{error}");
        }
    }

    #[test]
    fn a_relative_directory_resolves_against_the_callers() {
        let plan = prepare(ExecutionRequest::program("a").working_dir("src")).unwrap();
        assert_eq!(
            plan.working_dir,
            std::env::current_dir().unwrap().join("src")
        );
    }
}
