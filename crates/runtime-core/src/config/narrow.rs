//! A tool may reach less than its backend grants, never more.

use super::fault::{Fault, list};
use super::grant::{Grant, GrantHost};
use super::tools::{ToolCapabilities, ToolConfig};
use super::wasm::{WasmCapabilities, WasmConfig};

/// Refuses what `tool` asks for beyond `[runtime.wasm]`.
pub(super) fn check(tool: &ToolConfig, wasm: &WasmConfig) -> Result<(), Fault> {
    if let Some(asked) = tool.max_memory_mb
        && asked > wasm.max_memory_mb
    {
        return Err(Fault::at(
            "max_memory_mb",
            format!(
                "{asked} is more than runtime.wasm.max_memory_mb, which is {}",
                wasm.max_memory_mb
            ),
        ));
    }
    match &tool.capabilities {
        Some(asked) => {
            capabilities(asked, &wasm.capabilities).map_err(|fault| fault.under("capabilities"))
        }
        None => Ok(()),
    }
}

fn capabilities(asked: &ToolCapabilities, granted: &WasmCapabilities) -> Result<(), Fault> {
    if asked.network == Some(true) && !granted.network {
        return Err(Fault::at(
            "network",
            "true is more than runtime.wasm.capabilities.network, which is false",
        ));
    }
    for (index, name) in asked.env_vars.iter().flatten().enumerate() {
        if !granted.env_vars.contains(name) {
            let has: Vec<&str> = granted.env_vars.iter().map(String::as_str).collect();
            return Err(beyond("env_vars", index, name, &has));
        }
    }
    // Write implies read, so what may be written may be read by a tool, too.
    let writable = &granted.filesystem_write;
    let readable: Vec<&String> = granted.filesystem_read.iter().chain(writable).collect();
    let writable: Vec<&String> = writable.iter().collect();
    directories(
        "filesystem_read",
        asked.filesystem_read.as_deref(),
        &readable,
    )?;
    directories(
        "filesystem_write",
        asked.filesystem_write.as_deref(),
        &writable,
    )
}

fn directories(key: &str, asked: Option<&[String]>, granted: &[&String]) -> Result<(), Fault> {
    // What is no grant was refused before, with its own error.
    let grants = || granted.iter().filter_map(|text| text.parse::<Grant>().ok());
    for (index, text) in asked.unwrap_or_default().iter().enumerate() {
        let Ok(grant) = text.parse::<Grant>() else {
            continue;
        };
        if !grants().any(|granted| is_within(&grant.host, &granted.host)) {
            let has: Vec<&str> = granted.iter().map(|text| text.as_str()).collect();
            return Err(beyond(key, index, text, &has));
        }
    }
    Ok(())
}

/// Whether a directory of the host is another or lies below it. Grants hold no `..`.
fn is_within(asked: &GrantHost, granted: &GrantHost) -> bool {
    match (asked, granted) {
        (GrantHost::Workspace, GrantHost::Workspace) => true,
        (GrantHost::Path(asked), GrantHost::Path(granted)) => asked.starts_with(granted),
        _ => false,
    }
}

fn beyond(key: &str, index: usize, asked: &str, granted: &[&str]) -> Fault {
    let granted = if granted.is_empty() {
        "nothing".to_owned()
    } else {
        list(granted, '"')
    };
    Fault::new(format!(
        "{asked:?} is more than runtime.wasm.capabilities grants, which is {granted}"
    ))
    .under_index(index)
    .under(key)
}

#[cfg(test)]
mod tests {
    use crate::config::Config;

    const BACKEND: &str = r#"
[runtime.wasm]
max_memory_mb = 64
[runtime.wasm.capabilities]
filesystem_read = ["/workspace", "/srv/data"]
filesystem_write = ["/tmp"]
env_vars = ["HOME"]
[tools.custom.count]
type = "wasm"
module = "count.wasm"
"#;

    fn read(tool: &str) -> Result<Config, String> {
        Config::from_toml_str(&format!("{BACKEND}{tool}"), "config.toml")
            .map_err(|error| error.to_string())
    }

    #[test]
    fn less_is_accepted() {
        read(
            "max_memory_mb = 32\n[tools.custom.count.capabilities]\nnetwork = false\n\
             env_vars = []\nfilesystem_read = [\"/srv/data/en::/words\", \"/tmp\"]\n\
             filesystem_write = [\"/tmp/count\"]\n",
        )
        .unwrap();
    }

    #[test]
    fn more_is_refused_by_name() {
        for (tool, text) in [
            (
                "max_memory_mb = 65\n",
                "config.toml:11: `tools.custom.count.max_memory_mb`: 65 is more than \
                 runtime.wasm.max_memory_mb, which is 64",
            ),
            (
                "capabilities.network = true\n",
                "`tools.custom.count.capabilities.network`: true is more than",
            ),
            (
                "capabilities.env_vars = [\"HOME\", \"USER\"]\n",
                "`tools.custom.count.capabilities.env_vars[1]`: \"USER\" is more than \
                 runtime.wasm.capabilities grants, which is \"HOME\"",
            ),
            (
                "capabilities.filesystem_write = [\"/srv/data\"]\n",
                "filesystem_write[0]`: \"/srv/data\" is more than",
            ),
            (
                "capabilities.filesystem_read = [\"/srv/database\"]\n",
                "filesystem_read[0]`: \"/srv/database\" is more than",
            ),
            (
                "capabilities.filesystem_write = [\"/workspace\"]\n",
                "filesystem_write[0]`: \"/workspace\" is more than",
            ),
        ] {
            let error = read(tool).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }
}
