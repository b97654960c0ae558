//! Every example is run, not only compiled.

#![cfg(feature = "native")]
#[path = "../examples/auto.rs"]
mod auto;
#[path = "../examples/custom_adapter.rs"]
mod custom_adapter;
#[cfg(all(target_os = "linux", feature = "docker"))]
#[path = "../../runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "of the images only one is used here")]
mod images;
#[cfg(feature = "docker")]
#[path = "../examples/mcp_in_container.rs"]
#[expect(
    dead_code,
    reason = "the test names the image, so `main` is not called"
)]
mod mcp_in_container;
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

#[cfg(all(target_os = "linux", feature = "docker"))]
#[tokio::test]
async fn mcp_in_container() -> Result<(), Box<dyn std::error::Error>> {
    if let Err(reason) = images::docker(&["version"]) {
        prx_fixtures::skip("docker", reason);
        return Ok(());
    }
    mcp_in_container::talk(images::BUSYBOX.make()?).await
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
