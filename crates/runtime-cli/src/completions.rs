//! `completions`

use clap::CommandFactory;
use clap_complete::Shell;
use prx_runtime::Result;

use crate::args::Args;
use crate::exit::{self, Code};
use crate::failure;

pub(crate) fn run(shell: Shell) -> Result<Code> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), "prx-runtime", &mut script);
    failure::print(&String::from_utf8_lossy(&script))?;
    Ok(exit::SUCCESS)
}
