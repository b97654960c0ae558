//! The backend on a real engine, one scenario to a file.
//!
//! Where no engine answers they are skipped and say so, unless `PRX_REQUIRE_BACKENDS` has `docker`
//! in it.

#![expect(
    clippy::unwrap_used,
    reason = "a scenario that cannot go on has failed"
)]

mod bad_input;
mod image;
mod isolation;
mod keep;
mod leftovers;
mod limits;
mod many;
mod pull;
mod requests;
mod restart;
mod sessions;
mod support;
mod workspace;

#[path = "../common/images.rs"]
mod images;
