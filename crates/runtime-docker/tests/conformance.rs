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
        // A container takes a third of a second of a processor to start; and the more start and end at
        // once, the more likely Docker 20.10 locks itself up over the networks that they leave.
        at_once: 2,
        tokio_kinds: &TokioKind::ALL,
    })
}
