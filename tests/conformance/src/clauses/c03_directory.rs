//! C3: where a command runs.

use std::path::{Path, PathBuf};

use prx_runtime_core::{ErrorKind, ExecutionOutput, ExecutionRequest};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq, text};

pub(super) const CLAUSE: Clause = Clause {
    number: 3,
    module: "c03_directory",
    title: "Directory",
    rule: "`working_dir` must exist and be a directory; an error about it names it, never the \
           program. Relative paths resolve against the caller's directory. `None` is the caller's \
           directory. A command never runs silently elsewhere.",
    why: "A command that deletes files must do so in the directory that was meant or not at all; and \
          \"no such file\" sends people to look for a program when it was the directory that was \
          missing.",
    trials: trials! {
        a_command_runs_where_it_was_told: "The working directory is the one asked for.";
        what_a_command_writes_is_there: "Files land in the caller's directory and not in a copy.";
        what_is_there_can_be_read: "A command sees the files of its directory.";
        without_one_it_is_the_callers: "`None` means the directory of the caller.";
        a_relative_one_is_below_the_callers: "A relative path starts at the caller's directory.";
        a_missing_directory_is_named: "The error is about the directory, not the program.";
        a_file_is_no_directory: "A file is refused, with its name.";
        a_missing_directory_comes_before_a_missing_program: "Where both are missing, the directory is what is reported.";
        a_missing_program_is_not_blamed_on_the_directory: "A good directory does not hide which program is missing.";
        names_may_have_blanks_and_other_characters: "A directory may be called anything.";
        a_link_leads_to_its_directory: "A symbolic link to a directory is one.";
        calls_have_their_own: "Two calls at the same time run each in its own directory.";
        the_callers_stays_where_it_is: "Running a command elsewhere does not move the host.";
        a_live_execution_runs_there_too: "There is one rule, however a command is started.", needs [Sessions];
    },
};

/// The directory that the guest printed.
fn printed(output: &ExecutionOutput) -> Result<PathBuf, Halt> {
    check!(output.success(), "{output:?}");
    Ok(PathBuf::from(text(&output.stdout)?.trim_end_matches('\n')))
}

fn seen(stage: &Stage, directory: &Path) -> Result<PathBuf, Halt> {
    Ok(stage.driver().guest_path(&directory.canonicalize()?))
}

async fn prints(stage: &Stage, request: ExecutionRequest) -> Result<PathBuf, Halt> {
    printed(
        &stage
            .adapter()
            .await?
            .run(request.timeout(stage.patience()))
            .await?,
    )
}

fn question(stage: &Stage) -> Result<ExecutionRequest, Halt> {
    stage.spell_bare(Task::PrintDirectory)
}

async fn a_command_runs_where_it_was_told(stage: &Stage) -> Result<(), Halt> {
    let request = question(stage)?.working_dir(stage.directory());
    check_eq!(
        prints(stage, request).await?,
        seen(stage, stage.directory())?
    );
    Ok(())
}

async fn what_a_command_writes_is_there(stage: &Stage) -> Result<(), Halt> {
    let (file, text) = ("file".to_owned(), "some text".to_owned());
    let output = stage.run(Task::WriteFile { file, text }).await?;
    check!(output.success(), "{output:?}");
    check_eq!(
        std::fs::read_to_string(stage.directory().join("file"))?,
        "some text"
    );
    Ok(())
}

async fn what_is_there_can_be_read(stage: &Stage) -> Result<(), Halt> {
    std::fs::write(stage.directory().join("file"), "some text")?;
    let output = stage.run(Task::ReadFile("file".into())).await?;
    check_eq!(text(&output.stdout)?, "some text", "{output:?}");
    Ok(())
}

async fn without_one_it_is_the_callers(stage: &Stage) -> Result<(), Halt> {
    let here = std::env::current_dir()?;
    check_eq!(prints(stage, question(stage)?).await?, seen(stage, &here)?);
    Ok(())
}

async fn a_relative_one_is_below_the_callers(stage: &Stage) -> Result<(), Halt> {
    let here = std::env::current_dir()?.canonicalize()?;
    let directory = stage.directory().canonicalize()?;
    let relative = directory.strip_prefix(&here).map_err(|_| {
        Halt::failed("the host is not prepared: its directory is not the one for temporary files")
    })?;
    check_eq!(
        prints(stage, question(stage)?.working_dir(relative)).await?,
        seen(stage, &directory)?
    );
    Ok(())
}

