//! What a guest may do with the network: everything or nothing.

use std::sync::Arc;

use virtual_net::{DynVirtualNetworking, UnsupportedVirtualNetworking};
use wasmer_wasix::LocalNetworking;

/// TCP, UDP and name lookup of the host, or none of them: then nothing that could open a socket is
/// even made. Needs a tokio runtime where they are granted.
pub(crate) fn grant(granted: bool) -> DynVirtualNetworking {
    if granted {
        Arc::new(LocalNetworking::new())
    } else {
        Arc::new(UnsupportedVirtualNetworking::default())
    }
}
