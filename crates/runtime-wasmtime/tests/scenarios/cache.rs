//! Compiled modules are kept, and nothing that is wrong with what is kept stops a run.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use prx_fixtures::Guest;
use prx_runtime_core::config::ByteSize;
use prx_runtime_core::{ErrorKind, RuntimeAdapter as _};
use prx_wasm_trials::{Place, config_path};

use crate::common;

/// A place with two modules.
fn place() -> Place {
    let place = common::place().with_own_modules();
    for guest in [Guest::HELLO, Guest::THREE_MEMORIES] {
        let name = format!("{}.wasm", guest.name());
        fs::copy(guest.path(), place.modules().join(name)).unwrap();
    }
    place
}

/// What compiling cost a new runtime, which then runs the module: `None` if it was cached.
async fn compiled(place: &Place, program: &str) -> Option<Duration> {
    let runtime = common::engine(place);
    let compiled = runtime.compile(program).await.unwrap();
    let output = runtime.run(place.request(program, &["x"])).await.unwrap();
    if program == "hello" {
        assert_eq!(output.stdout.to_text(), "hello\n");
    }
    compiled.compiled_in
}

fn entries(place: &Place) -> Vec<PathBuf> {
    let Ok(directory) = fs::read_dir(place.cache()) else {
        return Vec::new();
    };
    directory.map(|entry| entry.unwrap().path()).collect()
}

/// The only entry.
fn entry(place: &Place) -> PathBuf {
    let entries = entries(place);
    assert_eq!(entries.len(), 1, "{entries:?}");
    entries[0].clone()
}

#[tokio::test]
async fn what_was_compiled_once_is_loaded_from_then_on() {
    let place = place();
    assert!(compiled(&place, "hello").await.is_some());
    assert!(compiled(&place, "hello").await.is_none());
    assert!(compiled(&place, "three-memories").await.is_some());
    assert_eq!(entries(&place).len(), 2);
}

#[tokio::test]
async fn a_component_is_kept_too() {
    let place = place();
    fs::copy(
        Guest::BOX_COMPONENT.path(),
        place.modules().join("component.wasm"),
    )
    .unwrap();
    assert!(compiled(&place, "component").await.is_some());
    assert!(compiled(&place, "component").await.is_none());
}

#[tokio::test]
async fn it_is_the_users_own() {
    let place = place();
    compiled(&place, "hello").await;
    assert_eq!(fs::metadata(place.cache()).unwrap().mode() & 0o777, 0o700);
    assert_eq!(fs::metadata(entry(&place)).unwrap().mode() & 0o777, 0o600);
}

/// What happens to an entry.
type Damage = fn(&Path);

#[tokio::test]
async fn a_damaged_entry_is_replaced() {
    let damages: [(&str, Damage); 6] = [
        ("empty", |entry| fs::write(entry, "").unwrap()),
        ("garbage", |entry| fs::write(entry, [7; 4096]).unwrap()),
        ("truncated", |entry| {
            let len = fs::metadata(entry).unwrap().len();
            fs::File::options()
                .write(true)
                .open(entry)
                .unwrap()
                .set_len(len / 2)
                .unwrap();
        }),
        ("one bit flipped", |entry| {
            let mut bytes = fs::read(entry).unwrap();
            let middle = bytes.len() / 2;
            bytes[middle] ^= 1;
            fs::write(entry, bytes).unwrap();
        }),
        ("a link", |entry| {
            let elsewhere = entry.with_extension("elsewhere");
            fs::rename(entry, &elsewhere).unwrap();
            std::os::unix::fs::symlink(&elsewhere, entry).unwrap();
        }),
        ("writable for others", |entry| {
            fs::set_permissions(entry, fs::Permissions::from_mode(0o666)).unwrap();
        }),
    ];
    for (what, damage) in damages {
        let place = place();
        compiled(&place, "hello").await;
        damage(&entry(&place));
        assert!(compiled(&place, "hello").await.is_some(), "{what}");
        assert!(compiled(&place, "hello").await.is_none(), "{what}");
    }
}

