//! A configured shell that is not there is an error before anything runs, never another shell.

use prx_runtime_core::ErrorKind;
use prx_runtime_core::config::Config;
use prx_runtime_native::NativeRuntime;

#[test]
fn no_runtime_is_made() {
    let text = "[runtime.native]\nshell = \"/nowhere/fish\"";
    let config = Config::from_toml_str(text, "test.toml").unwrap();
    let error = NativeRuntime::new(&config).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidConfig);
    assert_eq!(
        error.message(),
        "the shell `/nowhere/fish` (runtime.native.shell) does not exist"
    );
    assert!(error.hint().is_some());
}
