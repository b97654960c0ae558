//! Tools by name: what is registered, what is discovered, and a configuration that changes.

#![cfg(feature = "native")]
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is said"
)]

use std::time::Duration;

use prx_runtime::config::Config;
use prx_runtime::{ErrorKind, Termination, ToolCall, ToolRegistry};

const TOOLS: &str = r#"
[runtime.wasm]
module_path = "MODULES"

[tools.custom.greet]
type = "native"
command = "/bin/sh"
args = ["-c", 'printf "%s %s" "$GREETING" "$1"', "greet"]
description = "greets"
env = { GREETING = "hello" }

[tools.custom.slow]
type = "native"
command = "sleep"
args = ["30"]
timeout_secs = 1
"#;

/// A registry over a module directory of its own.
fn registry(text: &str) -> (ToolRegistry, tempfile::TempDir) {
    let modules = tempfile::tempdir().unwrap();
    let config = read(text, &modules);
    (ToolRegistry::new(&config).unwrap(), modules)
}

fn read(text: &str, modules: &tempfile::TempDir) -> Config {
    let text = text.replace("MODULES", modules.path().to_str().unwrap());
    Config::from_toml_str(&text, "config.toml").unwrap()
}

#[tokio::test]
async fn a_tool_has_its_own_arguments_and_variables_before_those_of_the_call() {
    let (tools, _modules) = registry(TOOLS);
    let output = tools
        .run("greet", ToolCall::new().args(["you"]))
        .await
        .unwrap();
    assert_eq!(output.stdout.to_string(), "hello you");
}

#[tokio::test]
async fn a_call_cannot_outlast_its_tool() {
    let (tools, _modules) = registry(TOOLS);
    let call = ToolCall::new().timeout(Duration::from_secs(3600));
    let output = tools.run("slow", call).await.unwrap();
    assert_eq!(output.termination, Termination::TimedOut);
}

#[test]
fn skills_are_listed_as_soon_as_they_are_there() {
    let (tools, modules) = registry(TOOLS);
    let names = || -> Vec<String> {
        tools
            .list()
            .unwrap()
            .into_iter()
            .map(|tool| tool.name)
            .collect()
    };
    assert_eq!(names(), ["greet", "slow"]);
    std::fs::write(modules.path().join("count.wasm"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(modules.path().join("greet.wasm"), b"\0asm\x01\0\0\0").unwrap();
    std::fs::write(modules.path().join("notes.txt"), b"").unwrap();
    assert_eq!(names(), ["count", "greet", "slow"]);
    // A registered tool hides a skill of its name.
    assert_eq!(tools.resolve("greet").unwrap().kind.as_str(), "native");
}

#[tokio::test]
async fn an_unknown_tool_says_what_was_searched_and_what_there_is() {
    let (tools, modules) = registry(TOOLS);
    let error = tools.run("gret", ToolCall::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ProgramNotFound);
    assert_eq!(
        error.to_string(),
        format!(
            "there is no tool `gret`; searched [tools.custom] and `{}` (hint: there are: greet, \
             slow)",
            modules.path().display()
        )
    );
}

#[tokio::test]
async fn a_new_configuration_applies_to_new_calls_and_a_broken_one_to_none() {
    let (tools, modules) = registry(TOOLS);
    let mut old = tools
        .spawn("greet", ToolCall::new().args(["old"]))
        .await
        .unwrap();
    tools
        .reload(&read(&TOOLS.replace("\"hello\"", "\"bye\""), &modules))
        .unwrap();
    let new = tools
        .run("greet", ToolCall::new().args(["new"]))
        .await
        .unwrap();
    assert_eq!(new.stdout.to_string(), "bye new");
    assert_eq!(old.wait().await.unwrap().stdout.to_string(), "hello old");

    let file = modules.path().join("config.toml");
    std::fs::write(&file, "[runtime]\nbackend = \"\"").unwrap();
    let error = tools.reload_from(&file).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    let same = tools
        .run("greet", ToolCall::new().args(["still"]))
        .await
        .unwrap();
    assert_eq!(same.stdout.to_string(), "bye still");
}

#[tokio::test]
async fn a_description_names_variables_and_tells_no_value() {
    let (tools, _modules) = registry(TOOLS);
    let call = ToolCall::new().args(["you"]).env("API_KEY", "swordfish");
    let description = tools.describe("greet", call).await.unwrap();
    assert_eq!(description.backend, "native");
    assert_eq!(description.argv.first().unwrap(), "/bin/sh");
    assert_eq!(description.argv.last().unwrap(), "you");
    assert_eq!(description.refused_env, ["API_KEY"]);
    let greeting = description
        .environment
        .iter()
        .find(|variable| variable.name == "GREETING");
    assert!(greeting.is_some());
    assert!(!format!("{description:?}").contains("swordfish"));
}

#[cfg(not(any(feature = "wasmtime", feature = "wasmer")))]
#[tokio::test]
async fn a_tool_whose_backend_is_left_out_names_the_feature() {
    let (tools, modules) = registry(TOOLS);
    std::fs::write(modules.path().join("count.wasm"), b"\0asm\x01\0\0\0").unwrap();
    let error = tools.run("count", ToolCall::new()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(
        error.to_string().contains("--features wasm-runtime"),
        "{error}"
    );
}
