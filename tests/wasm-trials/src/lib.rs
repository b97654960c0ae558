//! What the tests of both WebAssembly engines share: how the contract is spelled for a guest, and
//! trials that hold on either.

mod driver;
mod place;
mod programs;
#[cfg(target_os = "linux")]
mod race;

pub use driver::{Make, WasmDriver, config_path};
pub use place::Place;
pub use programs::programs;
#[cfg(target_os = "linux")]
pub use race::{Race, Raced};
