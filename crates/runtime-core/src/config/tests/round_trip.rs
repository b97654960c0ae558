//! What is written is read back.

use std::path::PathBuf;

use super::super::*;
use super::read;

/// A configuration in which every section differs from its default.
fn unusual() -> Config {
    let mut config = Config::default();
    let runtime = &mut config.runtime;
    runtime.backend = "docker".to_owned();
    runtime.max_output_bytes = 12_345;
    runtime.minimum_isolation = MinimumIsolation::Container;
    runtime.native.shell = Some(PathBuf::from("/bin/zsh"));
    runtime.native.env = EnvTable::from_iter([("LD_LIBRARY_PATH", "/opt/lib"), ("Q", "a\"b\n")]);
    runtime.docker.socket = Some("tcp://127.0.0.1:2375".to_owned());
    runtime.docker.memory_limit = ByteSize(10_000_001);
    runtime.docker.cpu_limit = "0.333".parse().unwrap();
    runtime.docker.network = DockerNetwork::Bridge;
    runtime.docker.oci_runtime = Some("runsc".to_owned());
    runtime.docker.allowed_workspace_roots = vec!["~/src".into()];
    let image = ("my tool.sh".to_owned(), "localhost:5000/a:b".to_owned());
    runtime.docker.tool_images.extend([image]);
    runtime.wasm.engine = WasmEngineKind::Wasmer;
    runtime.wasm.cache_path = Some("~/.cache/x".into());
    runtime.wasm.capabilities.filesystem_read = vec!["/srv::/data".to_owned()];
    config.security.sandbox.backend = SandboxKind::Landlock;
    config.security.sandbox.level = SandboxLevel::BestEffort;
    config.security.sandbox.hidden_paths = vec!["~/.ssh".into()];
    config.security.resources.max_open_files = Some(64);

    let mut skill = ToolConfig::new(ToolKind::Wasm);
    skill.module = Some("skill.wasm".into());
    skill.env = EnvTable::from_iter([("API_KEY", "hunter2")]);
    skill.capabilities = Some(ToolCapabilities {
        network: Some(false),
        env_vars: Some(Vec::new()),
        ..ToolCapabilities::default()
    });
    config.tools.custom.insert("skill.v1".to_owned(), skill);
    let mut grep = ToolConfig::new(ToolKind::Native);
    grep.command = Some("rg".to_owned());
    grep.args = vec!["--json".to_owned()];
    grep.timeout_secs = Some(5);
    config.tools.custom.insert("grep".to_owned(), grep);
    config
}

#[test]
fn the_defaults_and_anything_else_are_read_back() {
    for config in [Config::default(), unusual()] {
        config.validate().unwrap();
        assert_eq!(read(&config.to_toml().unwrap()), config);
    }
}

#[test]
fn each_section_alone_is_read_back() {
    fn check<T>(section: &T)
    where
        T: serde::Serialize + serde::de::DeserializeOwned + PartialEq + std::fmt::Debug,
    {
        let text = toml::to_string(section).unwrap();
        assert_eq!(&toml::from_str::<T>(&text).unwrap(), section);
    }
    for config in [Config::default(), unusual()] {
        check(&config.runtime);
        check(&config.runtime.native);
        check(&config.runtime.docker);
        check(&config.runtime.wasm);
        check(&config.runtime.wasm.capabilities);
        check(&config.security);
        check(&config.security.sandbox);
        check(&config.security.resources);
        check(&config.tools);
        config.tools.custom.values().for_each(check);
    }
}

#[test]
fn values_of_variables_are_not_shown() {
    let config = unusual();
    assert!(!format!("{config:?}").contains("hunter2"));
    let shown = config.redacted().to_toml().unwrap();
    assert!(
        !shown.contains("hunter2") && !shown.contains("/opt/lib"),
        "{shown}"
    );
    assert!(shown.contains("API_KEY"), "{shown}");
}

#[cfg(unix)]
#[test]
fn what_toml_cannot_say_is_an_error() {
    use std::os::unix::ffi::OsStringExt;

    let mut config = Config::default();
    let shell = std::ffi::OsString::from_vec(b"/bin/\xff".to_vec());
    config.runtime.native.shell = Some(PathBuf::from(shell));
    let error = config.to_toml().unwrap_err();
    assert_eq!(
        error.message(),
        "the configuration cannot be written as TOML"
    );
}

#[test]
fn the_largest_number_is_read_back() {
    let mut config = Config::default();
    config.runtime.queue_timeout_secs = u64::MAX;
    assert_eq!(read(&config.to_toml().unwrap()), config);
}
