//! Real programs, as large as they come: an interpreter of Python and one of JavaScript.
//!
//! They are data and no part of the tree. A variable of the environment says where each is; without
//! it the trials are listed as ignored, unless `PRX_REQUIRE_BACKENDS` asks for the engine.

mod cpython;
mod quickjs;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use libtest_mimic::{Arguments, Failed, Trial};
use prx_runtime_core::config::{ToolConfig, ToolKind};
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, Termination};

use crate::Place;
use crate::driver::config_path;

const TIMEOUT: Duration = Duration::from_secs(120);
/// The name of the tool that the program is.
const TOOL: &str = "interpreter";
/// Kept of each stream, in bytes.
const KEPT: usize = 16 << 20;

/// A program that interprets scripts.
struct Program {
    name: &'static str,
    /// The variable that says where it is.
    variable: &'static str,
    trials: &'static [(&'static str, Check)],
}

/// What is tried.
type Check = fn(&Interpreter);

/// A program, where it lies, and where it runs.
struct Interpreter {
    module: PathBuf,
    place: fn() -> Place,
}

/// Runs the trials of all programs on the engine called `engine`, in places that `place` makes.
pub fn programs(engine: &str, place: fn() -> Place) -> ExitCode {
    let arguments = Arguments::from_args();
    let required = prx_fixtures::is_required(engine);
    let trials = [&cpython::PROGRAM, &quickjs::PROGRAM]
        .into_iter()
        .flat_map(|program| program.trials(place, required))
        .collect();
    libtest_mimic::run(&arguments, trials).exit_code()
}

impl Program {
    fn trials(&self, place: fn() -> Place, required: bool) -> Vec<Trial> {
        let Self { name, variable, .. } = *self;
        let module = std::env::var_os(variable).map(PathBuf::from);
        let ignored = module.is_none() && !required;
        let trial = |&(trial, check): &(&str, Check)| {
            let module = module.clone();
            let reason = if ignored {
                format!("{name}::{trial} ({variable} is not set)")
            } else {
                format!("{name}::{trial}")
            };
            Trial::test(reason, move || {
                let module = module.ok_or(format!("{variable} is not set"))?;
                check(&Interpreter { module, place });
                Ok::<(), Failed>(())
            })
            .with_ignored_flag(ignored)
        };
        self.trials.iter().map(trial).collect()
    }
}

impl Interpreter {
    /// Runs a script of the workspace, with one argument.
    fn script(&self, name: &str, script: &str) -> ExecutionOutput {
        let place = (self.place)();
        std::fs::write(place.workspace().join(name), script).expect("a script");
        self.run(place, &[name, "an argument"], None)
    }

    /// Runs the program with something on its standard input.
    fn on_stdin(&self, args: &[&str], stdin: &str) -> ExecutionOutput {
        self.run((self.place)(), args, Some(stdin))
    }

    fn run(&self, mut place: Place, args: &[&str], stdin: Option<&str>) -> ExecutionOutput {
        let mut tool = ToolConfig::new(ToolKind::Wasm);
        tool.module = Some(config_path(&self.module));
        let config = &mut place.config;
        config.tools.custom.insert(TOOL.to_owned(), tool);
        config.runtime.wasm.timeout_secs = TIMEOUT.as_secs();
        config.runtime.max_output_bytes = KEPT;
        let request = ExecutionRequest::program(TOOL)
            .args(args.iter().copied())
            .working_dir(place.workspace())
            .timeout(TIMEOUT);
        let request = match stdin {
            Some(text) => request.stdin_bytes(text.to_owned()),
            None => request,
        };
        let tokio = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .expect("a tokio runtime");
        tokio
            .block_on(place.runtime().run(request))
            .expect("the program runs")
    }
}

#[track_caller]
fn assert_said(output: &ExecutionOutput, code: i32, stdout: &str) {
    let account = output.stderr.to_text();
    assert_eq!(output.termination, Termination::Exited, "{account}");
    assert_eq!(output.exit_code, code, "{account}");
    assert_eq!(output.stdout.to_text(), stdout);
}

/// That a script ended with an exception: what it had said by then, and what it is told of.
#[track_caller]
fn assert_raised(output: &ExecutionOutput, stdout: &str, told: &[&str]) {
    assert_said(output, 1, stdout);
    let account = output.stderr.to_text();
    for part in told {
        assert!(account.contains(part), "{account}");
    }
}

/// That ten mebibytes came, and all were kept.
#[track_caller]
fn assert_ten_mebibytes(output: &ExecutionOutput) {
    let bytes = 10 << 20;
    assert_eq!(output.exit_code, 0, "{}", output.stderr.to_text());
    assert_eq!(output.stdout.total_bytes(), bytes);
    assert_eq!(output.stdout.as_bytes().len() as u64, bytes);
}

/// The file of the host that a script must not see.
fn outside() -> &'static Path {
    Path::new("/etc/passwd")
}
