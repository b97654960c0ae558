//! `wasm`

use std::fmt::Write;

use prx_runtime::Result;

use crate::args::{Global, WasmCommand};
use crate::exit::{self, Code};
use crate::{config, failure};

pub(crate) async fn run(global: &Global, command: WasmCommand) -> Result<Code> {
    let config = config::load(global)?;
    let WasmCommand::Compile { modules } = command;
    for module in modules {
        let compiled = prx_runtime::compile_module(&config, &module).await?;
        let mut text = format!("{} ({}): ", compiled.module.display(), compiled.kind);
        // Writing to a string does not fail.
        let _ = match compiled.compiled_in {
            Some(time) => write!(text, "compiled in {} ms", time.as_millis()),
            None => write!(text, "was compiled already"),
        };
        let _ = match compiled.entry {
            Some(entry) => writeln!(text, ", kept as {}", entry.display()),
            None => writeln!(
                text,
                ", and not kept: the log says why, unless runtime.wasm.cache_size is 0"
            ),
        };
        failure::print(&text)?;
    }
    Ok(exit::SUCCESS)
}
