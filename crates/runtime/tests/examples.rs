//! Every example is run, not only compiled.

#![cfg(feature = "native")]
#[path = "../examples/auto.rs"]
mod auto;
#[path = "../examples/custom_adapter.rs"]
mod custom_adapter;
#[path = "../examples/run_once.rs"]
mod run_once;
#[cfg(feature = "wasmtime")]
#[path = "../examples/wasm_skill.rs"]
mod wasm_skill;

#[test]
fn auto() -> prx_runtime::Result<()> {
    auto::main()
}

#[test]
fn custom_adapter() -> prx_runtime::Result<()> {
    custom_adapter::main()
}

#[test]
fn run_once() -> prx_runtime::Result<()> {
    run_once::main()
}

#[cfg(feature = "wasmtime")]
#[test]
fn wasm_skill() -> prx_runtime::Result<()> {
    wasm_skill::main()
}
