//! `[security]` takes effect through the factory.

#![cfg(all(feature = "sandbox", target_os = "linux"))]
#![expect(
    clippy::unwrap_used,
    reason = "in a test, a panic is how a failure is said"
)]

use prx_runtime::config::Config;
use prx_runtime::{ErrorKind, ExecutionRequest, IsolationLevel, create_runtime};

fn config(text: &str) -> Config {
    Config::from_toml_str(text, "config.toml").unwrap()
}

#[tokio::test]
async fn auto_confines_and_meets_the_minimum() {
    let config = config(
        "[runtime]\nbackend = \"native\"\nminimum_isolation = \"sandbox\"\n\
         [security.sandbox]\nbackend = \"auto\"\n",
    );
    let runtime = create_runtime(&config).await.unwrap();
    let directory = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::shell("echo x > /etc/prx-trial").working_dir(directory.path());
    let output = runtime.run(request).await.unwrap();
    assert!(!output.success());
    assert_eq!(output.isolation.level, IsolationLevel::Sandbox);
}

#[tokio::test]
async fn a_limit_alone_is_enforced_and_is_no_isolation() {
    let limited =
        config("[runtime]\nbackend = \"native\"\n[security.resources]\nmax_open_files = 64\n");
    let runtime = create_runtime(&limited).await.unwrap();
    let output = runtime
        .run(ExecutionRequest::shell("ulimit -n"))
        .await
        .unwrap();
    assert_eq!(output.stdout.to_string(), "64\n");
    assert_eq!(output.isolation.level, IsolationLevel::None);
}

#[test]
fn a_sandbox_that_cannot_be_is_refused_or_said() {
    // In a process of its own, which finds no program: what is on PATH belongs to all of a process.
    let (name, marker) = (
        "a_sandbox_that_cannot_be_is_refused_or_said",
        "PRX_TEST_WITHOUT_PROGRAMS",
    );
    if std::env::var_os(marker).is_none() {
        let output = again(name).env(marker, "1").env("PATH", "").output();
        let output = output.unwrap();
        assert!(output.status.success(), "{output:?}");
        return;
    }
    let text = |backend: &str, level: &str| {
        format!(
            "[runtime]\nbackend = \"native\"\n\
             [security.sandbox]\nbackend = \"{backend}\"\nlevel = \"{level}\"\n"
        )
    };
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.block_on(async {
        for backend in ["firejail", "bubblewrap"] {
            let error = create_runtime(&config(&text(backend, "require"))).await;
            let error = error.err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error}");
            let said = error.to_string();
            assert!(said.contains("security.sandbox.backend"), "{said}");
            assert!(said.contains("install"), "{said}");
            let runtime = create_runtime(&config(&text(backend, "best-effort"))).await;
            let output = runtime.unwrap().run(ExecutionRequest::shell(":")).await;
            let isolation = output.unwrap().isolation;
            assert_eq!(isolation.level, IsolationLevel::None);
            assert!(isolation.to_string().contains(backend), "{isolation}");
        }
    });
}

#[expect(
    clippy::disallowed_methods,
    reason = "starts this very test with another PATH"
)]
fn again(test: &str) -> std::process::Command {
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture"]);
    command
}

#[test]
fn a_runtime_is_no_sandbox() {
    let error = Config::from_toml_str("[security.sandbox]\nbackend = \"docker\"\n", "config.toml")
        .unwrap_err();
    assert!(error.to_string().contains("runtime.backend"), "{error}");
}