#[tokio::test]
async fn an_entry_of_another_module_is_not_taken() {
    let place = place();
    compiled(&place, "hello").await;
    let hello = entry(&place);
    compiled(&place, "three-memories").await;
    let other = entries(&place)
        .into_iter()
        .find(|path| *path != hello)
        .unwrap();
    fs::copy(&other, &hello).unwrap();
    assert!(compiled(&place, "hello").await.is_some());
}

#[tokio::test]
async fn an_entry_of_another_configuration_is_not_taken() {
    let mut place = place();
    compiled(&place, "hello").await;
    let before = entry(&place);
    // Another limit is another pool, for which the same compiled module is good.
    place.config.runtime.wasm.max_memory_mb = 64;
    assert!(compiled(&place, "hello").await.is_none());
    assert_eq!(entry(&place), before);
}

#[tokio::test]
async fn a_directory_that_others_may_use_is_not_used() {
    let place = place();
    fs::create_dir(place.cache()).unwrap();
    fs::set_permissions(place.cache(), fs::Permissions::from_mode(0o755)).unwrap();
    assert!(compiled(&place, "hello").await.is_some());
    assert!(entries(&place).is_empty());
}

#[tokio::test]
async fn a_place_that_cannot_be_a_directory_stops_nothing() {
    let place = place();
    fs::write(place.cache(), "a file").unwrap();
    assert!(compiled(&place, "hello").await.is_some());
}

#[tokio::test]
async fn no_more_is_kept_than_was_configured() {
    let mut place = place();
    compiled(&place, "hello").await;
    let size = fs::metadata(entry(&place)).unwrap().len();
    place.config.runtime.wasm.cache_size = ByteSize(size + size / 2);
    compiled(&place, "three-memories").await;
    assert_eq!(entries(&place).len(), 1);
    assert!(compiled(&place, "three-memories").await.is_none());
    assert!(compiled(&place, "hello").await.is_some());
}

#[tokio::test]
async fn nothing_is_kept_where_that_was_configured() {
    let place = place().without_cache();
    assert!(compiled(&place, "hello").await.is_some());
    assert!(compiled(&place, "hello").await.is_some());
    assert!(entries(&place).is_empty());
}

#[tokio::test]
async fn no_guest_may_write_where_it_is() {
    let mut place = place();
    let outside = |place: &Place| place.request("hello", &["x"]).working_dir(place.root());
    let error = place.runtime().run(outside(&place)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    let text = error.to_string();
    assert!(text.contains(place.cache().to_str().unwrap()), "{text}");

    // Reading is no harm, and nothing is where nothing is kept.
    place
        .config
        .runtime
        .wasm
        .capabilities
        .filesystem_write
        .clear();
    place.config.runtime.wasm.capabilities.filesystem_read = vec!["/workspace".to_owned()];
    place.runtime().run(outside(&place)).await.unwrap();
    let kept = entries(&place).len();
    assert_eq!(kept, 1);

    // A grant that holds for all calls: then it is not used at all.
    let root = place.root().to_str().unwrap().to_owned();
    place.config.runtime.wasm.capabilities.filesystem_write = vec![root];
    assert!(compiled(&place, "three-memories").await.is_some());
    assert_eq!(entries(&place).len(), kept);
    assert!(compiled(&place, "three-memories").await.is_some());
}

#[tokio::test]
async fn a_link_on_the_way_to_it_is_followed_once() {
    let mut place = place();
    let (away, link) = (place.root().join("away"), place.workspace().join("link"));
    fs::create_dir(&away).unwrap();
    std::os::unix::fs::symlink(&away, &link).unwrap();
    place.config.runtime.wasm.cache_path = Some(config_path(&link.join("cache")));
    let runtime = common::engine(&place);
    runtime.compile("hello").await.unwrap();
    // Nor may a guest have the link, by which the next process would find it.
    let error = runtime
        .run(place.request("hello", &["x"]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused, "{error:?}");
    // As a guest would that may write in the workspace.
    fs::remove_file(&link).unwrap();
    fs::create_dir_all(link.join("cache")).unwrap();
    fs::set_permissions(link.join("cache"), fs::Permissions::from_mode(0o700)).unwrap();
    runtime.compile("three-memories").await.unwrap();
    assert_eq!(fs::read_dir(away.join("cache")).unwrap().count(), 2);
    assert_eq!(fs::read_dir(link.join("cache")).unwrap().count(), 0);
}
