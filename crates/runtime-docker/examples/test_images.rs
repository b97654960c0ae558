//! Makes the images that the tests of this crate run, or says with `--check` which are missing.
//! `cargo xtask fixtures` calls it; the tests make what they miss by themselves.

#[path = "../tests/common/images.rs"]
mod images;

use std::process::ExitCode;

#[expect(clippy::print_stderr, reason = "a program with words for people")]
fn main() -> ExitCode {
    let check = std::env::args().any(|arg| arg == "--check");
    if let Err(reason) = images::docker(&["version"]) {
        eprintln!("no engine answers: {reason}");
        return ExitCode::FAILURE;
    }
    let mut code = ExitCode::SUCCESS;
    for image in [
        &images::BUSYBOX,
        &images::WILFUL,
        &images::LINKED,
        &images::INTRUSIVE,
        &images::LEADING,
        &images::SHELLLESS,
        &images::BRIEF,
    ] {
        if check && !image.is_there() {
            eprintln!("missing: {}", image.name);
            code = ExitCode::FAILURE;
        } else if let Err(error) = image.make() {
            eprintln!("{}: {error}", image.name);
            code = ExitCode::FAILURE;
        }
    }
    code
}
