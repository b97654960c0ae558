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
    // First, since it quotes a path, which may hold any of the words below.
    if is_foreign_path(message) {
        return Error::new(
            ErrorKind::Refused,
            format!("the engine at {endpoint} does not see the working directory: {said}"),
        )
        .with_hint(FOREIGN_PATH_HINT);
    }
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

/// What a refusal to start a container means. `program` is what was to be run, `path` where it is
/// searched, `source` the directory that is mounted as the workspace.
///
/// The engine starts the init, which starts the program: what the engine misses is the program only
/// where it quotes that.
pub(crate) fn start(
    failure: Failure,
    endpoint: &Endpoint,
    program: &str,
    path: &str,
    source: Option<&str>,
) -> Error {
    let Some((_, message)) = failure.refusal() else {
        return failure.while_trying_to("start the container", endpoint);
    };
    let said = one_line(message);
    let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
    // First, since it quotes paths, which may hold any of the words below.
    if says(&["error mounting", "bind source path does not exist"]) {
        // Others are what every container has, such as `/proc`.
        if source.is_none_or(|source| !message.contains(source)) {
            return failure.while_trying_to("mount what the container needs", endpoint);
        }
        return Error::new(
            ErrorKind::WorkingDirectory,
            format!("the engine at {endpoint} could not mount the working directory: {said}"),
        )
        .with_hint("is it still there, and may the engine's user read it?");
    }
    if says(&["chdir to cwd"]) {
        return Error::new(
            ErrorKind::WorkingDirectory,
            format!("the engine at {endpoint} cannot enter the working directory: {said}"),
        )
        .with_hint(
            "the engine's own user has to enter it, too: a network file system may refuse root",
        );
    }
    if says(&["argument list too long"]) {
        return Error::new(
            ErrorKind::TooLarge,
            format!("the arguments and the environment of `{program}` are too large"),
        );
    }
    if let Some(problem) = after_name(message, program) {
        if problem.contains("not found") || problem.contains("no such file or directory") {
            return program_not_found(program, path);
        }
        if ["permission denied", "exec format error", "is a directory"]
            .iter()
            .any(|words| problem.contains(words))
        {
            return not_executable(program);
        }
    }
    if says(&["docker-init", "catatonit", "podman-init"]) {
        return Error::new(
            ErrorKind::Refused,
            format!("the engine at {endpoint} has no init for containers: {said}"),
        )
        .with_hint(INIT_HINT);
    }
    let absent = says(&[
        "no such file or directory",
        "not found",
        "permission denied",
        "exec format error",
    ]);
    if absent && says(&["fork/exec ", "containerd-shim", "failed to start shim"])
        || says(&["OCI runtime not found"])
    {
        return Error::new(
            ErrorKind::Refused,
            format!("the engine at {endpoint} cannot run its OCI runtime: {said}"),
        )
        .with_hint(
            "install the runtime where the engine's configuration has it, or name another in \
             runtime.docker.oci_runtime",
        );
    }
    failure.while_trying_to("start the container", endpoint)
}

/// What a message says of this very program: what follows `exec: "PROGRAM"`, with the name quoted in
/// one of the ways of OCI runtimes.
fn after_name<'a>(message: &'a str, program: &str) -> Option<&'a str> {
    ["exec: \"", "executable file `", "exec `"]
        .iter()
        .find_map(|before| {
            let (_, rest) = message.split_once(before)?;
            rest.strip_prefix(program)?.strip_prefix(['"', '`'])
        })
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
    .with_hint("is it a directory, or without the x bit?")
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
            (
                "bind source path does not exist: /srv/container-init/x",
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
    }

    /// In the words of Docker 20.10 and Podman 4, with runc and crun.
    #[test]
    fn each_refusal_to_start_has_its_kind() {
        for (message, kind) in [
            (
                "failed to create shim task: OCI runtime create failed: runc create failed: unable \
                 to start container process: exec: \"ls\": executable file not found in $PATH: unknown",
                ErrorKind::ProgramNotFound,
            ),
            (
                "crun: executable file `ls` not found in $PATH: No such file or directory: OCI \
                 runtime attempted to invoke a command that was not found",
                ErrorKind::ProgramNotFound,
            ),
            (
                "unable to start container process: exec: \"ls\": permission denied: unknown",
                ErrorKind::NotExecutable,
            ),
            // Another program than that of the user.
            (
                "exec: \"docker-init\": executable file not found in $PATH",
                ErrorKind::Refused,
            ),
            (
                "exec: \"lsof\": executable file not found in $PATH",
                ErrorKind::Engine,
            ),
            (
                "exec /run/podman-init: argument list too long",
                ErrorKind::TooLarge,
            ),
            (
                "fork/exec /usr/bin/runsc: no such file or directory",
                ErrorKind::Refused,
            ),
            (
                "failed to start shim: exec: \"containerd-shim-runsc-v1\": executable file not \
                 found in $PATH",
                ErrorKind::Refused,
            ),
            (
                "error during container init: error mounting \"/srv/docker-init\" to rootfs at \
                 \"/workspace\": stat /srv/docker-init: no such file or directory: OCI runtime \
                 attempted to invoke a command that was not found",
                ErrorKind::WorkingDirectory,
            ),
            (
                "invalid mount config for type \"bind\": bind source path does not exist: \
                 /srv/docker-init",
                ErrorKind::WorkingDirectory,
            ),
            (
                "error during container init: error mounting \"proc\" to rootfs at \"/proc\": mount \
                 proc:/proc (via /proc/self/fd/6), flags: 0xe: permission denied",
                ErrorKind::Engine,
            ),
            (
                "OCI runtime create failed: runc create failed: unable to start container process: \
                 chdir to cwd (\"/workspace\") set in config.json failed: permission denied",
                ErrorKind::WorkingDirectory,
            ),
            (
                "cannot set up cgroup: no such file or directory",
                ErrorKind::Engine,
            ),
            ("device rules: permission denied", ErrorKind::Engine),
            (
                "fork/exec /usr/bin/containerd-shim: resource temporarily unavailable",
                ErrorKind::Engine,
            ),
        ] {
            let refusal = refusal(400, message);
            let error = start(refusal, &endpoint(), "ls", "/bin", Some("/srv/docker-init"));
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
