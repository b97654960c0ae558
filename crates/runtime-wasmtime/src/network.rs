//! What a guest may do with the network: everything or nothing.

use wasmtime_wasi::WasiCtxBuilder;

/// Grants TCP, UDP and name lookup, or none of them.
pub(crate) fn grant(wasi: &mut WasiCtxBuilder, granted: bool) {
    wasi.allow_tcp(granted)
        .allow_udp(granted)
        .allow_ip_name_lookup(granted);
    if granted {
        wasi.inherit_network();
    }
}
