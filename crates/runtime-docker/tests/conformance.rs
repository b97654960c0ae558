//! The contract, on a real engine.

#[path = "common/driver.rs"]
mod driver;
#[path = "common/images.rs"]
#[expect(dead_code, reason = "the contract needs one image, the scenarios more")]
mod images;

use std::process::ExitCode;

use prx_conformance::TokioKind;

fn main() -> ExitCode {
    // Where there is no engine, the suite itself says so.
    if images::docker(&["version"]).is_ok() {
        images::BUSYBOX.make().expect("the test image can be made");
    }
    prx_conformance::main(driver::EngineDriver {
        name: "docker",
        socket: None,
        image: images::BUSYBOX.name,
        ambient: &["HOME", "HOSTNAME", "PATH"],
        // Starting a container takes a third of a second of a processor; trials wait for more.
        at_once: 3,
        tokio_kinds: &TokioKind::ALL,
    })
}
