//! What holds by default, as seen from inside and from the engine.

use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, IsolationLevel, RuntimeAdapter, Stdin};

use crate::images::docker;
use crate::support::{container_of, eventually, need_engine, runtime, sh};

#[tokio::test]
async fn the_inside_of_a_default_container() {
    need_engine!();
    let output = sh(
        &runtime(""),
        "ls /sys/class/net; echo --; \
         grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; echo --; \
         touch /file 2>/dev/null || echo 'root is read-only'; \
         touch /etc/passwd 2>/dev/null || echo 'etc is read-only'; \
         touch /tmp/file && echo 'tmp is writable'; \
         touch \"$HOME/file\" && echo 'home is writable'; \
         find / -xdev -name '*.sock' 2>/dev/null; \
         mount -t tmpfs none /mnt 2>/dev/null || echo 'no mount'; \
         cat /proc/1/environ | grep -c SECRET",
    )
    .await;
    let text = output.stdout.to_string();
    let parts: Vec<_> = text.split("--\n").collect();
    assert_eq!(parts[0], "lo\n", "{output:?}");
    for line in parts[1].lines() {
        let (name, value) = line.split_once(":\t").unwrap();
        match name {
            "NoNewPrivs" => assert_eq!(value, "1"),
            // 2: a filter.
            "Seccomp" => assert_eq!(value, "2"),
            _ => assert_eq!(value, "0000000000000000", "{line}"),
        }
    }
    assert_eq!(
        parts[2],
        "root is read-only\netc is read-only\ntmp is writable\nhome is writable\nno mount\n0\n"
    );
    assert_eq!(output.isolation.level, IsolationLevel::Container);
    assert!(output.isolation.open.is_empty(), "{}", output.isolation);
    assert!(
        output.isolation.not_enforced.is_empty(),
        "{}",
        output.isolation
    );
}

#[tokio::test]
async fn the_engine_confirms_it() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let request = ExecutionRequest::program("cat")
        .stdin(Stdin::Piped)
        .working_dir(dir.path());
    let mut execution = runtime.spawn(request).await.unwrap();
    let container = container_of(execution.id());
    let shown = docker(&[
        "inspect",
        &container,
        "--format",
        "{{.HostConfig.NetworkMode}} {{.HostConfig.ReadonlyRootfs}} {{.HostConfig.Privileged}} \
         {{.HostConfig.CapDrop}} {{.HostConfig.CapAdd}} {{.HostConfig.Memory}} \
         {{.HostConfig.MemorySwap}} {{.HostConfig.PidsLimit}} {{.HostConfig.NanoCpus}} \
         {{.HostConfig.LogConfig.Type}} {{len .Mounts}} {{(index .Mounts 0).Destination}}",
    ])
    .unwrap();
    assert_eq!(
        shown,
        "none true false [ALL] <no value> 268435456 268435456 100 1000000000 none 1 /workspace"
    );
    drop(execution.stdin.take());
    assert!(execution.wait().await.unwrap().success());
    eventually("the container is gone", || {
        docker(&["inspect", &container]).is_err()
    })
    .await;
}

#[tokio::test]
async fn a_listener_of_the_host_is_not_reached() {
    need_engine!();
    let listener = tokio::net::TcpListener::bind("0.0.0.0:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move { while listener.accept().await.is_ok() {} });
    let gateway = docker(&[
        "network",
        "inspect",
        "bridge",
        "--format",
        "{{(index .IPAM.Config 0).Gateway}}",
    ])
    .unwrap();
    let line = format!("nc -w 2 {gateway} {port} </dev/null && echo reached || echo not reached");
    let none = sh(&runtime(""), &line).await;
    assert_eq!(none.stdout.to_string(), "not reached\n");

    let bridge = sh(&runtime("network = \"bridge\""), "ls /sys/class/net").await;
    assert!(bridge.stdout.to_string().contains("eth0"), "{bridge:?}");
    assert!(
        !bridge.isolation.open.is_empty(),
        "the network is said to be open"
    );

    // With the host's network, the host's loopback is the container's own.
    let line = format!("nc -w 2 127.0.0.1 {port} </dev/null && echo reached || echo not reached");
    let host = sh(&runtime("network = \"host\""), &line).await;
    assert_eq!(host.stdout.to_string(), "reached\n");
    let bridge = sh(&runtime("network = \"bridge\""), &line).await;
    assert_eq!(bridge.stdout.to_string(), "not reached\n");
}

#[tokio::test]
async fn output_is_not_kept_by_the_engine() {
    need_engine!();
    let runtime = runtime("");
    let dir = tempfile::tempdir().unwrap();
    let line = "head -c 20000000 /dev/zero; cat";
    let request = ExecutionRequest::shell(line)
        .stdin(Stdin::Piped)
        .working_dir(dir.path());
    let mut execution = runtime
        .spawn(request.timeout(Duration::from_secs(120)))
        .await
        .unwrap();
    let mut stdout = execution.stdout.take().unwrap();
    let mut read = vec![0; 20_000_000];
    tokio::io::AsyncReadExt::read_exact(&mut stdout, &mut read)
        .await
        .unwrap();
    drop(stdout);
    let container = container_of(execution.id());
    let log = docker(&["inspect", &container, "--format", "[{{.LogPath}}]"]).unwrap();
    assert_eq!(log, "[]");
    drop(execution.stdin.take());
    assert_eq!(
        execution.wait().await.unwrap().stdout.total_bytes(),
        20_000_000
    );
}