async fn a_missing_directory_is_named(stage: &Stage) -> Result<(), Halt> {
    let missing = stage.directory().join("missing");
    let request = stage.spell(Task::PrintEnv)?.working_dir(&missing);
    let program = request.invocation().to_string();
    let error = refused(stage, request).await?;
    check!(
        names(&error, &missing),
        "the error does not name the directory: {error}"
    );
    check!(
        !error.contains(&format!("`{program}`")),
        "the error names the program: {error}"
    );
    Ok(())
}

async fn a_file_is_no_directory(stage: &Stage) -> Result<(), Halt> {
    let file = stage.directory().join("file");
    std::fs::write(&file, "")?;
    let error = refused(stage, question(stage)?.working_dir(&file)).await?;
    check!(
        names(&error, &file),
        "the error does not name the file: {error}"
    );
    Ok(())
}

async fn a_missing_directory_comes_before_a_missing_program(stage: &Stage) -> Result<(), Halt> {
    let missing = stage.directory().join("missing");
    let request = ExecutionRequest::program("no-such-program")
        .arg("x")
        .working_dir(&missing);
    let error = refused(stage, request).await?;
    check!(
        names(&error, &missing),
        "the error does not name the directory: {error}"
    );
    Ok(())
}

async fn a_missing_program_is_not_blamed_on_the_directory(stage: &Stage) -> Result<(), Halt> {
    let request = ExecutionRequest::program("no-such-program")
        .arg("x")
        .working_dir(stage.directory());
    let Err(error) = stage.adapter().await?.run(request).await else {
        return Err(Halt::failed("a program that is not there was run"));
    };
    check!(error.kind() != ErrorKind::WorkingDirectory, "{error}");
    check!(error.to_string().contains("no-such-program"), "{error}");
    Ok(())
}

fn names(error: &str, path: &Path) -> bool {
    error.contains(&path.display().to_string())
}

/// What the refusal says.
async fn refused(stage: &Stage, request: ExecutionRequest) -> Result<String, Halt> {
    let Err(error) = stage.adapter().await?.run(request).await else {
        return Err(Halt::failed("the command was run somewhere"));
    };
    check_eq!(error.kind(), ErrorKind::WorkingDirectory, "{error}");
    Ok(error.to_string())
}

async fn names_may_have_blanks_and_other_characters(stage: &Stage) -> Result<(), Halt> {
    for name in [" two words ", "grüße 日本語", "it's \"$HOME\"; *", "-n"] {
        let directory = stage.directory().join(name);
        std::fs::create_dir(&directory)?;
        std::fs::write(directory.join("file"), name)?;
        let request = stage
            .spell(Task::ReadFile("file".into()))?
            .working_dir(&directory);
        let output = stage.adapter().await?.run(request).await?;
        check_eq!(text(&output.stdout)?, name, "{output:?}");
    }
    Ok(())
}

async fn a_link_leads_to_its_directory(stage: &Stage) -> Result<(), Halt> {
    let (directory, link) = (
        stage.directory().join("directory"),
        stage.directory().join("link"),
    );
    std::fs::create_dir(&directory)?;
    std::fs::write(directory.join("file"), "some text")?;
    link_directory(&directory, &link)?;
    let request = stage
        .spell(Task::ReadFile("file".into()))?
        .working_dir(&link);
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(text(&output.stdout)?, "some text", "{output:?}");
    Ok(())
}

#[cfg(unix)]
fn link_directory(directory: &Path, link: &Path) -> Result<(), Halt> {
    Ok(std::os::unix::fs::symlink(directory, link)?)
}

#[cfg(not(unix))]
fn link_directory(_: &Path, _: &Path) -> Result<(), Halt> {
    Err(Halt::gated("links need a privilege on this system"))
}

async fn calls_have_their_own(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let ask = async |name: &str| -> Result<(), Halt> {
        let directory = stage.directory().join(name);
        std::fs::create_dir(&directory)?;
        let request = question(stage)?
            .working_dir(&directory)
            .timeout(stage.patience());
        let output = adapter.run(request).await?;
        check_eq!(printed(&output)?, seen(stage, &directory)?);
        Ok(())
    };
    let (one, two, three) = tokio::join!(ask("one"), ask("two"), ask("three"));
    one.and(two).and(three)
}

async fn the_callers_stays_where_it_is(stage: &Stage) -> Result<(), Halt> {
    let before = std::env::current_dir()?;
    prints(stage, question(stage)?.working_dir(stage.directory())).await?;
    check_eq!(std::env::current_dir()?, before);
    Ok(())
}

async fn a_live_execution_runs_there_too(stage: &Stage) -> Result<(), Halt> {
    let output = stage.spawn(Task::PrintDirectory).await?.wait().await?;
    check_eq!(printed(&output)?, seen(stage, stage.directory())?);
    Ok(())
}
