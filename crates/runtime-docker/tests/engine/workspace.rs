//! The directory that a command works in.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;

use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter, Stdin};

use crate::images::{INTRUSIVE, LINKED, docker};
use crate::support::{container_of, count, image, need_engine, runtime, sh_in};

/// A user other than root, where the test may make things theirs.
const OTHER: (u32, u32) = (4321, 4322);

fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

#[tokio::test]
async fn files_belong_to_the_owner_of_the_directory() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let owner = match chown(dir.path(), Some(OTHER.0), Some(OTHER.1)) {
        Ok(()) => OTHER,
        // Not root: the directory is ours, and that is what counts.
        Err(_) => (
            dir.path().metadata().unwrap().uid(),
            dir.path().metadata().unwrap().gid(),
        ),
    };
    fs::set_permissions(dir.path(), fs::Permissions::from_mode(0o700)).unwrap();
    let output = sh_in(
        &runtime(""),
        "echo text >file; mkdir sub; id -u; id -g; pwd; ls",
        dir.path(),
    )
    .await;
    assert_eq!(
        output.stdout.to_string(),
        format!("{}\n{}\n/workspace\nfile\nsub\n", owner.0, owner.1)
    );
    for name in ["file", "sub"] {
        let metadata = dir.path().join(name).metadata().unwrap();
        assert_eq!((metadata.uid(), metadata.gid()), owner, "{name}");
    }
    assert_eq!(
        fs::read_to_string(dir.path().join("file")).unwrap(),
        "text\n"
    );
    assert_eq!(
        names(dir.path()),
        ["file", "sub"],
        "nothing of ours is left"
    );
}

#[tokio::test]
async fn a_container_leaves_no_device_and_no_setuid_root_file() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let line = "mknod dev c 1 3; mknod block b 8 0; \
                cp /bin/busybox a; chmod 4755 a; \
                cp /bin/busybox b; chmod u+s b; \
                cp /bin/busybox c; chmod 2755 c; \
                echo done";
    let output = sh_in(&runtime(""), line, dir.path()).await;
    assert!(output.stdout.to_string().ends_with("done\n"), "{output:?}");
    for name in names(dir.path()) {
        let metadata = dir.path().join(&name).symlink_metadata().unwrap();
        assert!(metadata.is_file(), "{name} is a device");
        let root = metadata.uid() == 0 && metadata.mode() & 0o4000 != 0
            || metadata.gid() == 0 && metadata.mode() & 0o2000 != 0;
        assert!(!root, "{name} is setuid root: {:o}", metadata.mode());
    }
}

#[tokio::test]
async fn a_path_is_judged_by_what_it_leads_to() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    symlink("/etc", dir.path().join("etc")).unwrap();
    symlink("/", dir.path().join("root")).unwrap();
    let runtime = runtime("");
    for name in ["etc", "root"] {
        let request = ExecutionRequest::program("true").working_dir(dir.path().join(name));
        let error = runtime.run(request).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused, "{error}");
    }
    fs::create_dir(dir.path().join("real")).unwrap();
    symlink("real", dir.path().join("link")).unwrap();
    sh_in(&runtime, "touch here", &dir.path().join("link")).await;
    assert_eq!(names(&dir.path().join("real")), ["here"]);
}

#[tokio::test]
async fn only_what_is_below_an_allowed_root_is_mounted() {
    need_engine!();
    let dir = tempfile::tempdir().unwrap();
    let (inside, outside) = (dir.path().join("in"), dir.path().join("out"));
    fs::create_dir(&inside).unwrap();
    fs::create_dir(&outside).unwrap();
    let runtime = runtime(&format!("allowed_workspace_roots = [{:?}]", inside));
    assert!(sh_in(&runtime, "true", &inside).await.success());
    let request = ExecutionRequest::program("true").working_dir(&outside);
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(
        error.to_string().contains("allowed_workspace_roots"),
        "{error}"
    );
}

#[tokio::test]
async fn an_image_whose_workspace_is_a_link_is_noticed() {
    need_engine!();
    let runtime = runtime(&format!("image = {:?}", image(&LINKED)));
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("true").working_dir(dir.path());
    let error = runtime.run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image, "{error}");
    assert!(error.to_string().contains("leads to `/etc`"), "{error}");
    assert_eq!(count("ancestor=prx-runtime-test/linked:3"), 0);
    assert_eq!(names(dir.path()), [""; 0]);
}

#[tokio::test]
async fn no_image_leaves_a_directory_in_the_workspace() {
    need_engine!();
    let settings = format!("image = {:?}", image(&INTRUSIVE));
    let dir = tempfile::tempdir().unwrap();
    let request = || ExecutionRequest::program("true").working_dir(dir.path());
    let refusing = runtime(&settings);
    let error = refusing.run(request()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Image, "{error}");
    assert!(error.to_string().contains("`/workspace/data`"), "{error}");
    assert_eq!(
        refusing.validate().await.unwrap_err().kind(),
        ErrorKind::Image
    );
    // Elsewhere, or without a directory of the host, it does no harm.
    let elsewhere = runtime(&format!("{settings}\nworkspace_mount_path = \"/w\""));
    assert!(elsewhere.run(request()).await.unwrap().success());
    let nowhere = runtime(&format!("{settings}\nmount_workspace = false"));
    let line = ExecutionRequest::shell("touch data/file && ls data");
    let output = nowhere.run(line).await.unwrap();
    assert_eq!(output.stdout.to_string(), "file\n", "{output:?}");
    assert_eq!(names(dir.path()), [""; 0]);
}

#[tokio::test]
async fn without_a_mount_there_is_scratch_space() {
    need_engine!();
    let runtime = runtime("mount_workspace = false");
    let output = runtime
        .run(ExecutionRequest::shell(
            "pwd; touch file && ls; ls / | grep -c Cargo",
        ))
        .await
        .unwrap();
    assert_eq!(output.stdout.to_string(), "/workspace\nfile\n0\n");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("true").working_dir(dir.path());
    assert_eq!(
        runtime.run(request).await.unwrap_err().kind(),
        ErrorKind::WorkingDirectory
    );
}

#[tokio::test]
async fn nothing_of_an_image_is_stored_by_the_engine() {
    need_engine!();
    let runtime = runtime(&format!("image = {:?}", image(&crate::images::WILFUL)));
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell("touch /data/file && echo scratch && cat")
        .stdin(Stdin::Piped)
        .working_dir(dir.path());
    let mut execution = runtime.spawn(request).await.unwrap();
    let container = container_of(execution.id());
    let mounts = "{{range .Mounts}}{{.Type}} {{.Destination}};{{end}}";
    assert_eq!(
        docker(&["inspect", &container, "--format", mounts]).unwrap(),
        "bind /workspace;"
    );
    drop(execution.stdin.take());
    let output = execution.wait().await.unwrap();
    assert_eq!(output.stdout.to_string(), "scratch\n", "{output:?}");
}
