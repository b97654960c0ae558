//! No file is reached that was not granted.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Duration;

use prx_runtime_core::ExecutionOutput;
use prx_wasm_trials::Place;

use crate::common;

const SECRET: &str = "swordfish";

/// A place with a secret beside the working directory.
fn place() -> Place {
    let place = common::place();
    fs::write(place.root().join("secret"), SECRET).unwrap();
    fs::create_dir(place.root().join("private")).unwrap();
    fs::write(place.root().join("private/secret"), SECRET).unwrap();
    place
}

/// Nothing of the secret was said, and the guest was told that it may not.
fn assert_denied(output: &ExecutionOutput, what: &str) {
    let (stdout, stderr) = (output.stdout.to_text(), output.stderr.to_text());
    assert!(!stdout.contains(SECRET), "{what}: {stdout}");
    assert_eq!(output.exit_code, 1, "{what}: {stdout}{stderr}");
}

#[tokio::test]
async fn the_working_directory_is_reached_by_both_of_its_names() {
    let place = place();
    fs::write(place.workspace().join("file"), "here").unwrap();
    for path in ["file", "./file", "/workspace/file"] {
        let output = place.run(&["read", path]).await;
        assert_eq!(output.stdout.to_text(), "here", "{path}");
    }
}

#[tokio::test]
async fn dots_lead_nowhere() {
    let place = place();
    fs::create_dir(place.workspace().join("dir")).unwrap();
    for path in [
        "../secret",
        "/workspace/../secret",
        "dir/../../secret",
        "./../secret",
        "../../etc/passwd",
    ] {
        assert_denied(&place.run(&["read", path]).await, path);
    }
    for path in ["..", "/workspace/..", "dir/../.."] {
        assert_denied(&place.run(&["ls", path]).await, path);
    }
}

#[tokio::test]
async fn absolute_paths_lead_nowhere() {
    let place = place();
    let secret = place.root().join("secret");
    for path in [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "/proc/self/environ",
        "/dev/null",
    ] {
        assert_denied(&place.run(&["read", path]).await, path);
    }
}

#[tokio::test]
async fn links_of_the_host_lead_nowhere() {
    let place = place();
    let workspace = place.workspace();
    symlink("../secret", workspace.join("relative")).unwrap();
    symlink(place.root().join("secret"), workspace.join("absolute")).unwrap();
    symlink("../private", workspace.join("directory")).unwrap();
    symlink("relative", workspace.join("chain")).unwrap();
    for path in [
        "relative",
        "absolute",
        "directory/secret",
        "chain",
        "/workspace/relative",
    ] {
        assert_denied(&place.run(&["read", path]).await, path);
        assert_denied(&place.run(&["stat", path]).await, path);
        assert_denied(&place.run(&["overwrite", path]).await, path);
    }
    assert_denied(&place.run(&["ls", "directory"]).await, "ls");
    assert_denied(&place.run(&["write", "directory/new", "x"]).await, "write");
    assert_eq!(
        fs::read_to_string(place.root().join("secret")).unwrap(),
        SECRET
    );
    assert!(!place.root().join("private/new").exists());
}

#[tokio::test]
async fn links_of_the_guest_lead_nowhere() {
    let place = place();
    // Whether it may make them does not matter, as long as they are of no use to it.
    for target in ["../secret", "../../etc/passwd", "/etc/passwd"] {
        place.run(&["symlink", target, "link"]).await;
        assert_denied(&place.run(&["read", "link"]).await, target);
        let _ = fs::remove_file(place.workspace().join("link"));
    }
    let absolute = place.run(&["symlink", "/etc/passwd", "link"]).await;
    assert_denied(&absolute, "an absolute link");
}

#[tokio::test]
async fn files_cannot_be_moved_or_linked_from_where_they_may_only_be_read() {
    let mut place = place();
    let outside = place.root().join("private");
    place.config.runtime.wasm.capabilities.filesystem_read =
        vec![format!("{}::/private", outside.display())];
    fs::write(place.workspace().join("own"), "own").unwrap();
    assert_eq!(
        place
            .run(&["read", "/private/secret"])
            .await
            .stdout
            .to_text(),
        SECRET
    );
    for operation in ["rename", "link"] {
        for (from, to) in [
            ("/private/secret", "/workspace/taken"),
            ("/private/secret", "taken"),
            ("own", "/private/own"),
            ("/private/secret", "/private/other"),
        ] {
            let output = place.run(&[operation, from, to]).await;
            assert_denied(&output, &format!("{operation} {from} {to}"));
        }
    }
    let names = |directory: &std::path::Path| fs::read_dir(directory).unwrap().count();
    assert_eq!((names(&outside), names(&place.workspace())), (1, 1));
}

#[tokio::test]
async fn no_more_files_are_held_open_than_a_guest_may() {
    let place = place();
    fs::write(place.workspace().join("file"), "").unwrap();
    let output = place.run(&["open-many", "file"]).await;
    assert!(!output.success(), "{output:?}");
}

/// Opening a pipe waits for its other end, where one lets it. The call ends all the same.
#[tokio::test]
async fn a_named_pipe_holds_no_call_up() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    let place = place();
    let pipe = place.workspace().join("pipe");
    mknodat(CWD, &pipe, FileType::Fifo, Mode::RWXU, 0).unwrap();
    let timeout = Duration::from_secs(1);
    for args in [&["read", "pipe"][..], &["write", "pipe", "text"]] {
        let request = place.boxed(args).timeout(timeout);
        let output = place.runtime().run(request).await.unwrap();
        assert!(
            output.duration < timeout + Duration::from_millis(1500),
            "{args:?}: {output:?}"
        );
    }
    // Lets go of whoever waits for it in the system.
    let both_ends = fs::File::options().read(true).write(true).open(&pipe);
    drop(both_ends.unwrap());
}
