//! What a guest can take of the host's memory and handles, where wasmer itself has no limit.

use prx_runtime_core::{ErrorKind, Termination};

use crate::common::place;

/// What becomes of the module `text`: its code, or how it ended.
async fn run(text: &str) -> Result<i32, String> {
    let mut place = place().with_own_modules();
    place.config.runtime.wasm.max_memory_mb = 64;
    std::fs::write(
        place.modules().join("m.wasm"),
        wat::parse_str(text).unwrap(),
    )
    .unwrap();
    let output = place.runtime().run(place.request("m", &["x"])).await;
    match output {
        Ok(output) if output.termination == Termination::Exited => Ok(output.exit_code),
        Ok(output) => Err(output.termination.to_string()),
        Err(error) => {
            assert_ne!(error.kind(), ErrorKind::Image, "{error:?}");
            Err(error.to_string())
        }
    }
}

/// A module with so many tables, which are to grow by so many elements each. Its code says how many
/// do.
fn tables(tables: u32, elements: u32) -> String {
    let declared: String = (0..tables)
        .map(|table| format!("(table $t{table} 0 funcref)\n"))
        .collect();
    let grown: String = (0..tables)
        .map(|table| {
            format!(
                "(table.grow $t{table} (ref.null func) (i32.const {elements}))
                 (i32.ne (i32.const -1)) (local.get $n) (i32.add) (local.set $n)\n"
            )
        })
        .collect();
    format!(
        r#"(module
            (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
            (memory (export "memory") 1)
            {declared}
            (func (export "_start") (local $n i32)
                {grown}
                (call $exit (local.get $n))))"#
    )
}

#[tokio::test]
async fn tables_grow_as_far_as_was_set_aside_for_them() {
    assert_eq!(run(&tables(10, 1000)).await, Ok(10));
    assert_eq!(run(&tables(10, 8 << 20)).await, Ok(0));
}

#[tokio::test]
async fn many_tables_have_no_room() {
    let outcome = run(&tables(90, 1)).await;
    assert!(outcome.is_err(), "{outcome:?}");
}

#[tokio::test]
async fn numbers_of_its_own_choice_count_as_handles() {
    // Renumbers its stdout six hundred times, to the same number or to others.
    let renumbered = |to: &str| {
        format!(
            r#"(module
                (import "wasi_snapshot_preview1" "fd_renumber"
                    (func $renumber (param i32 i32) (result i32)))
                (import "wasi_snapshot_preview1" "proc_exit" (func $exit (param i32)))
                (memory (export "memory") 1)
                (func (export "_start") (local $n i32) (local $done i32)
                    (loop $again
                        (call $renumber (i32.const 1) (i32.add (i32.const 100) {to}))
                        (i32.eqz) (local.get $done) (i32.add) (local.set $done)
                        (local.set $n (i32.add (local.get $n) (i32.const 1)))
                        (br_if $again (i32.lt_u (local.get $n) (i32.const 600))))
                    (call $exit (i32.shr_u (local.get $done) (i32.const 3)))))"#
        )
    };
    assert_eq!(run(&renumbered("(i32.const 0)")).await, Ok(600 >> 3));
    assert_eq!(run(&renumbered("(local.get $n)")).await, Ok(512 >> 3));
}
