//! The network is granted as a whole or not at all.

use std::net::TcpListener;

use prx_runtime_core::{ExecutionOutput, Exposure};

use crate::common::{NETWORK, place};

async fn run(granted: bool, args: &[&str]) -> ExecutionOutput {
    let mut place = place();
    place.config.runtime.wasm.capabilities.network = granted;
    let output = place
        .runtime()
        .run(place.request(NETWORK.name(), args))
        .await
        .unwrap();
    assert_eq!(output.isolation.open.contains(&Exposure::Network), granted);
    output
}

/// What works with the grant, and only with it.
async fn assert_granted_only(args: &[&str]) {
    let with = run(true, args).await;
    assert_eq!(
        with.stdout.to_text(),
        "ok\n",
        "{args:?}: {}",
        with.stderr.to_text()
    );
    let without = run(false, args).await;
    assert!(!without.success(), "{args:?}: {}", without.stdout.to_text());
}

#[tokio::test]
async fn connecting_needs_the_grant() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    assert_granted_only(&["connect", &port]).await;
    // One connection came, and no second one.
    listener.set_nonblocking(true).unwrap();
    assert!(listener.accept().is_ok());
    assert!(listener.accept().is_err());
}

#[tokio::test]
async fn listening_needs_the_grant() {
    assert_granted_only(&["bind-tcp"]).await;
}

#[tokio::test]
async fn datagrams_need_the_grant() {
    assert_granted_only(&["bind-udp"]).await;
}

#[tokio::test]
async fn looking_up_a_name_needs_the_grant() {
    assert_granted_only(&["look-up", "localhost"]).await;
}
