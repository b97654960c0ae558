//! Without the grant no socket is opened, by nobody in the whole process: the system is asked.

use std::process::Command;

use prx_fixtures::Guest;
use prx_runtime_core::RuntimeAdapter as _;

use crate::common::{NETWORK, engine, place};

/// The port that no service has: discard.
const PORT: &str = "9";

/// The calls that open a socket in what one test of this file does.
///
/// # Panics
///
/// The test fails.
#[expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test of this binary, seen from outside, or said to be skipped"
)]
fn sockets_of(test: &str) -> Option<Vec<String>> {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let this = std::env::current_exe().unwrap();
    let mut strace = Command::new("strace");
    strace
        .args(["-f", "-qq", "-e", "trace=socket,connect", "-o"])
        .arg(trace.path())
        .arg(this)
        .args(["--exact", test, "--test-threads", "1"]);
    let output = match strace.output() {
        Ok(output) => output,
        Err(error) => {
            let required = std::env::var_os(prx_fixtures::REQUIRE_BACKENDS).is_some();
            assert!(!required, "strace is required here: {error}");
            println!("skipped: strace cannot be started: {error}");
            return None;
        }
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(said.contains("1 passed"), "{said}");
    let calls = std::fs::read_to_string(trace.path()).unwrap();
    Some(calls.lines().map(str::to_owned).collect())
}

/// Whether a guest that tries to connect to nobody says that it could, and whether its engine would
/// tell it.
async fn connects(granted: bool) -> (bool, bool) {
    let mut place = place();
    place.config.runtime.wasm.capabilities.network = granted;
    let runtime = engine(&place);
    let hello = runtime.run(place.request(Guest::HELLO.name(), &[])).await;
    assert_eq!(hello.unwrap().stdout.as_bytes(), b"hello\n");
    let guest = place.request(NETWORK.name(), &["connect", PORT]);
    let connected = runtime.run(guest).await.unwrap().success();
    (connected, runtime.engine_capabilities().connect_errors)
}

#[tokio::test]
async fn a_guest_without_the_grant_is_refused() {
    let (connected, _) = connects(false).await;
    assert!(!connected);
}

#[tokio::test]
async fn a_guest_with_the_grant_finds_nobody() {
    let (connected, told) = connects(true).await;
    assert_eq!(connected, !told);
}

#[test]
fn no_socket_is_opened_without_the_grant() {
    let with = sockets_of("sockets::a_guest_with_the_grant_finds_nobody");
    let without = sockets_of("sockets::a_guest_without_the_grant_is_refused");
    let (Some(with), Some(without)) = (with, without) else {
        return;
    };
    // What is looked for is found where it is.
    assert!(
        with.iter().any(|call| call.contains("socket(AF_INET")),
        "{with:?}"
    );
    assert!(without.is_empty(), "{without:?}");
}
