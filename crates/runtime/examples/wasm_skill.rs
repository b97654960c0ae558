//! Runs a skill: a WebAssembly module that a configuration registers as a tool.

use prx_runtime::{ToolCall, ToolRegistry, config::Config};

/// The whole example.
#[tokio::main(flavor = "current_thread")]
pub(crate) async fn main() -> prx_runtime::Result<()> {
    // A skill that prints `hello`, from the tests of this project.
    let module = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/fixtures/wasm/hello.wasm"
    );
    let text = format!(
        "[tools.custom.hello]\ntype = \"wasm\"\nmodule = \"{module}\"\ndescription = \"greets\"\n\
         capabilities = {{ filesystem_read = [], filesystem_write = [] }}\n"
    );
    let tools = ToolRegistry::new(&Config::from_toml_str(&text, "config.toml")?)?;
    assert_eq!(
        tools.resolve("hello")?.description.as_deref(),
        Some("greets")
    );
    let output = tools.run("hello", ToolCall::new()).await?;
    assert_eq!(output.stdout.to_string(), "hello\n");
    Ok(())
}
