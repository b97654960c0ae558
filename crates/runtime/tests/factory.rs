//! The factory: what it refuses, and what it says then.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use prx_runtime::config::Config;
use prx_runtime::{Error, ErrorKind, backends, create_runtime};

async fn refusal(runtime: &str) -> Error {
    let text = format!("[runtime]\n{runtime}\n");
    let config = Config::from_toml_str(&text, "test.toml").unwrap();
    match create_runtime(&config).await {
        Ok(runtime) => panic!("a runtime `{}` was made", runtime.name()),
        Err(error) => error,
    }
}

#[tokio::test]
async fn an_unknown_backend_is_told_what_is_compiled_in() {
    let error = refusal("backend = \"podmn\"").await;
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert!(error.message().contains("`podmn`"), "{error}");
    let hint = error.hint().unwrap();
    for backend in backends() {
        let listed = hint.contains(backend.name);
        assert_eq!(listed, backend.compiled, "{}: {hint}", backend.name);
    }
    assert!(hint.contains("auto"), "{hint}");
}

#[tokio::test]
async fn a_backend_that_is_not_compiled_in_is_told_its_feature() {
    for backend in backends().filter(|backend| !backend.compiled) {
        let error = refusal(&format!("backend = \"{}\"", backend.name)).await;
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("not compiled in"), "{error}");
        assert!(error.hint().unwrap().contains("--features"), "{error}");
    }
}

#[cfg(feature = "native")]
#[tokio::test]
async fn a_bare_process_is_refused_where_isolation_is_demanded() {
    for minimum in ["sandbox", "container"] {
        let error = refusal(&format!(
            "backend = \"native\"\nminimum_isolation = \"{minimum}\""
        ))
        .await;
        assert_eq!(error.kind(), ErrorKind::Refused);
        assert!(error.message().contains(minimum), "{error}");
        assert!(error.message().contains("native"), "{error}");
    }
}
