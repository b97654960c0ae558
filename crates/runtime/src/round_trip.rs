//! A backend, really used.

use std::net::TcpListener;
use std::time::Duration;

use prx_runtime_core::{ExecutionRequest, Exposure, RuntimeAdapter};

/// How long one command of a round trip may take.
const TIMEOUT: Duration = Duration::from_secs(5);
/// How long all of it may take, what a backend has to obtain included.
const PATIENCE: Duration = Duration::from_secs(10);

/// What came of using a backend.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RoundTrip {
    /// A command ran and its output came back; otherwise why not.
    pub command: Result<(), String>,
    /// A file that the command wrote in its working directory is there afterwards, and ours;
    /// otherwise why not.
    pub workspace: Result<(), String>,
    /// Whether the command reached a listener on the host's loopback.
    pub network_reached: bool,
    /// Whether the isolation says that it may.
    pub network_open: bool,
}

impl RoundTrip {
    /// Whether everything is as it should be.
    pub fn is_good(&self) -> bool {
        // An open network that was not reached may lack a client in the image: no fault.
        let network = self.network_open || !self.network_reached;
        self.command.is_ok() && self.workspace.is_ok() && network
    }
}

/// Uses `runtime`: a command, a file in a workspace, a connection. Answers within [`PATIENCE`].
pub(crate) async fn round_trip(runtime: &dyn RuntimeAdapter) -> RoundTrip {
    tokio::time::timeout(PATIENCE, really(runtime))
        .await
        .unwrap_or_else(|_| RoundTrip {
            command: Err(format!("no answer within {PATIENCE:?}")),
            workspace: Err("not tried".to_owned()),
            network_reached: false,
            network_open: true,
        })
}

async fn really(runtime: &dyn RuntimeAdapter) -> RoundTrip {
    let mut trip = RoundTrip {
        command: Err("not tried".to_owned()),
        workspace: Err("not tried".to_owned()),
        network_reached: false,
        network_open: true,
    };
    let directory = match tempfile::tempdir() {
        Ok(directory) => directory,
        Err(error) => {
            trip.command = Err(format!("no directory for a workspace: {error}"));
            return trip;
        }
    };
    let listener = TcpListener::bind("127.0.0.1:0").and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let port = listener
        .as_ref()
        .ok()
        .and_then(|listener| listener.local_addr().ok());
    let port = port.map_or(0, |address| address.port());
    // Whichever client there is: a shell's own, or one of two programs.
    let line = format!(
        "echo prx-runtime; echo written > round-trip; \
         (exec 3<>/dev/tcp/127.0.0.1/{port}) 2>/dev/null || \
         wget -q -T 1 -O - http://127.0.0.1:{port}/ 2>/dev/null || \
         nc -w 1 127.0.0.1 {port} </dev/null 2>/dev/null; exit 0"
    );
    let request = ExecutionRequest::shell(line)
        .working_dir(directory.path())
        .timeout(TIMEOUT);
    let output = match runtime.run(request).await {
        Ok(output) => output,
        Err(error) => {
            trip.command = Err(error.to_string());
            return trip;
        }
    };
    trip.network_open = output.isolation.open.contains(&Exposure::Network);
    trip.network_reached = listener.is_ok_and(|listener| listener.accept().is_ok());
    trip.command = if output.stdout.as_bytes() == b"prx-runtime\n" {
        Ok(())
    } else {
        Err(format!(
            "{} with code {}; it said: {} {}",
            output.termination,
            output.exit_code,
            output.stdout.to_text().trim(),
            output.stderr.to_text().trim()
        ))
    };
    trip.workspace = match std::fs::read(directory.path().join("round-trip")) {
        Ok(bytes) if bytes == b"written\n" => Ok(()),
        Ok(_) => Err("the file holds something else".to_owned()),
        Err(error) => Err(format!("the file cannot be read: {error}")),
    };
    trip
}
