//! Programs that cannot be executed: each its own error, which names the right culprit.

use std::path::Path;

use prx_runtime_core::{Error, ErrorKind, ExecutionRequest, RuntimeAdapter};

use crate::stage;

async fn refusal(request: ExecutionRequest) -> Error {
    stage::native().run(request).await.unwrap_err()
}

fn with_files(scenario: impl AsyncFn(&Path)) {
    stage::on_both_runtimes(|| async {
        let directory = tempfile::tempdir().unwrap();
        scenario(directory.path()).await;
    });
}

#[track_caller]
fn check(error: &Error, kind: ErrorKind, text: &str) {
    assert_eq!(error.kind(), kind, "{error}");
    assert!(error.to_string().contains(text), "{error}");
}

#[test]
fn a_missing_directory_is_not_a_missing_program() {
    with_files(async |files| {
        let missing = files.join("nowhere");
        let error = refusal(ExecutionRequest::program("/bin/sh").working_dir(&missing)).await;
        check(&error, ErrorKind::WorkingDirectory, "nowhere");
        assert!(!error.to_string().contains("/bin/sh"), "{error}");
    });
}

#[test]
fn a_script_without_a_first_line_is_no_program() {
    with_files(async |files| {
        let script = stage::script(files, "script", "echo no shebang\n");
        let error = refusal(ExecutionRequest::program(script.to_str().unwrap())).await;
        check(
            &error,
            ErrorKind::NotExecutable,
            "has no format that the system knows",
        );
        check(&error, ErrorKind::NotExecutable, "#!/bin/sh");
    });
}

#[test]
fn a_missing_interpreter_is_named() {
    with_files(async |files| {
        let script = stage::script(files, "script", "#!/nowhere/python -u\nprint(1)\n");
        let error = refusal(ExecutionRequest::program(script.to_str().unwrap())).await;
        check(
            &error,
            ErrorKind::NotExecutable,
            "its interpreter `/nowhere/python` does not exist",
        );
    });
}

#[test]
fn a_directory_is_no_program() {
    with_files(async |files| {
        let error = refusal(ExecutionRequest::program(files.to_str().unwrap())).await;
        check(&error, ErrorKind::NotExecutable, "is a directory");
    });
}

#[test]
fn a_file_without_permission_is_no_program() {
    with_files(async |files| {
        let file = files.join("plain");
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        let error = refusal(ExecutionRequest::program(file.to_str().unwrap())).await;
        check(&error, ErrorKind::NotExecutable, "no permission on");
        check(&error, ErrorKind::NotExecutable, "chmod +x");
    });
}

#[test]
fn a_path_through_a_file_and_a_name_that_is_nowhere_are_not_found() {
    stage::on_both_runtimes(|| async {
        let error = refusal(ExecutionRequest::program("/etc/passwd/sh")).await;
        check(&error, ErrorKind::ProgramNotFound, "/etc/passwd/sh");
        let error = refusal(ExecutionRequest::program("no-such-program-anywhere")).await;
        check(&error, ErrorKind::ProgramNotFound, "searched PATH: ");
    });
}

#[test]
fn a_program_named_relative_to_the_directory_it_runs_in_is_found_there() {
    with_files(async |files| {
        stage::script(files, "here", "#!/bin/sh\necho found\n");
        let request = ExecutionRequest::program("./here").working_dir(files);
        let output = stage::native().run(request).await.unwrap();
        assert_eq!(output.stdout.to_string(), "found\n");
    });
}
