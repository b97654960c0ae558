//! What cannot be run is refused with what it is.

use std::fs;
use std::path::Path;

use prx_runtime_core::{Error, ErrorKind};
use prx_wasm_trials::Place;

use crate::common::place;

/// What running the module `m.wasm` with this content is refused with.
async fn refused(content: &[u8]) -> Error {
    let place = place().with_own_modules();
    fs::write(place.modules().join("m.wasm"), content).unwrap();
    error_of(&place, "m").await
}

async fn error_of(place: &Place, program: &str) -> Error {
    place
        .runtime()
        .run(place.request(program, &["x"]))
        .await
        .unwrap_err()
}

async fn refused_text(text: &str) -> Error {
    refused(&wat::parse_str(text).unwrap()).await
}

fn assert_says(error: &Error, kind: ErrorKind, parts: &[&str]) {
    assert_eq!(error.kind(), kind, "{error}");
    for part in parts {
        assert!(
            error.to_string().contains(part),
            "`{part}` is not in: {error}"
        );
    }
}

#[tokio::test]
async fn what_is_no_module() {
    let error = refused(b"#!/bin/sh\necho hello\n").await;
    assert_says(&error, ErrorKind::Image, &["m.wasm", "is a script"]);
    let error = refused(b"just text").await;
    assert_says(&error, ErrorKind::Image, &["m.wasm", "is no WebAssembly"]);
    let error = refused(b"(module)").await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["m.wasm", "is WebAssembly text", "wat2wasm"],
    );
}

#[tokio::test]
async fn an_empty_file() {
    assert_says(
        &refused(b"").await,
        ErrorKind::Image,
        &["m.wasm", "is empty"],
    );
}

#[tokio::test]
async fn a_damaged_module() {
    let mut bytes = fs::read(prx_fixtures::Guest::BOX.path()).unwrap();
    bytes.truncate(bytes.len() / 2);
    assert_says(
        &refused(&bytes).await,
        ErrorKind::Image,
        &["m.wasm", "is a damaged module"],
    );
    // Whole, and not valid: a function that returns nothing where it says it does.
    let mut bytes =
        wat::parse_str(r#"(module (func (result i32) i32.const 0) (func (export "_start")))"#)
            .unwrap();
    let code = bytes
        .windows(2)
        .position(|pair| pair == [0x41, 0x00])
        .unwrap();
    bytes[code..code + 2].copy_from_slice(&[0x01, 0x01]);
    assert_says(
        &refused(&bytes).await,
        ErrorKind::Image,
        &["m.wasm", "is not valid"],
    );
}

#[tokio::test]
async fn a_module_without_a_start() {
    let error = refused_text("(module)").await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["m.wasm", "exports no function `_start`"],
    );
    let error = refused_text(r#"(module (func (export "_initialize")))"#).await;
    assert_says(&error, ErrorKind::Image, &["it is a library (a reactor)"]);
    let error = refused_text(r#"(module (func (export "_start") (param i32)))"#).await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["`_start` takes or returns something"],
    );
}

#[tokio::test]
async fn an_unknown_import() {
    let error =
        refused_text(r#"(module (import "env" "magic" (func)) (func (export "_start")))"#).await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["m.wasm", "`env` `magic`", "nothing provides"],
    );
    let error = refused_text(
        r#"(module (import "wasi_unstable" "fd_write" (func)) (func (export "_start")))"#,
    )
    .await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["`wasi_unstable` `fd_write`", "early WASI"],
    );
}

#[tokio::test]
async fn a_component_of_another_world() {
    let error = refused_text("(component)").await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["m.wasm", "of another world", "exports nothing"],
    );
    let error = refused_text(
        r#"(component (instance $i) (export "wasi:http/incoming-handler@0.2.0" (instance $i)))"#,
    )
    .await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["`wasi:http/incoming-handler@0.2.0`"],
    );
}

#[tokio::test]
async fn a_component_with_an_unknown_import() {
    let error = refused_text(
        r#"(component
            (import "acme:magic/wand@1.0.0" (instance (export "wave" (func))))
            (core module $m (func (export "run") (result i32) i32.const 0))
            (core instance $m (instantiate $m))
            (func $run (result (result)) (canon lift (core func $m "run")))
            (instance $run (export "run" (func $run)))
            (export "wasi:cli/run@0.2.0" (instance $run)))"#,
    )
    .await;
    assert_says(
        &error,
        ErrorKind::Image,
        &["m.wasm", "acme:magic/wand@1.0.0"],
    );
}

#[tokio::test]
async fn a_directory_or_a_pipe() {
    let place = place().with_own_modules();
    fs::create_dir(place.modules().join("dir.wasm")).unwrap();
    let error = error_of(&place, "dir").await;
    assert_says(
        &error,
        ErrorKind::NotExecutable,
        &["dir.wasm", "is a directory"],
    );

    let pipe = place.modules().join("pipe.wasm");
    make_pipe(&pipe);
    let error = error_of(&place, "pipe").await;
    assert_says(
        &error,
        ErrorKind::NotExecutable,
        &["pipe.wasm", "no regular file"],
    );
}

fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RWXU, 0).unwrap();
}

#[tokio::test]
async fn no_such_tool() {
    let place = place().with_own_modules();
    let error = error_of(&place, "nothing").await;
    let searched = place.modules().join("nothing.wasm");
    assert_says(
        &error,
        ErrorKind::ProgramNotFound,
        &["`nothing`", "registered tools", searched.to_str().unwrap()],
    );
    let error = error_of(&place, "./nothing.wasm").await;
    assert_says(
        &error,
        ErrorKind::ProgramNotFound,
        &["workspace/./nothing.wasm"],
    );
}

#[tokio::test]
async fn a_module_outside_the_module_directory() {
    let place = place().with_own_modules();
    fs::copy(
        prx_fixtures::Guest::HELLO.path(),
        place.root().join("out.wasm"),
    )
    .unwrap();
    std::os::unix::fs::symlink("../out.wasm", place.modules().join("link.wasm")).unwrap();
    let error = error_of(&place, "link").await;
    assert_says(
        &error,
        ErrorKind::Refused,
        &["link.wasm", "outside the module directory"],
    );
}

#[tokio::test]
async fn less_memory_than_the_module_starts_with() {
    let mut place = place().with_own_modules();
    place.config.runtime.wasm.max_memory_mb = 2;
    // 33 pages are one more than the limit has; and 20 and 20 in two memories.
    for text in [
        r#"(module (memory 33) (func (export "_start")))"#,
        r#"(module (memory 20) (memory 20) (func (export "_start")))"#,
    ] {
        fs::write(
            place.modules().join("m.wasm"),
            wat::parse_str(text).unwrap(),
        )
        .unwrap();
        let error = error_of(&place, "m").await;
        assert_says(
            &error,
            ErrorKind::Refused,
            &["m.wasm", "3 MiB", "2 MiB", "max_memory_mb"],
        );
    }
}
