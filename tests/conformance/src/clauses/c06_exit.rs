//! C6: how the end of a command is told.

use std::path::{Path, PathBuf};

use prx_runtime_core::{Error, ErrorKind, ExecutionRequest, Termination};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text};

pub(super) const CLAUSE: Clause = Clause {
    number: 6,
    module: "c06_exit",
    title: "Exit",
    rule: "The command's own code. Death by signal n is `Signaled(n)` and 128 + n. A timeout is \
           124, want of memory 137, a trap 134. A program that is not found or cannot be executed \
           is an error that says what was searched: the command did not run. A shell reports 126 \
           and 127 of its own.",
    why: "An agent decides by the code what to do next. Death by a signal that becomes 0 or -1 is a \
          failure taken for a success, and a missing program that becomes an exit code is a mistake \
          of the caller taken for one of the command.",
    trials: trials! {
        every_code_is_the_commands_own: "Codes pass unchanged, also those that look like something else.";
        code_zero_is_success: "A command that ended by itself with 0 has succeeded.";
        words_on_stderr_are_no_failure: "Only the code says how it went.";
        death_by_kill_is_a_signal: "SIGKILL is told as such.", needs [Signals];
        death_by_term_is_a_signal: "SIGTERM that was not ours is told as such.", needs [Signals];
        death_by_a_fault_is_a_signal: "A segmentation fault is told as such.", needs [Signals];
        code_137_is_no_signal: "A command may end with 137 by itself, and is not taken for killed.", needs [Signals, ExactExit];
        code_124_is_no_timeout: "A command may end with 124 by itself, and is not taken for late.";
        a_missing_program_is_an_error: "A name that is nowhere did not run, and the error names it.";
        a_missing_path_is_an_error: "A path that leads nowhere did not run, and the error names it.";
        a_file_without_the_right_is_an_error: "What may not be executed did not run.", needs [HostPrograms];
        a_directory_is_no_program: "A directory did not run.", needs [HostPrograms];
        a_script_without_an_interpreter_line_is_an_error: "No shell guesses what a text file means.", needs [HostPrograms];
        a_script_with_a_missing_interpreter_is_an_error: "The script is there, and cannot run.", needs [HostPrograms];
        a_script_runs_by_its_interpreter: "What names an interpreter that is there is a program.", needs [HostPrograms];
        a_shell_reports_127_itself: "In a line a missing program is the shell's affair.", needs [Shell];
        a_shell_reports_126_itself: "In a line a file without the right is the shell's affair.", needs [Shell, HostPrograms];
        a_line_has_the_code_of_its_last_command: "The code of a line is what a shell says.", needs [Shell];
        an_error_leaves_the_adapter_whole: "After a failure the next command runs.";
        an_output_says_whose_it_is: "Backend and id of the execution are part of it.";
        a_live_execution_tells_the_same: "Codes and errors are the same for what is started live.", needs [Sessions];
    },
};

async fn exits_with(stage: &Stage, code: u8) -> Result<(), Halt> {
    let output = stage.run(Task::Exit(code)).await?;
    check_eq!(output.exit_code, i32::from(code), "{output:?}");
    check_eq!(output.termination, Termination::Exited);
    check_eq!(output.success(), code == 0);
    Ok(())
}

async fn every_code_is_the_commands_own(stage: &Stage) -> Result<(), Halt> {
    for code in [1, 2, 63, 77, 100, 125, 126, 127, 128, 255] {
        exits_with(stage, code).await?;
    }
    Ok(())
}

async fn code_zero_is_success(stage: &Stage) -> Result<(), Halt> {
    exits_with(stage, 0).await
}

async fn words_on_stderr_are_no_failure(stage: &Stage) -> Result<(), Halt> {
    let stderr = b"fatal error: killed\n".to_vec();
    let output = stage
        .run(Task::Print {
            stdout: Vec::new(),
            stderr,
        })
        .await?;
    check!(output.success(), "{output:?}");
    Ok(())
}

async fn dies_of(stage: &Stage, signal: i32) -> Result<(), Halt> {
    let output = stage.run(Task::KillItself(signal)).await?;
    check_eq!(output.termination, Termination::Signaled(signal));
    check_eq!(output.exit_code, 128 + signal);
    check!(!output.success(), "{output:?}");
    Ok(())
}

async fn death_by_kill_is_a_signal(stage: &Stage) -> Result<(), Halt> {
    dies_of(stage, 9).await
}

async fn death_by_term_is_a_signal(stage: &Stage) -> Result<(), Halt> {
    dies_of(stage, 15).await
}

async fn death_by_a_fault_is_a_signal(stage: &Stage) -> Result<(), Halt> {
    dies_of(stage, 11).await
}

async fn code_137_is_no_signal(stage: &Stage) -> Result<(), Halt> {
    for code in [129, 130, 134, 137, 143] {
        exits_with(stage, code).await?;
    }
    Ok(())
}

async fn code_124_is_no_timeout(stage: &Stage) -> Result<(), Halt> {
    exits_with(stage, 124).await
}

/// Why the program did not run.
async fn error_of(stage: &Stage, program: &str) -> Result<Error, Halt> {
    let request = ExecutionRequest::program(program)
        .arg("x")
        .working_dir(stage.directory());
    match stage.adapter().await?.run(request).await {
        Ok(output) => Err(Halt::failed(format_args!(
            "`{program}` was run: {output:?}"
        ))),
        Err(error) => {
            check!(
                error.to_string().contains(program),
                "the error does not name it: {error}"
            );
            Ok(error)
        }
    }
}

