//! What the engine's failures mean, operation by operation.

use std::time::Duration;

use bollard::errors::Error as EngineError;
use prx_runtime_core::{Error, ErrorKind};

use crate::socket::Endpoint;

/// Why a request to the engine gave no answer that can be used.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Nothing came within this time.
    Silent(Duration),
    /// The engine refused, or the connection broke.
    Engine(EngineError),
}

impl From<EngineError> for Failure {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

impl Failure {
    /// The engine's refusal: its status and its words.
    pub(crate) fn refusal(&self) -> Option<(u16, &str)> {
        match self {
            Self::Engine(EngineError::DockerResponseServerError {
                status_code,
                message,
            }) => Some((*status_code, message)),
            _ => None,
        }
    }

    /// Whether the engine says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self.refusal(), Some((404, _)))
    }

    /// Whether the request may have been carried out although no answer came.
    pub(crate) fn is_uncertain(&self) -> bool {
        self.refusal().is_none()
    }

    /// The failure of `what` (`create the container`) as the caller gets it.
    pub(crate) fn while_trying_to(self, what: &str, endpoint: &Endpoint) -> Error {
        match self {
            Self::Silent(after) => Error::new(
                ErrorKind::Engine,
                format!("the engine at {endpoint} did not {what} within {after:?}"),
            )
            .with_hint("look at the engine's own log; it may be overloaded or hung"),
            Self::Engine(EngineError::DockerResponseServerError {
                status_code,
                message,
            }) => Error::new(
                ErrorKind::Engine,
                format!(
                    "the engine at {endpoint} did not {what}: {} (status {status_code})",
                    one_line(&message)
                ),
            ),
            Self::Engine(error) => Error::new(
                ErrorKind::Engine,
                format!("the engine at {endpoint} broke off while it was to {what}"),
            )
            .with_source(error)
            .with_hint("is it still running? its own log says more"),
        }
    }
}

/// The longest message of an engine that is repeated, in characters.
const SHOWN: usize = 500;

