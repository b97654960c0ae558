//! The host's stdin is the host's, unless it gives it away.

use std::io::{Read, Write};
use std::process::Stdio;

use crate::stage::{outcome, prx_run, start};

#[test]
fn given_away_it_is_the_commands() {
    let mut child = start(prx_run(["--stdin", "--", "cat"]).stdin(Stdio::piped()));
    let text: String = (0..100_000).map(|number| format!("{number}\n")).collect();
    let mut stdin = child.stdin.take().unwrap();
    let mut said = String::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            stdin.write_all(text.as_bytes()).unwrap();
            drop(stdin);
        });
        child
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut said)
            .unwrap();
    });
    assert!(said == text);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn an_open_pipe_that_speaks_a_protocol_is_neither_waited_for_nor_read() {
    let (mut read_end, mut write_end) = std::io::pipe().unwrap();
    let message = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    write_end.write_all(message).unwrap();
    // It sees the end of its stdin at once, though ours stays open.
    let command = &mut prx_run(["--", "cat; echo done"]);
    let outcome = outcome(command.stdin(read_end.try_clone().unwrap()));
    assert_eq!(outcome.stdout, "done\n");
    assert_eq!(outcome.code, Some(0));
    drop(write_end);
    let mut left = Vec::new();
    read_end.read_to_end(&mut left).unwrap();
    assert_eq!(left, message);
}
