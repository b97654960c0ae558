//! `prune`

use prx_runtime::Result;

use crate::args::Global;
use crate::exit::{self, Code};
use crate::{config, failure};

pub(crate) async fn run(global: &Global) -> Result<Code> {
    let report = prx_runtime::sweep(&config::load(global)?).await?;
    failure::print(&format!(
        "ended {} processes of dead hosts\n",
        report.processes
    ))?;
    Ok(exit::SUCCESS)
}
