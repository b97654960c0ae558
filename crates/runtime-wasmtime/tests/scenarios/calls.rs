//! What a command means, and what a call returns.

use std::fs;
use std::time::Duration;

use prx_fixtures::Guest;
use prx_runtime_core::config::{ToolCapabilities, ToolConfig, ToolKind};
use prx_runtime_core::{ErrorKind, ExecutionRequest, Exposure, IsolationLevel, Termination};

use prx_wasm_trials::config_path;

use crate::common::place;

fn tool(module: &str) -> ToolConfig {
    let mut tool = ToolConfig::new(ToolKind::Wasm);
    tool.module = Some(module.into());
    tool
}

#[tokio::test]
async fn a_line_is_split_into_words() {
    let place = place();
    let request = ExecutionRequest::shell(r#"box args 'a b' "c d" e\ f"#);
    let output = place
        .runtime()
        .run(request.working_dir(place.workspace()))
        .await
        .unwrap();
    assert_eq!(output.stdout.as_bytes(), b"a b\0c d\0e f\0");
}

#[tokio::test]
async fn a_line_that_needs_a_shell_is_refused() {
    let place = place();
    for line in [
        "box args a | box cat",
        "box args > file",
        "box args $HOME",
        "box args; box args",
    ] {
        let error = place
            .runtime()
            .run(ExecutionRequest::shell(line))
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
        assert!(
            error.to_string().contains("WebAssembly has none"),
            "{error}"
        );
    }
}

#[tokio::test]
async fn a_program_is_given_its_arguments_as_they_are() {
    let place = place();
    let output = place.run(&["args", "$HOME", "a|b", "", "ñ"]).await;
    assert_eq!(output.stdout.as_bytes(), "$HOME\0a|b\0\0ñ\0".as_bytes());
    assert_eq!(place.run(&["name"]).await.stdout.to_text(), "box");
}

#[tokio::test]
async fn a_module_is_found_by_name_and_by_path() {
    let place = place();
    fs::copy(Guest::HELLO.path(), place.workspace().join("mine")).unwrap();
    let absolute = Guest::HELLO.path();
    for program in ["hello", "hello.wasm", "./mine", absolute.to_str().unwrap()] {
        let output = place
            .runtime()
            .run(place.request(program, &["x"]))
            .await
            .unwrap();
        assert_eq!(output.stdout.to_text(), "hello\n", "{program}");
    }
}

#[tokio::test]
async fn a_component_runs_as_a_module_does() {
    let place = place();
    let run = |args: &'static [&'static str]| {
        let request = place
            .request(Guest::BOX_COMPONENT.name(), args)
            .stdin_bytes("in");
        let runtime = place.runtime();
        async move { runtime.run(request).await.unwrap() }
    };
    assert_eq!(run(&["args", "a b"]).await.stdout.as_bytes(), b"a b\0");
    assert_eq!(run(&["cat"]).await.stdout.as_bytes(), b"in");
    assert_eq!(run(&["exit", "0"]).await.exit_code, 0);
    let trapped = run(&["trap"]).await;
    assert!(
        matches!(trapped.termination, Termination::Trapped(_)),
        "{trapped:?}"
    );
    assert_eq!(
        run(&["grow-trap"]).await.termination,
        Termination::OutOfMemory
    );
    fs::write(place.workspace().join("file"), "here").unwrap();
    assert_eq!(run(&["read", "file"]).await.stdout.to_text(), "here");
}

#[tokio::test]
async fn every_exit_code_arrives() {
    let place = place();
    for code in ["0", "1", "3", "125", "126", "127", "128", "255"] {
        let output = place.run(&["exit", code]).await;
        assert_eq!(output.termination, Termination::Exited);
        assert_eq!(output.exit_code.to_string(), code);
    }
    // As for a process, eight bits count.
    assert_eq!(place.run(&["exit", "256"]).await.exit_code, 0);
    assert_eq!(place.run(&["exit", "-1"]).await.exit_code, 255);
}

