//! Images that would do things their own way, and images that are not there.

use std::os::unix::fs::PermissionsExt;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter, Stdin};
use tokio::io::AsyncReadExt;

use crate::images::{BRIEF, BUSYBOX, LEADING, SHELLLESS, WILFUL, docker};
use crate::support::{container_of, eventually, image, need_engine, runtime, sh};

#[tokio::test]
async fn the_image_has_no_say() {
    need_engine!();
    let runtime = runtime(&format!("image = {:?}", image(&WILFUL)));
    let line = "pwd; id -u; echo \"[$LD_PRELOAD][$BASH_ENV][$IMAGE_VARIABLE]\"; env | grep -c LD_; sleep 2; ls";
    let output = sh(&runtime, line).await;
    let owner = rustix_uid();
    assert_eq!(
        output.stdout.to_string(),
        format!("/workspace\n{owner}\n[][][kept]\n0\n")
    );
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("echo")
        .arg("mine")
        .working_dir(dir.path());
    assert_eq!(
        runtime.run(request).await.unwrap().stdout.to_string(),
        "mine\n"
    );
}

/// Who owns a directory that this process makes.
fn rustix_uid() -> u32 {
    use std::os::unix::fs::MetadataExt;
    tempfile::tempdir()
        .unwrap()
        .path()
        .metadata()
        .unwrap()
        .uid()
}

#[tokio::test]
async fn a_program_that_is_not_there_was_not_run() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("text"), "").unwrap();
    for (program, kind) in [
        ("no-such-program", ErrorKind::ProgramNotFound),
        ("/bin/no-such-program", ErrorKind::ProgramNotFound),
        ("./no-such-program", ErrorKind::ProgramNotFound),
        ("/etc/passwd", ErrorKind::NotExecutable),
        ("/etc", ErrorKind::NotExecutable),
        ("./text", ErrorKind::NotExecutable),
    ] {
        let request = ExecutionRequest::program(program)
            .arg("x")
            .working_dir(dir.path());
        let error = runtime.run(request).await.unwrap_err();
        assert_eq!(error.kind(), kind, "{program}: {error}");
        assert!(error.to_string().contains(program), "{error}");
    }
}

#[tokio::test]
async fn a_command_that_only_says_so_did_run() {
    need_engine!();
    let runtime = runtime("");
    for (reason, code) in [
        ("No such file or directory", 127),
        ("Permission denied", 126),
        ("x", 126),
        ("Exec format error", 1),
    ] {
        let line =
            format!("echo '[FATAL tini (8)] exec /bin/sh failed: {reason}' >&2; exit {code}");
        let output = sh(&runtime, &line).await;
        assert_eq!(output.exit_code, code, "{output:?}");
    }
    let output = sh(&runtime, "no-such-program; exit $?").await;
    assert_eq!(output.exit_code, 127);
}

#[tokio::test]
async fn a_script_that_hides_itself_did_run() {
    need_engine!();
    let runtime = runtime("");
    for (hide, code) in [("rm", 127), ("chmod 644", 126)] {
        let dir = tempfile::tempdir().unwrap();
        let script = dir.path().join("script");
        let text = format!(
            "#!/bin/sh\necho here >done\n{hide} ./script\n\
             echo '[FATAL tini (8)] exec ./script failed: x' >&2\nexit {code}\n"
        );
        std::fs::write(&script, text).unwrap();
        std::fs::set_permissions(&script, PermissionsExt::from_mode(0o755)).unwrap();
        let request = ExecutionRequest::program("./script").working_dir(dir.path());
        let output = runtime.run(request).await.unwrap();
        assert_eq!(output.exit_code, code, "{output:?}");
        assert!(dir.path().join("done").exists());
    }
}

#[tokio::test]
async fn a_script_that_an_image_only_leads_to_did_run() {
    need_engine!();
    let runtime = runtime(&format!("image = {:?}", image(&LEADING)));
    for (hide, code) in [("rm", 127), ("chmod 644", 126)] {
        let dir = tempfile::tempdir().unwrap();
        let bin = dir.path().join("bin");
        std::fs::create_dir(&bin).unwrap();
        let text = format!(
            "#!/bin/sh\necho here >done\n{hide} bin/script\n\
             echo '[FATAL tini (8)] exec script failed: x' >&2\nexit {code}\n"
        );
        std::fs::write(bin.join("script"), text).unwrap();
        std::fs::set_permissions(bin.join("script"), PermissionsExt::from_mode(0o755)).unwrap();
        let request = ExecutionRequest::program("script").working_dir(dir.path());
        let output = runtime.run(request).await.unwrap();
        assert_eq!(output.exit_code, code, "{output:?}");
        assert!(dir.path().join("done").exists());
    }
    // What is in none of its directories is missing all the same, as far as can be told.
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("no-such-program").working_dir(dir.path());
    assert_eq!(runtime.run(request).await.unwrap().exit_code, 127);
}

