//! The network, where it is not allowed.

use std::net::{TcpListener, UdpSocket};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{SocketAddr, UnixDatagram, UnixListener};

use libtest_mimic::Failed;
use prx_runtime_core::Exposure;
use prx_runtime_core::config::SandboxKind;

use crate::Entry;
use crate::stage::{Stage, check, told};

pub(crate) const TRIALS: &[Entry] = &[
    ("tcp", tcp),
    ("udp", udp),
    ("unix_sockets", unix_sockets),
    ("abstract_sockets", abstract_sockets),
    (
        "unix_sockets_are_closed_or_said_to_be_open_beside_a_network",
        unix_beside_network,
    ),
    ("a_pair_of_datagrams_reaches_no_unix_socket", datagram_pairs),
    ("raw_packet_and_vsock", raw_packet_and_vsock),
    ("a_program_may_have_socket_pairs", pairs),
    ("the_network_is_there_where_it_is_allowed", allowed),
];

fn python(code: &str) -> String {
    format!("python3 -c 'import socket as s; {code}'")
}

fn tcp(stage: &Stage) -> Result<(), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    stage.denies(&python(&format!(
        "s.create_connection((\"127.0.0.1\", {port}), 5)"
    )))?;
    Ok(())
}

fn udp(stage: &Stage) -> Result<(), Failed> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.set_nonblocking(true)?;
    let port = socket.local_addr()?.port();
    let line = python(&format!(
        "s.socket(s.AF_INET, s.SOCK_DGRAM).sendto(b\"x\", (\"127.0.0.1\", {port}))"
    ));
    let mut buffer = [0; 8];
    let control = stage.bare(&line)?;
    check!(
        control.success() && socket.recv(&mut buffer).is_ok(),
        "{}",
        told(&control)
    );
    // In a namespace of its own it may send into the void.
    stage.confined(&line)?;
    check!(socket.recv(&mut buffer).is_err(), "a datagram came through");
    Ok(())
}

fn unix_sockets(stage: &Stage) -> Result<(), Failed> {
    let path = stage.outside().join("engine.sock");
    let _listener = UnixListener::bind(&path)?;
    let line = python(&format!(
        "s.socket(s.AF_UNIX).connect(\"{}\")",
        path.display()
    ));
    stage.denies(&line)?;
    // One in the workspace is no better: something of the host may listen there.
    let path = stage.workspace().join("engine.sock");
    let _listener = UnixListener::bind(&path)?;
    stage.denies(&python(&format!(
        "s.socket(s.AF_UNIX).connect(\"{}\")",
        path.display()
    )))?;
    if std::path::Path::new("/run/docker.sock").exists() {
        stage.refuses(&python("s.socket(s.AF_UNIX).connect(\"/run/docker.sock\")"))?;
    }
    Ok(())
}

fn abstract_sockets(stage: &Stage) -> Result<(), Failed> {
    let name = format!(
        "prx-trial-{}-{}",
        std::process::id(),
        stage.outside().display()
    );
    let _listener = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    stage.denies(&python(&format!(
        "s.socket(s.AF_UNIX).connect(\"\\0{name}\")"
    )))?;
    Ok(())
}

/// The same stage, with a network.
fn with_network(stage: &Stage) -> Stage {
    let mut config = stage.config.clone();
    config.security.sandbox.allow_network = true;
    stage.under(config)
}

fn unix_beside_network(stage: &Stage) -> Result<(), Failed> {
    let stage = &with_network(stage);
    let path = stage.outside().join("engine.sock");
    let _listener = UnixListener::bind(&path)?;
    let name = format!("prx-trial-network-{}", stage.outside().display());
    let _abstract = UnixListener::bind_addr(&SocketAddr::from_abstract_name(&name)?)?;
    for address in [path.display().to_string(), format!("\\0{name}")] {
        let line = python(&format!("s.socket(s.AF_UNIX).connect(\"{address}\")"));
        let control = stage.bare(&line)?;
        check!(control.success(), "{}", told(&control));
        let output = stage.confined(&line)?;
        let open = output.isolation.open.contains(&Exposure::UnixSockets);
        check!(output.success() == open, "{address}: {}", told(&output));
        check!(
            !open || stage.kind() != SandboxKind::Landlock,
            "landlock can close them"
        );
    }
    // Where services listen.
    let line = |path: &str| python(&format!("s.socket(s.AF_UNIX).connect(\"{path}\")"));
    let services = ["/run/docker.sock", "/run/containerd/containerd.sock"];
    for service in services {
        if stage.bare(&line(service))?.success() {
            stage.denies(&line(service))?;
        }
    }
    Ok(())
}

fn datagram_pairs(stage: &Stage) -> Result<(), Failed> {
    let path = stage.outside().join("log.sock");
    let socket = UnixDatagram::bind(&path)?;
    socket.set_nonblocking(true)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o777))?;
    let line = python(&format!(
        "s.socketpair(s.AF_UNIX, s.SOCK_DGRAM)[0].sendto(b\"x\", \"{}\")",
        path.display()
    ));
    let mut buffer = [0; 8];
    let control = stage.bare(&line)?;
    check!(
        control.success() && socket.recv(&mut buffer).is_ok(),
        "{}",
        told(&control)
    );
    stage.refuses(&line)?;
    check!(socket.recv(&mut buffer).is_err(), "a datagram came through");
    if stage.kind() == SandboxKind::Landlock {
        with_network(stage).refuses(&line)?;
        check!(socket.recv(&mut buffer).is_err(), "a datagram came through");
    }
    Ok(())
}

fn raw_packet_and_vsock(stage: &Stage) -> Result<(), Failed> {
    let root = rustix::process::getuid().is_root();
    for code in [
        "s.socket(s.AF_INET, s.SOCK_RAW, s.IPPROTO_ICMP)",
        "s.socket(s.AF_PACKET, s.SOCK_RAW, s.htons(3))",
    ] {
        if root {
            stage.denies(&python(code))?
        } else {
            stage.refuses(&python(code))?
        };
    }
    let vsock = python("s.socket(40, s.SOCK_STREAM)");
    if stage.bare(&vsock)?.success() {
        stage.denies(&vsock)?;
    }
    Ok(())
}

fn pairs(stage: &Stage) -> Result<(), Failed> {
    stage.allows(&python("a, b = s.socketpair(); a.send(b\"x\"); b.recv(1)"))?;
    Ok(())
}

fn allowed(stage: &Stage) -> Result<(), Failed> {
    let stage = with_network(stage);
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    stage.allows(&python(&format!(
        "s.create_connection((\"127.0.0.1\", {port}), 5)"
    )))?;
    // By name, for which libraries would rather ask a service by a Unix socket.
    stage.allows(&python("s.getaddrinfo(\"localhost\", 80)"))?;
    let output = stage.confined("true")?;
    check!(
        output.isolation.open.contains(&Exposure::Network),
        "{}",
        output.isolation
    );
    stage.refuses(&python("s.socket(40, s.SOCK_STREAM)"))?;
    Ok(())
}
