//! What wasmer cannot run, and what a guest is refused.

use prx_fixtures::Guest;
use prx_runtime_core::{ErrorKind, Termination};

use crate::common::{engine, place};

#[tokio::test]
async fn a_component_is_refused_with_the_engine_that_runs_it() {
    let place = place();
    let request = place.request(Guest::BOX_COMPONENT.name(), &["env"]);
    let error = place.runtime().run(request).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(
        error.hint().unwrap_or_default().contains("wasmtime"),
        "{error:?}"
    );
}

#[tokio::test]
async fn all_memories_of_a_guest_have_one_limit() {
    let mut place = place();
    place.config.runtime.wasm.max_memory_mb = 64;
    let request = place.request(Guest::THREE_MEMORIES.name(), &["x"]);
    let output = place.runtime().run(request).await.unwrap();
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 64)
    );
}

#[tokio::test]
async fn one_that_takes_all_memory_and_traps_is_out_of_memory() {
    let place = place();
    let output = place.run(&["grow-trap"]).await;
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::OutOfMemory, 137)
    );
}

#[tokio::test]
async fn a_trap_is_accounted_for() {
    let place = place();
    let output = place.run(&["trap"]).await;
    let Termination::Trapped(reason) = &output.termination else {
        panic!("{output:?}")
    };
    assert!(reason.contains("unreachable"), "{reason}");
    assert_eq!(output.exit_code, 134);
    let account = output.stderr.to_text();
    assert!(
        account.contains("wasm trap") && account.contains("wasm backtrace"),
        "{account}"
    );
}

#[tokio::test]
async fn one_that_recurses_traps() {
    let place = place();
    let output = place.run(&["recurse"]).await;
    let Termination::Trapped(reason) = &output.termination else {
        panic!("{output:?}")
    };
    assert!(
        reason.contains("call stack exhausted") || reason.contains("out of bounds"),
        "{reason}"
    );
}

#[tokio::test]
async fn processes_threads_and_pipes_are_refused() {
    let place = place();
    let output = place
        .runtime()
        .run(place.request(Guest::WASIX.name(), &["x"]))
        .await
        .unwrap();
    assert_eq!(
        (output.termination, output.exit_code),
        (Termination::Exited, 4)
    );
}

#[tokio::test]
async fn what_wasmer_says_it_cannot_do_it_cannot() {
    let place = place();
    let capabilities = engine(&place).engine_capabilities();
    let capabilities = [
        capabilities.components,
        capabilities.file_times,
        capabilities.hard_links,
        // That it is so is seen in `sockets`.
        capabilities.connect_errors,
    ];
    assert_eq!(capabilities, [false; 4]);
    let file = place.workspace().join("file");
    std::fs::write(&file, "").unwrap();
    let before = file.metadata().unwrap().modified().unwrap();
    assert_eq!(place.run(&["utimes", "file"]).await.exit_code, 0);
    assert_eq!(file.metadata().unwrap().modified().unwrap(), before);
    assert_eq!(place.run(&["link", "file", "other"]).await.exit_code, 1);
    assert!(!place.workspace().join("other").exists());
}