async fn a_missing_program_is_an_error(stage: &Stage) -> Result<(), Halt> {
    check_eq!(
        error_of(stage, "no-such-program").await?.kind(),
        ErrorKind::ProgramNotFound
    );
    Ok(())
}

async fn a_missing_path_is_an_error(stage: &Stage) -> Result<(), Halt> {
    let error = error_of(stage, "/no/such/program").await?;
    check_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
    Ok(())
}

/// A file in the working directory, as the guest sees it.
fn file(stage: &Stage, text: &str, executable: bool) -> Result<PathBuf, Halt> {
    let file = stage.directory().join("program");
    std::fs::write(&file, text)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = if executable { 0o755 } else { 0o644 };
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode))?;
    }
    #[cfg(not(unix))]
    let _ = executable;
    Ok(stage.driver().guest_path(stage.directory()).join("program"))
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

async fn a_file_without_the_right_is_an_error(stage: &Stage) -> Result<(), Halt> {
    let file = file(stage, "#!/bin/sh\necho run\n", false)?;
    let error = error_of(stage, &shown(&file)).await?;
    check_eq!(error.kind(), ErrorKind::NotExecutable, "{error}");
    Ok(())
}

async fn a_directory_is_no_program(stage: &Stage) -> Result<(), Halt> {
    let directory = stage.driver().guest_path(stage.directory());
    let error = error_of(stage, &shown(&directory)).await?;
    check_eq!(error.kind(), ErrorKind::NotExecutable, "{error}");
    Ok(())
}

async fn a_script_without_an_interpreter_line_is_an_error(stage: &Stage) -> Result<(), Halt> {
    let file = file(stage, "echo run\n", true)?;
    let error = error_of(stage, &shown(&file)).await?;
    check_eq!(error.kind(), ErrorKind::NotExecutable, "{error}");
    Ok(())
}

async fn a_script_with_a_missing_interpreter_is_an_error(stage: &Stage) -> Result<(), Halt> {
    let file = file(stage, "#!/no/such/interpreter\necho run\n", true)?;
    let error = error_of(stage, &shown(&file)).await?;
    check!(
        matches!(
            error.kind(),
            ErrorKind::NotExecutable | ErrorKind::ProgramNotFound
        ),
        "{}: {error}",
        error.kind()
    );
    Ok(())
}

async fn a_script_runs_by_its_interpreter(stage: &Stage) -> Result<(), Halt> {
    let file = file(stage, "#!/bin/sh\necho \"run with $1\"\n", true)?;
    let request = ExecutionRequest::program(shown(&file))
        .arg("x")
        .working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(text(&output.stdout)?, "run with x\n", "{output:?}");
    Ok(())
}

async fn line_ends_with(stage: &Stage, line: &str, code: i32) -> Result<(), Halt> {
    let request = ExecutionRequest::shell(line).working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(output.exit_code, code, "{output:?}");
    check_eq!(output.termination, Termination::Exited);
    Ok(())
}

async fn a_shell_reports_127_itself(stage: &Stage) -> Result<(), Halt> {
    line_ends_with(stage, "no-such-program", 127).await
}

async fn a_shell_reports_126_itself(stage: &Stage) -> Result<(), Halt> {
    file(stage, "#!/bin/sh\necho run\n", false)?;
    line_ends_with(stage, "./program", 126).await
}

async fn a_line_has_the_code_of_its_last_command(stage: &Stage) -> Result<(), Halt> {
    line_ends_with(stage, "false; true", 0).await?;
    line_ends_with(stage, "true; false", 1).await?;
    line_ends_with(stage, "(exit 7) || exit 5", 5).await
}

async fn an_error_leaves_the_adapter_whole(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    for _ in 0..3 {
        let missing = ExecutionRequest::program("no-such-program").arg("x");
        check!(
            adapter
                .run(missing.working_dir(stage.directory()))
                .await
                .is_err(),
            "it was run"
        );
        check_eq!(adapter.run(stage.spell(Task::Exit(3))?).await?.exit_code, 3);
    }
    Ok(())
}

async fn an_output_says_whose_it_is(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let one = adapter.run(stage.spell(Task::Exit(0))?).await?;
    let two = adapter.run(stage.spell(Task::Exit(0))?).await?;
    check_eq!(one.backend, stage.driver().adapter_name());
    check!(
        one.id.is_some() && one.id != two.id,
        "ids: {:?} and {:?}",
        one.id,
        two.id
    );
    Ok(())
}

async fn a_live_execution_tells_the_same(stage: &Stage) -> Result<(), Halt> {
    let output = stage.spawn(Task::Exit(77)).await?.wait().await?;
    check_eq!(
        (output.exit_code, output.termination),
        (77, Termination::Exited)
    );
    let missing = ExecutionRequest::program("no-such-program").arg("x");
    // Where a program is looked up inside, its absence is known only when the execution ends.
    let spawned = stage
        .adapter()
        .await?
        .spawn(missing.working_dir(stage.directory()))
        .await;
    let ended = match spawned {
        Ok(mut execution) => execution.wait().await,
        Err(error) => Err(error),
    };
    match ended {
        Ok(_) => Err(Halt::failed("a program that is not there was run")),
        Err(error) => {
            check_eq!(error.kind(), ErrorKind::ProgramNotFound, "{error}");
            Ok(())
        }
    }
}
