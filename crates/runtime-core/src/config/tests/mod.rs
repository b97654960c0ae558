//! Whole files: what is read from them, and what is said about wrong ones.

mod errors;
mod published;
mod round_trip;
mod shared_file;

use super::Config;

/// Reads a file that is right.
fn read(text: &str) -> Config {
    Config::from_toml_str(text, "config.toml").unwrap()
}

/// What is said about a file that is wrong.
fn error(text: &str) -> String {
    let error = Config::from_toml_str(text, "config.toml").unwrap_err();
    assert_eq!(error.kind(), crate::ErrorKind::InvalidConfig);
    let shown = error.to_string();
    assert_eq!(shown.lines().count(), 1, "{shown}");
    shown
}
