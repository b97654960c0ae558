//! C1: what is run, and with which arguments.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text};

pub(super) const CLAUSE: Clause = Clause {
    number: 1,
    module: "c01_invocation",
    title: "Invocation",
    rule: "With arguments, the command is a program and gets exactly those; no shell is anywhere. \
           Without any, the published `execute` takes the command as a line for the backend's \
           shell; the builder says which explicitly. A backend without a shell splits a line into \
           words and refuses shell operators with an error that says so. An empty command and a NUL \
           byte are refused.",
    why: "An agent that passes a file name as an argument must not have it read as code, and a \
          command must not mean one thing on one backend and another on the next.",
    trials: trials! {
        arguments_arrive_as_given: "Plain arguments reach the program in order.";
        empty_arguments_are_kept: "An empty argument is an argument.";
        white_space_is_kept: "Blanks and tabs inside and around an argument belong to it.";
        quotes_and_backslashes_are_kept: "No layer in between takes quotes off.";
        expansions_stay_text: "Globs, variables and substitutions are text where no shell is.";
        newlines_are_kept: "An argument may have several lines.";
        characters_beyond_ascii_are_kept: "Arguments are UTF-8 from end to end.";
        options_are_arguments: "A hyphen means something to the program only.";
        operators_are_arguments: "A semicolon or a pipe between arguments starts nothing.";
        a_thousand_arguments_arrive: "There is no small limit to their number.";
        a_long_argument_arrives: "A hundred kilobytes in one argument are legal.";
        a_line_with_arguments_is_a_missing_program: "`ls; echo $HOME` with an argument names a program that is not there.";
        a_line_as_a_program_is_a_missing_program: "The builder's `program` never reaches a shell, even without arguments.";
        execute_runs_a_program_with_arguments: "The published method keeps the same rule.";
        execute_runs_a_line_without_arguments: "The published method reads a lone command as a line.", needs [Shell];
        a_line_is_run_by_a_shell: "Pipes, variables, substitutions and sequences work in a line.", needs [Shell];
        an_argument_added_to_a_line_is_one_word: "The builder quotes what is added to a line.", needs [Shell];
        a_quoted_line_means_its_words: "A line of quoted words means those words, shell or not.";
        operators_are_refused_without_a_shell: "Where no shell is, an operator is an error and not an argument.", needs [NoShell];
        an_empty_command_is_refused: "Nothing to run is a mistake of the caller.";
        a_nul_byte_is_refused: "What no system call can carry is refused before one cuts it short.";
    },
};

async fn arrive(stage: &Stage, args: &[&str]) -> Result<(), Halt> {
    let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
    let output = stage.run(Task::PrintArgs(args.clone())).await?;
    check!(output.success(), "{output:?}");
    check_eq!(printed_args(text(&output.stdout)?), args);
    check!(output.stderr.is_empty(), "{output:?}");
    Ok(())
}

fn printed_args(text: &str) -> Vec<String> {
    let mut args: Vec<_> = text.split('\0').map(str::to_owned).collect();
    // What follows the last NUL byte.
    args.pop();
    args
}

async fn arguments_arrive_as_given(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &["one", "two", "three"]).await
}

async fn empty_arguments_are_kept(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &["", "a", "", "", "b", ""]).await
}

async fn white_space_is_kept(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &[" ", "  two  blanks  ", "\ttab\t", "a b"]).await
}

async fn quotes_and_backslashes_are_kept(stage: &Stage) -> Result<(), Halt> {
    arrive(
        stage,
        &[
            "'",
            "\"",
            r"\",
            r"\\",
            r#"a "b" 'c' \d"#,
            "it's",
            r"C:\dir\",
            "%s%d",
        ],
    )
    .await
}

async fn expansions_stay_text(stage: &Stage) -> Result<(), Halt> {
    arrive(
        stage,
        &[
            "*", "?", "[a-z]", "~", "$HOME", "${HOME}", "$(id)", "`id`", "{a,b}", "!!", "#",
        ],
    )
    .await
}

async fn newlines_are_kept(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &["\n", "a\nb", "\r\n", "ends\n", "\nstarts"]).await
}

async fn characters_beyond_ascii_are_kept(stage: &Stage) -> Result<(), Halt> {
    arrive(
        stage,
        &["grüße", "日本語", "🦀", "e\u{301}", "\u{202e}x", "\u{feff}"],
    )
    .await
}

async fn options_are_arguments(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &["--", "-", "-n", "--help", "-e", "--version=1"]).await
}

async fn operators_are_arguments(stage: &Stage) -> Result<(), Halt> {
    arrive(
        stage,
        &["a", ";", "|", "&", "&&", ">", "file", "<", "2>&1", "(", ")"],
    )
    .await?;
    check!(
        !stage.directory().join("file").exists(),
        "an argument was read as a redirection"
    );
    Ok(())
}

async fn a_thousand_arguments_arrive(stage: &Stage) -> Result<(), Halt> {
    let args: Vec<_> = (0..1000)
        .map(|number| format!("argument {number}"))
        .collect();
    arrive(stage, &args.iter().map(String::as_str).collect::<Vec<_>>()).await
}

async fn a_long_argument_arrives(stage: &Stage) -> Result<(), Halt> {
    arrive(stage, &["before", &"x".repeat(100 * 1024), "after"]).await
}

async fn a_line_with_arguments_is_a_missing_program(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let result = execute(&*adapter, "ls; echo $HOME", &["x"], stage.directory()).await;
    is_missing_program(result.map(drop), "ls; echo $HOME")
}

