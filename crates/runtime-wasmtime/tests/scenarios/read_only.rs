//! What may be read only is not changed.

use prx_wasm_trials::Place;
use std::fs;
use std::path::Path;

use crate::common;

/// A place whose working directory may only be read, with something in it.
fn place() -> Place {
    let mut place = common::place();
    let capabilities = &mut place.config.runtime.wasm.capabilities;
    capabilities.filesystem_read = vec!["/workspace".to_owned()];
    capabilities.filesystem_write = Vec::new();
    fs::write(place.workspace().join("file"), "as it was").unwrap();
    fs::create_dir(place.workspace().join("dir")).unwrap();
    place
}

/// Everything that can be seen of a directory.
fn state(directory: &Path) -> Vec<String> {
    let mut state: Vec<String> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| {
            let entry = entry.unwrap();
            let metadata = entry.metadata().unwrap();
            let content = fs::read(entry.path()).unwrap_or_default();
            format!(
                "{:?} {:?} {content:?}",
                entry.file_name(),
                metadata.modified().unwrap()
            )
        })
        .collect();
    state.sort();
    state
}

async fn assert_refused(args: &[&str]) {
    let place = place();
    let before = state(&place.workspace());
    let output = place.run(args).await;
    assert_ne!(output.exit_code, 0, "{args:?}: {}", output.stdout.to_text());
    assert_eq!(state(&place.workspace()), before, "{args:?}");
}

#[tokio::test]
async fn it_can_be_read() {
    let place = place();
    assert_eq!(
        place.run(&["read", "file"]).await.stdout.to_text(),
        "as it was"
    );
    assert_eq!(place.run(&["ls", "."]).await.exit_code, 0);
}

#[tokio::test]
async fn nothing_is_written() {
    assert_refused(&["overwrite", "file"]).await;
    assert_refused(&["append", "file"]).await;
    assert_refused(&["write", "file", "text"]).await;
    assert_refused(&["write-read-only", "file"]).await;
}

#[tokio::test]
async fn nothing_is_truncated() {
    assert_refused(&["truncate", "file"]).await;
    assert_refused(&["ftruncate", "file"]).await;
}

#[tokio::test]
async fn nothing_is_created() {
    assert_refused(&["write", "new", "text"]).await;
    assert_refused(&["mkdir", "new"]).await;
    assert_refused(&["symlink", "file", "new"]).await;
    assert_refused(&["link", "file", "new"]).await;
}

#[tokio::test]
async fn nothing_is_removed() {
    assert_refused(&["unlink", "file"]).await;
    assert_refused(&["rmdir", "dir"]).await;
    assert_refused(&["rename", "file", "new"]).await;
}

#[tokio::test]
async fn no_time_is_changed() {
    assert_refused(&["utimes", "file"]).await;
    assert_refused(&["utimes", "dir"]).await;
}

#[tokio::test]
async fn what_may_be_written_is_another_matter() {
    let mut place = place();
    let other = place.root().join("other");
    fs::create_dir(&other).unwrap();
    place.config.runtime.wasm.capabilities.filesystem_write =
        vec![format!("{}::/out", other.display())];
    assert_eq!(place.run(&["write", "/out/new", "text"]).await.exit_code, 0);
    assert_eq!(fs::read_to_string(other.join("new")).unwrap(), "text");
    assert_ne!(
        place
            .run(&["write", "/workspace/new", "text"])
            .await
            .exit_code,
        0
    );
}
