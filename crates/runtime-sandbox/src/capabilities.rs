//! A thread without any capability, also where its user is root.

use std::io;

use rustix::thread::{CapabilitySet, CapabilitySets, set_capabilities};

/// Takes every capability from this thread and from what it starts.
pub(crate) fn drop_all() -> io::Result<()> {
    if rustix::process::geteuid().is_root() {
        for bit in 0..64 {
            let Some(capability) = 1_u64.checked_shl(bit).map(CapabilitySet::from_bits_retain)
            else {
                break;
            };
            // What this kernel does not know cannot be taken, and cannot be had.
            if rustix::thread::capability_is_in_bounding_set(capability).unwrap_or(false) {
                rustix::thread::remove_capability_from_bounding_set(capability)?;
            }
        }
    }
    let none = CapabilitySet::empty();
    let none = CapabilitySets {
        effective: none,
        permitted: none,
        inheritable: none,
    };
    set_capabilities(None, none)?;
    Ok(())
}