#[tokio::test]
async fn the_path_that_is_configured_is_searched() {
    need_engine!();
    let runtime = runtime("env = { PATH = \"/opt/none:/bin\" }");
    let dir = tempfile::tempdir().unwrap();
    let run = async |program: &str| {
        let request = ExecutionRequest::program(program).working_dir(dir.path());
        runtime.run(request).await
    };
    assert!(run("true").await.unwrap().success());
    let error = run("no-such-program").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    assert!(error.to_string().contains("/opt/none:/bin"), "{error}");
}

#[tokio::test]
async fn an_image_without_a_shell_runs_programs() {
    need_engine!();
    let runtime = runtime(&format!("image = {:?}", image(&SHELLLESS)));
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("/bin/true").working_dir(dir.path());
    assert!(runtime.run(request).await.unwrap().success());
    let error = runtime
        .run(ExecutionRequest::shell("true").working_dir(dir.path()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    assert!(error.to_string().contains("/bin/sh"), "{error}");
}

#[tokio::test]
async fn a_command_that_ends_at_once_loses_nothing() {
    need_engine!();
    let brief = image(&BRIEF);
    // The image by itself: it has said everything before anybody can attach.
    assert_eq!(
        docker(&["run", "--rm", "--network", "none", brief]).unwrap(),
        "the command of the image"
    );
    let runtime = runtime(&format!("image = {brief:?}"));
    let dir = tempfile::tempdir().unwrap();
    for turn in 0..20 {
        // Ours runs instead, and is heard on both streams although it ends as fast.
        let request = ExecutionRequest::program("sh")
            .args(["-c", "echo out; echo err >&2; exit 7"])
            .working_dir(dir.path());
        let output = runtime.run(request).await.unwrap();
        assert_eq!(output.exit_code, 7, "turn {turn}: {output:?}");
        assert_eq!(output.stdout.as_bytes(), b"out\n", "turn {turn}");
        assert_eq!(output.stderr.as_bytes(), b"err\n", "turn {turn}");
    }
    // A live one, whose streams are taken only when it has long ended.
    let request = ExecutionRequest::program("echo")
        .arg("live")
        .stdin(Stdin::Piped)
        .working_dir(dir.path());
    let mut execution = runtime.spawn(request).await.unwrap();
    let container = container_of(execution.id());
    eventually("it has ended", || {
        docker(&["inspect", &container, "--format", "{{.State.Running}}"]).as_deref() != Ok("true")
    })
    .await;
    let mut said = String::new();
    let mut stdout = execution.stdout.take().unwrap();
    stdout.read_to_string(&mut said).await.unwrap();
    assert_eq!(said, "live\n");
    assert!(execution.wait().await.unwrap().success());
}

#[tokio::test]
async fn a_missing_image_is_named() {
    need_engine!();
    let runtime = runtime("image = \"prx-runtime-test/missing:1\"\nauto_pull = false");
    let dir = tempfile::tempdir().unwrap();
    let error = runtime
        .run(ExecutionRequest::program("true").working_dir(dir.path()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image);
    assert!(
        error.to_string().contains("prx-runtime-test/missing:1"),
        "{error}"
    );
    assert_eq!(
        runtime.validate().await.unwrap_err().kind(),
        ErrorKind::Image
    );
}

#[tokio::test]
async fn a_tool_has_an_image_of_its_own() {
    need_engine!();
    let lines = format!(
        "tool_images = {{ wilful = {:?}, env = {:?} }}",
        image(&WILFUL),
        image(&WILFUL)
    );
    let runtime = runtime(&lines);
    let dir = tempfile::tempdir().unwrap();
    let run = async |request: ExecutionRequest| {
        let output = runtime.run(request.working_dir(dir.path())).await.unwrap();
        output.stdout.to_string().contains("IMAGE_VARIABLE")
    };
    assert!(!run(ExecutionRequest::shell("env")).await);
    assert!(run(ExecutionRequest::shell("env").tool("wilful")).await);
    assert!(run(ExecutionRequest::program("env")).await);
    assert_eq!(image(&BUSYBOX), BUSYBOX.name);
}
