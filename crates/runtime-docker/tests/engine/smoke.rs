//! The simplest things.

use crate::support::{need_engine, runtime, sh};

#[tokio::test]
async fn a_line_prints() {
    need_engine!();
    let output = sh(&runtime(""), "echo hello; echo oops >&2; exit 3").await;
    assert_eq!(output.stdout.as_bytes(), b"hello\n");
    assert_eq!(output.stderr.as_bytes(), b"oops\n");
    assert_eq!(output.exit_code, 3);
}
