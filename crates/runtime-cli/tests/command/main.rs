//! The command `prx-runtime` from outside, as a host process: one scenario to a file.

#![cfg(all(target_os = "linux", feature = "native"))]
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../runtime-native/tests/behaviour/alone.rs"]
mod alone;
mod audit;
mod bad_input;
mod broken_pipe;
mod completions;
mod config;
#[cfg(feature = "docker")]
mod containers;
mod denied_socket;
mod doctor;
mod hostile_host;
#[cfg(feature = "docker")]
#[path = "../../../runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "two images are enough here")]
mod images;
mod json;
mod killed_host;
mod live_output;
mod plan;
mod readme_commands;
#[cfg(feature = "docker")]
#[path = "../../../runtime-docker/tests/common/registry.rs"]
mod registry;
mod signals;
#[path = "../../../runtime-native/tests/behaviour/sleeper.rs"]
mod sleeper;
mod slow_reader;
mod stage;
mod stdin;
mod wasm;
