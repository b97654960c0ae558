//! Whatever the text of a configuration is, reading it ends, and never in a panic.

#![no_main]

use std::hint::black_box;

use libfuzzer_sys::fuzz_target;
use prx_runtime_core::config::Config;

fuzz_target!(|text: &str| {
    // An error has to be shown too: that is where places in the text are computed.
    match Config::from_toml_str(text, "fuzz.toml") {
        Ok(config) => drop(black_box(format!("{config:?}"))),
        Err(error) => drop(black_box(format!("{error} {error:?}"))),
    }
});