/// A message of the engine, in one line of bounded length.
pub(crate) fn one_line(message: &str) -> String {
    let words: Vec<_> = message.split_whitespace().collect();
    let mut line = words.join(" ");
    if let Some((cut, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(cut);
        line.push('…');
    }
    line
}

/// What a refusal to create a container means.
pub(crate) fn create(failure: Failure, endpoint: &Endpoint, image: &str) -> Error {
    let Some((status, message)) = failure.refusal() else {
        return failure.while_trying_to("create the container", endpoint);
    };
    let said = one_line(message);
    if message.contains("nknown runtime") || message.contains("runtime name") {
        return Error::new(
            ErrorKind::Refused,
            format!("runtime.docker.oci_runtime: {said}"),
        )
        .with_hint("`docker info` lists the engine's runtimes");
    }
    if message.contains("container-init") {
        return Error::new(
            ErrorKind::Refused,
            format!("the engine at {endpoint} has no init for containers: {said}"),
        )
        .with_hint(INIT_HINT);
    }
    if status == 404 {
        return Error::new(
            ErrorKind::Image,
            format!("the image `{image}` is gone: {said}"),
        );
    }
    if is_foreign_path(message) {
        return Error::new(
            ErrorKind::Refused,
            format!("the engine at {endpoint} does not see the working directory: {said}"),
        )
        .with_hint(FOREIGN_PATH_HINT);
    }
    failure.while_trying_to("create the container", endpoint)
}

/// What to do about an engine that has another file system than ours.
pub(crate) const FOREIGN_PATH_HINT: &str = "the engine runs on another machine or in a container of its own: use one that \
     sees the same files, or set runtime.docker.mount_workspace = false";

/// What to do about an engine without an init.
const INIT_HINT: &str =
    "install the engine's init (docker-init, that is tini; catatonit for Podman)";

/// Whether the engine says that the source of a bind mount is not there.
pub(crate) fn is_foreign_path(message: &str) -> bool {
    message.contains("bind source path does not exist")
        || (message.contains("no such file or directory") && message.contains("statfs"))
}

/// Whether the engine says that it cannot read a seccomp profile.
pub(crate) fn is_unread_profile(failure: &Failure) -> bool {
    failure
        .refusal()
        .is_some_and(|(_, message)| message.contains("seccomp profile"))
}

/// What a refusal to start a container means. `program` is what was to be run, `path` the image's
/// PATH.
pub(crate) fn start(failure: Failure, endpoint: &Endpoint, program: &str, path: &str) -> Error {
    let Some((_, message)) = failure.refusal() else {
        return failure.while_trying_to("start the container", endpoint);
    };
    if message.contains("docker-init") || message.contains("catatonit") {
        return Error::new(
            ErrorKind::Refused,
            format!(
                "the engine at {endpoint} has no init for containers: {}",
                one_line(message)
            ),
        )
        .with_hint(INIT_HINT);
    }
    if message.contains("executable file not found")
        || message.contains("no such file or directory")
    {
        return program_not_found(program, path);
    }
    if message.contains("permission denied") || message.contains("exec format error") {
        return not_executable(program);
    }
    if message.contains("argument list too long") {
        return Error::new(
            ErrorKind::TooLarge,
            format!("the arguments and the environment of `{program}` are too large"),
        );
    }
    failure.while_trying_to("start the container", endpoint)
}

/// A program that the container does not have.
pub(crate) fn program_not_found(program: &str, path: &str) -> Error {
    let error = if program.contains('/') {
        Error::new(
            ErrorKind::ProgramNotFound,
            format!("the program `{program}` does not exist in the container"),
        )
    } else {
        Error::new(
            ErrorKind::ProgramNotFound,
            format!("the program `{program}` is not in the container; searched {path}"),
        )
    };
    error.with_hint("choose an image that has it: runtime.docker.image or tool_images")
}

/// A file that the container has and cannot execute.
pub(crate) fn not_executable(program: &str) -> Error {
    Error::new(
        ErrorKind::NotExecutable,
        format!("`{program}` exists in the container and cannot be executed"),
    )
    .with_hint("is it a directory, without the x bit, or for another architecture?")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(status_code: u16, message: &str) -> Failure {
        Failure::Engine(EngineError::DockerResponseServerError {
            status_code,
            message: message.into(),
        })
    }

    fn endpoint() -> Endpoint {
        Endpoint::Unix("/x".into())
    }

    #[test]
    fn each_refusal_has_its_kind() {
        for (message, kind) in [
            ("Unknown runtime specified runsc", ErrorKind::Refused),
            (
                "invalid mount config for type \"bind\": bind source path does not exist: /a",
                ErrorKind::Refused,
            ),
            (
                "container-init binary not found on the host",
                ErrorKind::Refused,
            ),
            ("something else", ErrorKind::Engine),
        ] {
            assert_eq!(
                create(refusal(400, message), &endpoint(), "i").kind(),
                kind,
                "{message}"
            );
        }
        for (message, kind) in [
            (
                "exec: \"x\": executable file not found in $PATH: unknown",
                ErrorKind::ProgramNotFound,
            ),
            (
                "exec: \"/x\": permission denied: unknown",
                ErrorKind::NotExecutable,
            ),
            (
                "exec: \"docker-init\": executable file not found in $PATH",
                ErrorKind::Refused,
            ),
            ("cannot set up cgroup", ErrorKind::Engine),
        ] {
            let error = start(refusal(400, message), &endpoint(), "x", "/bin");
            assert_eq!(error.kind(), kind, "{message}");
        }
    }

    #[test]
    fn a_long_message_is_cut() {
        let line = one_line(&"äb\n".repeat(10_000));
        assert_eq!(line.chars().count(), SHOWN + 1);
        assert!(!line.contains('\n'));
    }
}
