//! QuickJS: the command `qjs` of its sources, as `.ci/setup` compiles it.

use super::{Interpreter, Program, assert_raised, assert_said, assert_ten_mebibytes, outside};

pub(super) const PROGRAM: Program = Program {
    name: "quickjs",
    variable: "PRX_QUICKJS_WASM",
    trials: &[
        ("a_script_of_the_workspace", a_script_of_the_workspace),
        ("text_on_stdin", text_on_stdin),
        ("an_exception", an_exception),
        ("an_exit_code", an_exit_code),
        ("unicode", unicode),
        ("ten_mebibytes_of_output", ten_mebibytes_of_output),
        ("files_and_nothing_else", files_and_nothing_else),
        ("timers", timers),
    ],
};

const SCRIPT: &str = "script.mjs";

fn a_script_of_the_workspace(js: &Interpreter) {
    let script = "console.log(JSON.stringify(scriptArgs), 2n ** 64n);\n";
    let output = js.script(SCRIPT, script);
    assert_said(
        &output,
        0,
        "[\"script.mjs\",\"an argument\"] 18446744073709551616\n",
    );
}

fn text_on_stdin(js: &Interpreter) {
    let script = "console.log(std.in.readAsString().trim().split(' ').map(Number).join('+'))";
    let output = js.on_stdin(&["--std", "-e", script], "4 2\n");
    assert_said(&output, 0, "4+2\n");
}

fn an_exception(js: &Interpreter) {
    let script = "console.log('before');\nthrow new RangeError('of the script');\n";
    let output = js.script(SCRIPT, script);
    assert_raised(
        &output,
        "before\n",
        &["RangeError: of the script", "script.mjs:2"],
    );
}

fn an_exit_code(js: &Interpreter) {
    let script = "import * as std from 'qjs:std';\nstd.exit(3);\n";
    assert_said(&js.script(SCRIPT, script), 3, "");
}

fn unicode(js: &Interpreter) {
    let text = "ñandú, 日本語, 🦀";
    let output = js.script(SCRIPT, &format!("console.log('{text}');\n"));
    assert_said(&output, 0, &format!("{text}\n"));
}

fn ten_mebibytes_of_output(js: &Interpreter) {
    let script = "const line = 'x'.repeat(1023);
for (let i = 0; i < 10 * 1024; i++) console.log(line);
";
    assert_ten_mebibytes(&js.script(SCRIPT, script));
}

fn files_and_nothing_else(js: &Interpreter) {
    let script = format!(
        "import * as std from 'qjs:std';
import * as os from 'qjs:os';
std.writeFile('made', 'by quickjs');
const [names] = os.readdir('/workspace');
console.log(names.filter(name => !name.startsWith('.')).sort().join());
console.log(std.open({:?}, 'r'));
",
        outside()
    );
    let output = js.script(SCRIPT, &script);
    assert_said(&output, 0, "made,script.mjs\nnull\n");
}

fn timers(js: &Interpreter) {
    let script = "import * as os from 'qjs:os';
os.setTimeout(() => console.log('second'), 40);
os.setTimeout(() => console.log('first'), 10);
";
    assert_said(&js.script(SCRIPT, script), 0, "first\nsecond\n");
}
