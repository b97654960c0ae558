//! `prune`

use std::fmt::Write;

use prx_runtime::Result;

use crate::args::Global;
use crate::exit::{self, Code};
use crate::{config, failure};

pub(crate) async fn run(global: &Global) -> Result<Code> {
    let report = prx_runtime::sweep(&config::load(global)?).await?;
    let mut text = format!(
        "ended {} processes and removed {} containers of dead hosts\n",
        report.processes,
        report.containers.len()
    );
    for reason in &report.not_done {
        // Writing to a string does not fail.
        let _ = writeln!(text, "not done: {reason}");
    }
    failure::print(&text)?;
    Ok(exit::SUCCESS)
}
