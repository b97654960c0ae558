//! With arguments a command is a program, without any it is a line.

#![cfg(all(unix, feature = "native"))]

use std::collections::HashMap;
use std::time::Duration;

use prx_runtime::config::Config;
use prx_runtime::{ErrorKind, ExecutionOutput, Result, create_runtime};

async fn execute(command: &str, args: &[&str]) -> Result<ExecutionOutput> {
    let config = Config::from_toml_str("[runtime]\nbackend = \"native\"", "test.toml")?;
    let args: Vec<String> = args.iter().copied().map(str::to_owned).collect();
    let timeout = Duration::from_secs(60);
    create_runtime(&config)
        .await?
        .execute(command, &args, &HashMap::new(), None, timeout)
        .await
}

#[tokio::test]
async fn both_ways_to_say_the_same_give_the_same() {
    let argv = execute("ls", &["-la"]).await.unwrap();
    let line = execute("ls -la", &[]).await.unwrap();
    assert!(argv.success() && !argv.stdout.is_empty());
    assert_eq!(argv.stdout, line.stdout);
    assert_eq!(argv.stderr, line.stderr);
    assert_eq!(argv.exit_code, line.exit_code);
}

#[tokio::test]
async fn a_line_given_with_arguments_is_a_missing_program() {
    let error = execute("ls; echo $HOME", &["x"]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    let message = error.to_string();
    assert!(message.contains("`ls; echo $HOME`"), "{message}");
    assert!(message.contains("not a shell line"), "{message}");
}

#[tokio::test]
async fn arguments_reach_the_program_as_they_are() {
    let args = ["$HOME", "a b", "*", "", "--", "'\"\\", "\n", "日本"];
    let words = [&["%s|"][..], &args].concat();
    let output = execute("printf", &words).await.unwrap();
    let expected: String = args.iter().map(|arg| format!("{arg}|")).collect();
    assert_eq!(output.stdout.to_string(), expected);
}