#[tokio::test]
async fn a_tool_has_arguments_limits_and_grants_of_its_own() {
    let mut place = place();
    let data = place.root().join("data");
    fs::create_dir(&data).unwrap();
    fs::write(data.join("file"), "of the tool").unwrap();
    let mut reader = tool("box.wasm");
    reader.args = vec!["read".into()];
    reader.env.insert("MODE".into(), "x".into());
    let mut capabilities = ToolCapabilities::default();
    capabilities.filesystem_read = Some(vec![format!("{}::/data", data.display())]);
    capabilities.filesystem_write = Some(Vec::new());
    reader.capabilities = Some(capabilities);
    let mut small = tool("box");
    small.module = Some(config_path(&Guest::BOX.path()));
    small.max_memory_mb = Some(8);
    small.timeout_secs = Some(1);
    place.config.tools.custom.insert("reader".into(), reader);
    place.config.tools.custom.insert("small".into(), small);
    let runtime = place.runtime();

    let output = runtime
        .run(place.request("reader", &["/data/file"]))
        .await
        .unwrap();
    assert_eq!(output.stdout.to_text(), "of the tool");
    assert!(output.isolation.open.contains(&Exposure::FileSystem));
    assert!(
        !runtime
            .run(place.request("box", &["read", "/data/file"]))
            .await
            .unwrap()
            .success()
    );

    let grown = runtime
        .run(place.request("small", &["grow"]))
        .await
        .unwrap();
    assert!(grown.stdout.to_text().trim().parse::<u64>().unwrap() <= 8 << 20);
    let request = place
        .request("small", &["sleep", "60000"])
        .timeout(Duration::from_secs(60));
    assert_eq!(
        runtime.run(request).await.unwrap().termination,
        Termination::TimedOut
    );
}

#[tokio::test]
async fn the_isolation_says_what_is_granted() {
    let mut place = place();
    let output = place.run(&["exit", "0"]).await;
    assert_eq!(output.isolation.level, IsolationLevel::Container);
    assert!(output.isolation.open.is_empty(), "{}", output.isolation);
    assert!(
        output
            .isolation
            .applied
            .iter()
            .any(|what| what == "memory limit 128 MiB")
    );
    assert!(
        output
            .isolation
            .applied
            .iter()
            .any(|what| what == "no network")
    );
    let root = place.root().to_owned();
    place.config.runtime.wasm.capabilities.filesystem_read = vec![root.display().to_string()];
    assert_eq!(
        place.run(&["exit", "0"]).await.isolation.open,
        [Exposure::FileSystem]
    );
}

#[tokio::test]
async fn a_directory_that_is_granted_and_not_there_is_named() {
    let mut place = place();
    place.config.runtime.wasm.capabilities.filesystem_read = vec!["/nowhere/at/all".into()];
    let error = place
        .runtime()
        .run(place.boxed(&["exit", "0"]))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Refused);
    assert!(error.to_string().contains("`/nowhere/at/all`"), "{error}");
}

#[tokio::test]
async fn what_would_be_done_is_said() {
    let place = place();
    let description = place
        .runtime()
        .describe(&place.boxed(&["args", "a"]))
        .unwrap();
    let text = format!("{description:?}");
    assert!(
        text.contains("box.wasm") && text.contains("/workspace"),
        "{text}"
    );
}

#[tokio::test]
async fn the_probe_runs_a_guest() {
    let probe = place().runtime().probe().await;
    assert!(probe.available, "{probe:?}");
    assert!(probe.detail.contains("wasmtime 48"), "{probe:?}");
}

#[tokio::test]
async fn output_is_streamed_while_the_guest_runs() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    let place = place();
    for guest in [Guest::BOX, Guest::BOX_COMPONENT] {
        let request = place.request(guest.name(), &["echo-lines"]);
        let mut execution = place
            .runtime()
            .spawn(request.stdin(prx_runtime_core::Stdin::Piped))
            .await
            .unwrap();
        let mut stdin = execution.stdin.take().unwrap();
        let mut stdout = execution.stdout.take().unwrap();
        for line in ["one\n", "two\n"] {
            stdin.write_all(line.as_bytes()).await.unwrap();
            let mut answer = vec![0; "echo:".len() + line.len()];
            stdout.read_exact(&mut answer).await.unwrap();
            assert_eq!(answer, format!("echo:{line}").as_bytes());
        }
        drop(stdin);
        assert_eq!(execution.wait().await.unwrap().exit_code, 0);
    }
}

#[tokio::test]
async fn a_slow_reader_loses_nothing() {
    use tokio::io::AsyncReadExt as _;

    let place = place();
    for guest in [Guest::BOX, Guest::BOX_COMPONENT] {
        let bytes = 3 << 20;
        let request = place.request(guest.name(), &["fill", &bytes.to_string(), "0"]);
        let mut execution = place.runtime().spawn(request).await.unwrap();
        let mut stdout = execution.stdout.take().unwrap();
        let mut read = Vec::new();
        stdout.read_to_end(&mut read).await.unwrap();
        assert_eq!(read.len(), bytes);
        assert_eq!(execution.wait().await.unwrap().exit_code, 0);
    }
}