async fn a_line_as_a_program_is_a_missing_program(stage: &Stage) -> Result<(), Halt> {
    let request = ExecutionRequest::program("echo one; echo two").working_dir(stage.directory());
    let result = stage.adapter().await?.run(request).await;
    is_missing_program(result.map(drop), "echo one; echo two")
}

fn is_missing_program(result: prx_runtime_core::Result<()>, program: &str) -> Result<(), Halt> {
    let Err(error) = result else {
        return Err(Halt::failed("something was run"));
    };
    check_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    check!(
        error.to_string().contains(program),
        "the error does not name the program: {error}"
    );
    Ok(())
}

async fn execute(
    adapter: &dyn RuntimeAdapter,
    command: &str,
    args: &[&str],
    directory: &Path,
) -> prx_runtime_core::Result<prx_runtime_core::ExecutionOutput> {
    let args: Vec<_> = args.iter().map(|arg| (*arg).to_owned()).collect();
    adapter
        .execute(
            command,
            &args,
            &HashMap::new(),
            Some(directory),
            Duration::from_secs(60),
        )
        .await
}

async fn execute_runs_a_program_with_arguments(stage: &Stage) -> Result<(), Halt> {
    let args = vec!["$HOME".to_owned(), "a; b".to_owned()];
    let call = stage.call(Task::PrintArgs(args.clone()))?;
    let adapter = stage.adapter().await?;
    let output = call
        .execute(&*adapter, Some(stage.directory()), stage.patience())
        .await?;
    check_eq!(printed_args(text(&output.stdout)?), args);
    Ok(())
}

async fn execute_runs_a_line_without_arguments(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let output = execute(
        &*adapter,
        "echo one; echo two | cat",
        &[],
        stage.directory(),
    )
    .await?;
    check_eq!(text(&output.stdout)?, "one\ntwo\n");
    Ok(())
}

async fn a_line_is_run_by_a_shell(stage: &Stage) -> Result<(), Halt> {
    let line =
        "word=two; echo one > file; cat file - < file | tr a-z A-Z; echo \"$word\" $(echo three)";
    let request = ExecutionRequest::shell(line).working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(text(&output.stdout)?, "ONE\nONE\ntwo three\n");
    Ok(())
}

async fn an_argument_added_to_a_line_is_one_word(stage: &Stage) -> Result<(), Halt> {
    let word = "a b; echo $HOME 'c' > file";
    let request = ExecutionRequest::shell(r"printf '%s\n'")
        .arg(word)
        .working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(text(&output.stdout)?, format!("{word}\n"));
    check!(
        !stage.directory().join("file").exists(),
        "the word was read as a redirection"
    );
    Ok(())
}

async fn a_quoted_line_means_its_words(stage: &Stage) -> Result<(), Halt> {
    let args = vec!["one".to_owned(), "two words".to_owned(), "it's".to_owned()];
    let line = stage
        .spell_bare(Task::PrintArgs(args.clone()))?
        .invocation()
        .to_string();
    let request = ExecutionRequest::shell(line).working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(printed_args(text(&output.stdout)?), args);
    Ok(())
}

async fn operators_are_refused_without_a_shell(stage: &Stage) -> Result<(), Halt> {
    let line = stage
        .spell_bare(Task::PrintArgs(vec!["a".to_owned()]))?
        .invocation()
        .to_string();
    let adapter = stage.adapter().await?;
    for operator in ["|", ";", "&&", "||", "&", ">", "<", ">>", "$(", "`"] {
        let request = ExecutionRequest::shell(format!("{line} {operator} b"));
        match adapter.run(request.working_dir(stage.directory())).await {
            Ok(output) => {
                return Err(Halt::failed(format_args!(
                    "`{operator}` was run: {output:?}"
                )));
            }
            Err(error) => {
                let said = error.to_string();
                check!(
                    said.contains("shell"),
                    "`{operator}`: does not say what is missing: {said}"
                );
            }
        }
    }
    Ok(())
}

async fn an_empty_command_is_refused(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let directory = stage.directory();
    for request in [
        ExecutionRequest::program(""),
        ExecutionRequest::program("").arg("x"),
        ExecutionRequest::program("  "),
        ExecutionRequest::shell(""),
        ExecutionRequest::shell(" \t\n"),
    ] {
        let shown = format!("{:?}", request.invocation());
        is_refused(
            &shown,
            adapter.run(request.working_dir(directory)).await.map(drop),
        )?;
    }
    is_refused(
        "execute",
        execute(&*adapter, "", &[], directory).await.map(drop),
    )?;
    is_refused(
        "execute with argument",
        execute(&*adapter, "", &["x"], directory).await.map(drop),
    )
}

async fn a_nul_byte_is_refused(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    for request in [
        ExecutionRequest::program("a\0b"),
        ExecutionRequest::program("a").arg("x\0y"),
        ExecutionRequest::shell("echo a\0b"),
    ] {
        let shown = format!("{:?}", request.invocation());
        is_refused(
            &shown,
            adapter
                .run(request.working_dir(stage.directory()))
                .await
                .map(drop),
        )?;
    }
    Ok(())
}

fn is_refused(what: &str, result: prx_runtime_core::Result<()>) -> Result<(), Halt> {
    let Err(error) = result else {
        return Err(Halt::failed(format_args!("{what} was run")));
    };
    check_eq!(error.kind(), ErrorKind::InvalidRequest, "{what}: {error}");
    Ok(())
}
