//! A real MCP client talks to a real MCP server that runs as a live execution.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod client;
#[cfg(feature = "docker")]
mod docker;
#[cfg(feature = "docker")]
#[path = "../../../../crates/runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "one image is enough here")]
mod images;
mod native;
