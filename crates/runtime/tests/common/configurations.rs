//! The configurations under which the same program runs: what changes is one line, and for some
//! what they need to be there.

use prx_runtime::config::Config;

#[cfg(feature = "docker")]
#[path = "../../../runtime-docker/tests/common/images.rs"]
#[expect(dead_code, reason = "of the images only one is used here")]
mod images;

/// A configuration, for programs called `cat`, `false`, `env` and `sleep`.
pub(crate) struct Configuration {
    pub(crate) backend: &'static str,
    pub(crate) more: String,
}

impl Configuration {
    fn new(backend: &'static str, more: impl Into<String>) -> Self {
        let more = more.into();
        Self { backend, more }
    }

    pub(crate) fn config(&self) -> Config {
        let Self { backend, more } = self;
        let text = format!("[runtime]\nbackend = \"{backend}\"\n{more}");
        Config::from_toml_str(&text, "config.toml").unwrap()
    }
}

pub(crate) fn native() -> Configuration {
    Configuration::new("native", "")
}

/// `None` where there is no sandbox.
#[cfg(feature = "sandbox")]
pub(crate) async fn native_in(sandbox: &str) -> Option<Configuration> {
    let more = format!("[security.sandbox]\nbackend = \"{sandbox}\"\n");
    let configuration = Configuration::new("native", more);
    match prx_runtime::create_runtime(&configuration.config()).await {
        Ok(_) => Some(configuration),
        Err(error) => {
            prx_fixtures::skip("sandbox", error);
            None
        }
    }
}

/// `None` where there is no engine.
#[cfg(feature = "docker")]
pub(crate) fn docker() -> Option<Configuration> {
    if let Err(reason) = images::docker(&["version"]) {
        prx_fixtures::skip("docker", reason);
        return None;
    }
    let image = images::BUSYBOX.make().unwrap();
    let more = format!("[runtime.docker]\nimage = \"{image}\"\n");
    Some(Configuration::new("docker", more))
}

/// The programs as WebAssembly tools.
#[cfg(any(feature = "wasmtime", feature = "wasmer"))]
pub(crate) fn wasm(engine: &str) -> Configuration {
    let module = prx_fixtures::Guest::BOX.path();
    let mut more = format!("[runtime.wasm]\nengine = \"{engine}\"\n");
    more += "capabilities.filesystem_write = []\n";
    for (name, args) in [
        ("cat", "\"cat\""),
        ("false", "\"exit\", \"1\""),
        ("env", "\"env\""),
        ("sleep", "\"sleep\""),
    ] {
        more += &format!(
            "[tools.custom.{name}]\ntype = \"wasm\"\nmodule = \"{}\"\nargs = [{args}]\n",
            module.display()
        );
    }
    Configuration::new("wasm", more)
}
