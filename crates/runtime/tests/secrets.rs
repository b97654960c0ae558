//! A secret of the host is seen by no tool on any backend, and stands in no log, no plan and no
//! `Debug`: one test over all.
//!
//! The test starts itself as a host that has secrets, logs everything and prints whatever can be
//! printed, and then searches what that host wrote.

#![cfg(all(target_os = "linux", feature = "native"))]
#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "in a test, a panic is how a failure is said, and this one prints to be searched"
)]

#[path = "common/configurations.rs"]
mod configurations;

use std::fmt::Debug;
use std::process::Command;

use configurations::Configuration;
use prx_runtime::{
    EnvironmentRules, ExecutionRequest, ToolCall, ToolRegistry, backends, create_runtime, diagnose,
};

/// Says that this process is the host that has secrets.
const HOST: &str = "PRX_TEST_HOST_WITH_SECRETS";
/// Variables of the host that no list names.
const SECRETS: [(&str, &str); 3] = [
    ("DEPLOY_TOKEN", "quokka-of-the-host"),
    ("AWS_SECRET_ACCESS_KEY", "wombat-of-the-host"),
    ("INTERNAL_ADDRESS", "numbat-of-the-host"),
];
/// What a tool may see, and nobody else: of the call, of the operator.
const OF_THE_CALL: &str = "bilby-of-the-call";
const OF_THE_OPERATOR: &str = "potoroo-of-the-operator";

#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "this test, as a host with secrets"
)]
fn no_secret_is_seen_anywhere() {
    if std::env::var_os(HOST).is_some() {
        return;
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_host", "--nocapture", "--test-threads", "1"])
        .env(HOST, "1")
        .envs(SECRETS)
        .output()
        .unwrap();
    let (printed, logged) = (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    );
    assert!(output.status.success(), "{printed}\n{logged}");
    // There was something to search.
    assert!(printed.contains("1 passed") && printed.contains("ExecutionOutput"));
    assert!(logged.contains("TRACE") && logged.contains("prx_runtime::audit"));
    for (what, text) in [("printed", &printed), ("logged", &logged)] {
        for secret in SECRETS.map(|(_, secret)| secret) {
            assert!(!text.contains(secret), "`{secret}` was {what}:\n{text}");
        }
        for value in [OF_THE_CALL, OF_THE_OPERATOR] {
            assert!(!text.contains(value), "`{value}` was {what}:\n{text}");
        }
    }
}

/// The host. Without secrets it has nothing to hide.
#[tokio::test]
async fn the_host() {
    if std::env::var_os(HOST).is_none() {
        return;
    }
    tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(std::io::stderr)
        .with_ansi(false)
        .init();
    for (name, secret) in SECRETS {
        assert_eq!(std::env::var(name).as_deref(), Ok(secret));
    }
    for configuration in configurations().await {
        let backend = configuration.backend;
        eprintln!("under {backend}: {}", configuration.more);
        use_everything(&configuration).await;
    }
    show(&backends().collect::<Vec<_>>());
}

async fn configurations() -> Vec<Configuration> {
    let mut all = vec![configurations::native()];
    #[cfg(feature = "sandbox")]
    for sandbox in ["bubblewrap", "landlock", "firejail"] {
        all.extend(configurations::native_in(sandbox).await);
    }
    #[cfg(feature = "docker")]
    all.extend(configurations::docker());
    #[cfg(feature = "wasmtime")]
    all.push(configurations::wasm("wasmtime"));
    #[cfg(feature = "wasmer")]
    all.push(configurations::wasm("wasmer"));
    all
}

fn show(what: &impl Debug) {
    println!("{what:?}\n{what:#?}");
}

async fn use_everything(configuration: &Configuration) {
    let mut config = configuration.config();
    let runtime = &mut config.runtime;
    for env in [
        &mut runtime.native.env,
        &mut runtime.docker.env,
        &mut runtime.wasm.env,
    ] {
        env.insert("OPERATOR_TOKEN".to_owned(), OF_THE_OPERATOR.to_owned());
    }
    show(&config);
    let adapter = create_runtime(&config).await.unwrap();
    let workspace = tempfile::tempdir().unwrap();
    let request = || {
        ExecutionRequest::program("env")
            .working_dir(workspace.path())
            .env("LANG", OF_THE_CALL)
            .env("SESSION_TOKEN", OF_THE_CALL)
    };
    show(&request());
    let plan = adapter.describe(&request()).unwrap();
    show(&plan);
    let mut output = adapter.run(request()).await.unwrap();
    let text = output.stdout.to_text().into_owned();
    // What was meant for it came.
    assert!(text.contains(OF_THE_CALL) && text.contains(OF_THE_OPERATOR));
    for (name, secret) in SECRETS {
        assert!(!text.contains(name) && !text.contains(secret), "{name}");
    }
    // The rest of the output is as printable as all else.
    output.stdout = prx_runtime::Captured::default();
    show(&output);
    show(
        &adapter
            .run(ExecutionRequest::program("no-such-program").arg("x"))
            .await,
    );
    show(&adapter.probe().await);
    show(&adapter.capabilities());
    let mut execution = adapter.spawn(request()).await.unwrap();
    show(&execution);
    execution.kill();
    let _ = execution.wait().await;
    show(&Box::pin(diagnose(&config)).await);
    let literal = &config.runtime.native.env;
    let rules = EnvironmentRules::new(&config.runtime.env_whitelist, literal).unwrap();
    show(&rules);
    show(
        &rules.build(
            &SECRETS
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
        ),
    );

    let registry = ToolRegistry::new(&config).unwrap();
    show(&registry);
    show(&registry.list().unwrap());
    let call = || {
        ToolCall::new()
            .working_dir(workspace.path())
            .env("LANG", OF_THE_CALL)
    };
    show(&call());
    if registry.resolve("env").is_ok() {
        show(&registry.describe("env", call()).await.unwrap());
        let output = registry.run("env", call()).await.unwrap();
        let text = output.stdout.to_text();
        for (_, secret) in SECRETS {
            assert!(!text.contains(secret));
        }
    }
}
