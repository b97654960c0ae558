//! What a caller asks for.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tokio::io::AsyncRead;

/// What is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// A program with exactly these arguments; no shell anywhere.
    Program {
        /// A name to be searched on PATH, or a path.
        program: String,
        /// The arguments after the program's name.
        args: Vec<String>,
    },
    /// A line for the backend's shell.
    Shell {
        /// The line.
        line: String,
    },
}

impl fmt::Display for Invocation {
    /// The command as a person would type it: arguments quoted where a shell would need that.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shell { line } => f.write_str(line),
            Self::Program { program, args } => {
                f.write_str(&quote(program))?;
                for arg in args {
                    write!(f, " {}", quote(arg))?;
                }
                Ok(())
            }
        }
    }
}

/// One word, quoted for a POSIX shell where it needs to be.
pub(crate) fn quote(word: &str) -> std::borrow::Cow<'_, str> {
    let plain = |c: char| c.is_alphanumeric() || "_-./=:,@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into()
    } else {
        format!("'{}'", word.replace('\'', r"'\''")).into()
    }
}

/// Where the command's stdin comes from. Without one, it is at its end from the start.
#[non_exhaustive]
pub enum Stdin {
    /// End of file at once.
    Empty,
    /// These bytes, then end of file.
    Bytes(Vec<u8>),
    /// What this reader gives, until its end.
    Reader(Box<dyn AsyncRead + Send + Unpin>),
    /// What is written to [`Execution::stdin`](crate::Execution::stdin). Only for
    /// [`spawn`](crate::RuntimeAdapter::spawn).
    Piped,
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Bytes(bytes) => write!(f, "Bytes({})", bytes.len()),
            Self::Reader(_) => f.write_str("Reader"),
            Self::Piped => f.write_str("Piped"),
        }
    }
}

/// One command to run, and how.
///
/// ```
/// use std::time::Duration;
/// use prx_runtime_core::ExecutionRequest;
///
/// let listing = ExecutionRequest::program("ls").arg("-la").timeout(Duration::from_secs(5));
/// let piped = ExecutionRequest::shell("ls -la | head -3").env("LANG", "C");
/// # drop((listing, piped));
/// ```
pub struct ExecutionRequest {
    pub(crate) invocation: Invocation,
    pub(crate) env: HashMap<String, String>,
    pub(crate) working_dir: Option<PathBuf>,
    pub(crate) timeout: Option<Duration>,
    pub(crate) stdin: Stdin,
    pub(crate) tool: Option<String>,
    pub(crate) max_output_bytes: Option<usize>,
}

impl ExecutionRequest {
    /// Runs `program` with the arguments added by [`arg`](Self::arg) and [`args`](Self::args),
    /// without a shell.
    pub fn program(program: impl Into<String>) -> Self {
        Self::new(Invocation::Program {
            program: program.into(),
            args: Vec::new(),
        })
    }

    /// Runs `line` in the backend's shell.
    pub fn shell(line: impl Into<String>) -> Self {
        Self::new(Invocation::Shell { line: line.into() })
    }

    /// A request as the published `execute` reads it: with arguments `command` is a program,
    /// without any it is a shell line.
    pub fn from_call(
        command: &str,
        args: &[String],
        env: &HashMap<String, String>,
        working_dir: Option<&Path>,
        timeout: Duration,
    ) -> Self {
        let mut request = if args.is_empty() {
            Self::shell(command)
        } else {
            Self::program(command).args(args.iter().cloned())
        };
        request.env = env.clone();
        request.working_dir = working_dir.map(Path::to_owned);
        request.timeout(timeout)
    }

    fn new(invocation: Invocation) -> Self {
        Self {
            invocation,
            env: HashMap::new(),
            working_dir: None,
            timeout: None,
            stdin: Stdin::Empty,
            tool: None,
            max_output_bytes: None,
        }
    }

