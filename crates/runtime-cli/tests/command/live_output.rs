//! Output is passed on while the command runs.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::stage::{prx_run, start};

#[test]
fn a_prompt_without_a_newline_arrives_before_its_answer_is_given() {
    let line = "printf 'name? '; printf 'on stderr? ' >&2; read -r name; echo \"hello $name\"";
    let mut child = start(prx_run(["--stdin", "--", line]).stdin(Stdio::piped()));
    let mut stdout = child.stdout.take().unwrap();
    let mut prompt = [0; 6];
    stdout.read_exact(&mut prompt).unwrap();
    assert_eq!(&prompt, b"name? ");
    let mut prompt = [0; 11];
    child
        .stderr
        .as_mut()
        .unwrap()
        .read_exact(&mut prompt)
        .unwrap();
    assert_eq!(&prompt, b"on stderr? ");
    // The command ends only once it has this.
    child.stdin.take().unwrap().write_all(b"Ana\n").unwrap();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "hello Ana\n");
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
