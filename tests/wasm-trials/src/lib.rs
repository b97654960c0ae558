//! What the tests of both WebAssembly engines share: how the contract is spelled for a guest, and
//! trials that hold on either.

mod driver;
mod place;
#[cfg(target_os = "linux")]
mod race;

pub use driver::{Make, WasmDriver};
pub use place::Place;
#[cfg(target_os = "linux")]
pub use race::{Race, Raced};
