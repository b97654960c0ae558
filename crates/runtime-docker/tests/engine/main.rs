//! The backend on a real engine, one scenario to a file.
//!
//! Where no engine answers they are skipped and say so, unless `PRX_REQUIRE_BACKENDS` has `docker`
//! in it.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod bad_input;
mod elsewhere;
mod image;
mod isolation;
mod keep;
mod leftovers;
mod limits;
mod many;
mod oci_runtime;
mod podman_service;
mod podman_ways;
mod private;
mod pull;
mod requests;
mod restart;
mod rootless;
mod sessions;
mod support;
mod workspace;

#[path = "../common/apart.rs"]
mod apart;
#[path = "../common/images.rs"]
mod images;
#[path = "../common/podman.rs"]
mod podman;
#[path = "../common/registry.rs"]
mod registry;