    /// Adds an argument. On a shell line it becomes a quoted word at its end.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        match &mut self.invocation {
            Invocation::Program { args, .. } => args.push(arg.into()),
            Invocation::Shell { line } => {
                line.push(' ');
                line.push_str(&quote(&arg.into()));
            }
        }
        self
    }

    /// Adds arguments, as [`arg`](Self::arg) does.
    #[must_use]
    pub fn args(self, args: impl IntoIterator<Item = impl Into<String>>) -> Self {
        args.into_iter().fold(self, Self::arg)
    }

    /// Asks for a variable. The command gets it if `runtime.env_whitelist` has its name; otherwise
    /// the output lists it in `refused_env`.
    #[must_use]
    pub fn env(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.env.insert(name.into(), value.into());
        self
    }

    /// Asks for variables, as [`env`](Self::env) does.
    #[must_use]
    pub fn envs(
        mut self,
        variables: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Self {
        self.env.extend(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into())),
        );
        self
    }

    /// The directory to run in; the caller's without one. Relative paths resolve against the
    /// caller's directory.
    #[must_use]
    pub fn working_dir(mut self, directory: impl AsRef<OsStr>) -> Self {
        self.working_dir = Some(PathBuf::from(directory.as_ref()));
        self
    }

    /// How long the command may run. Without one, `run` uses `runtime.default_timeout_secs` and
    /// `spawn` sets no deadline. Zero is refused; any other duration works.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Where stdin comes from.
    #[must_use]
    pub fn stdin(mut self, stdin: Stdin) -> Self {
        self.stdin = stdin;
        self
    }

    /// Gives `bytes` on stdin.
    #[must_use]
    pub fn stdin_bytes(self, bytes: impl Into<Vec<u8>>) -> Self {
        self.stdin(Stdin::Bytes(bytes.into()))
    }

    /// Names the tool this command belongs to: backends choose an image by it, logs show it.
    #[must_use]
    pub fn tool(mut self, tool: impl Into<String>) -> Self {
        self.tool = Some(tool.into());
        self
    }

    /// How many bytes of each output stream are kept, instead of `runtime.max_output_bytes`.
    #[must_use]
    pub fn max_output_bytes(mut self, bytes: usize) -> Self {
        self.max_output_bytes = Some(bytes);
        self
    }

    /// The directory that was asked for.
    pub fn requested_working_dir(&self) -> Option<&Path> {
        self.working_dir.as_deref()
    }

    /// What is to be run.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    /// The same request for another command, for adapters that wrap one.
    #[must_use]
    pub fn with_invocation(mut self, invocation: Invocation) -> Self {
        self.invocation = invocation;
        self
    }

    /// The timeout that was asked for.
    pub fn requested_timeout(&self) -> Option<Duration> {
        self.timeout
    }

    /// Where stdin is to come from.
    pub fn requested_stdin(&self) -> &Stdin {
        &self.stdin
    }
}

impl fmt::Debug for ExecutionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut names: Vec<_> = self.env.keys().collect();
        names.sort_unstable();
        f.debug_struct("ExecutionRequest")
            .field("invocation", &self.invocation)
            .field("env", &names)
            .field("working_dir", &self.working_dir)
            .field("timeout", &self.timeout)
            .field("stdin", &self.stdin)
            .field("tool", &self.tool)
            .field("max_output_bytes", &self.max_output_bytes)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_arguments_mean_a_shell_line() {
        let request = ExecutionRequest::from_call(
            "ls -la",
            &[],
            &HashMap::new(),
            None,
            Duration::from_secs(1),
        );
        assert!(matches!(request.invocation(), Invocation::Shell { line } if line == "ls -la"));
    }

    #[test]
    fn debug_shows_names_and_no_values() {
        let request = ExecutionRequest::program("x").env("LANG", "swordfish");
        let debug = format!("{request:?}");
        assert!(
            debug.contains("LANG") && !debug.contains("swordfish"),
            "{debug}"
        );
    }

    #[test]
    fn commands_display_as_typed() {
        let request = ExecutionRequest::program("echo").args(["a b", "c'd", ""]);
        assert_eq!(request.invocation().to_string(), r"echo 'a b' 'c'\''d' ''");
    }
}
