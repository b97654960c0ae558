//! The one door through which xtask starts processes.
//!
//! Every command line is printed before it runs, so that what a task did can be repeated by hand.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use anyhow::{Context as _, Result, bail};

/// A command line about to run.
#[derive(Debug, Clone)]
pub(crate) struct Cmd {
    program: OsString,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    dir: PathBuf,
    quiet: bool,
}

impl Cmd {
    /// `program`, run in `dir`.
    pub(crate) fn new(program: impl Into<OsString>, dir: &Path) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            dir: dir.to_owned(),
            quiet: false,
        }
    }

    /// The cargo that runs this task, or the one on `PATH`.
    pub(crate) fn cargo(dir: &Path) -> Self {
        Self::new(
            std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()),
            dir,
        )
    }

    /// Adds one argument.
    pub(crate) fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    pub(crate) fn args<I, S>(mut self, args: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<OsString>,
    {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Sets one environment variable.
    pub(crate) fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Does not print the command line: for questions, which change nothing.
    pub(crate) fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Runs it with our streams; a status other than success is an error.
    pub(crate) fn run(&self) -> Result<()> {
        self.check(self.status()?)
    }

    /// Runs it with our streams and returns how it ended.
    pub(crate) fn status(&self) -> Result<ExitStatus> {
        self.command().status().with_context(|| self.not_started())
    }

    /// Runs it and returns its standard output; its standard error is ours.
    pub(crate) fn read(&self) -> Result<String> {
        let output = self
            .command()
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| self.not_started())?;
        self.check(output.status)?;
        String::from_utf8(output.stdout).with_context(|| format!("`{self}` printed no UTF-8"))
    }

    /// Whether it can be started and succeeds; nothing is shown.
    pub(crate) fn succeeds(&self) -> bool {
        self.command()
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Starts it without input, with its output going into these files.
    pub(crate) fn start(&self, stdout: File, stderr: File) -> Result<Child> {
        self.command()
            .stdin(Stdio::null())
            .stdout(stdout)
            .stderr(stderr)
            .spawn()
            .with_context(|| self.not_started())
    }

    /// Runs it, copies each line of its standard output to ours as it comes, and shows it to `see`.
    pub(crate) fn stream(&self, mut see: impl FnMut(&str)) -> Result<ExitStatus> {
        let mut child = self
            .command()
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| self.not_started())?;
        let stdout = child
            .stdout
            .take()
            .context("the child has no standard output")?;
        let mut lines = BufReader::new(stdout);
        let mut ours = std::io::stdout().lock();
        let mut line = Vec::new();
        // Bytes, not `lines()`: what a test prints need not be UTF-8.
        while lines.read_until(b'\n', &mut line)? > 0 {
            ours.write_all(&line)?;
            ours.flush()?;
            see(String::from_utf8_lossy(&line).trim_end());
            line.clear();
        }
        Ok(child.wait()?)
    }

    #[expect(clippy::disallowed_methods, reason = "this is the one door for xtask")]
    fn command(&self) -> Command {
        if !self.quiet {
            // Standard error, because the standard output of some tasks is read by machines.
            eprintln!("$ {self}");
        }
        let mut command = Command::new(&self.program);
        command.args(&self.args).current_dir(&self.dir);
        // `cargo xtask` describes the package xtask to us; what we start is not that package.
        for (name, _) in std::env::vars_os() {
            if describes_a_package(&name) {
                command.env_remove(name);
            }
        }
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        command
    }

    fn check(&self, status: ExitStatus) -> Result<()> {
        if !status.success() {
            bail!("`{self}` failed: {status}");
        }
        Ok(())
    }

    fn not_started(&self) -> String {
        format!("`{self}` could not be started")
    }
}

fn describes_a_package(name: &OsStr) -> bool {
    name.to_str()
        .is_some_and(|name| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
}

impl fmt::Display for Cmd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.env {
            write!(f, "{}={} ", name.display(), quoted(value))?;
        }
        let program = Path::new(&self.program);
        let name = program.file_stem().unwrap_or(program.as_os_str());
        f.write_str(&quoted(name))?;
        for arg in &self.args {
            write!(f, " {}", quoted(arg))?;
        }
        Ok(())
    }
}

/// The word as a shell would have to be given it.
fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_line_is_shown_as_one_would_type_it() {
        let cmd = Cmd::new("/usr/bin/cargo", Path::new("."))
            .args(["test", "-p", "a b", "it's"])
            .env("CI", "true");
        assert_eq!(cmd.to_string(), r"CI=true cargo test -p 'a b' 'it'\''s'");
    }

    #[test]
    fn what_cannot_start_is_an_error_that_names_it() {
        let error = Cmd::new("no-such-program", Path::new("."))
            .run()
            .unwrap_err();
        assert!(
            format!("{error:#}").contains("no-such-program"),
            "{error:#}"
        );
    }

    #[test]
    fn a_task_does_not_pass_on_what_cargo_said_about_xtask() {
        assert!(describes_a_package(OsStr::new("CARGO_PKG_NAME")));
        assert!(!describes_a_package(OsStr::new("CARGO_TARGET_DIR")));
    }
}
