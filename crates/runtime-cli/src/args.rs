//! The command line.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Parser, Subcommand};
use prx_runtime::config::parse_duration;

/// Runs commands on the configured backend: native processes, containers, WebAssembly.
#[derive(Debug, Parser)]
#[command(name = "prx-runtime", version, max_term_width = 100)]
pub(crate) struct Args {
    #[command(flatten)]
    pub(crate) global: Global,
    /// Say more on stderr: once for what is done, twice and three times for details.
    /// RUST_LOG takes precedence.
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub(crate) verbose: u8,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What holds for every subcommand.
#[derive(Debug, clap::Args)]
pub(crate) struct Global {
    /// The configuration file [default: openprx/config.toml in the user's configuration
    /// directory, where there is one].
    #[arg(long, global = true, value_name = "FILE", env = "PRX_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The backend, instead of the configured one: auto, native, docker, wasm.
    #[arg(long, global = true, value_name = "BACKEND")]
    pub(crate) backend: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a command and exit with its code.
    Run(RunArgs),
    /// Say what `run` would do, without doing it: the words that would be started, the names of the
    /// variables, limits, isolation, and what the backend would ask its engine for.
    Plan(RunArgs),
    /// List and run tools by name.
    Tools(ToolsArgs),
    /// Say which backends work here, and why others do not.
    Doctor(DoctorArgs),
    /// Write, check and show the configuration.
    Config(ConfigArgs),
    /// End and remove what hosts that died left behind.
    Prune,
    /// Work with WebAssembly modules.
    Wasm {
        #[command(subcommand)]
        command: WasmCommand,
    },
    /// Print the completions for a shell.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
}

/// Exits with the command's code; 124 when its time was up, 125 when it did not run.
#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    /// The tool that the command belongs to; backends choose an image by it.
    #[arg(long, value_name = "NAME")]
    pub(crate) tool: Option<String>,
    /// How long the command may run, such as 500ms, 5s, 2m [default: the configured time].
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// A variable for the command. It gets it if runtime.env_whitelist has the name.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The directory to run in [default: this one].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) workdir: Option<PathBuf>,
    /// Give our stdin to the command. Otherwise its stdin is at its end from the start.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one JSON object when the command has ended, instead of its output while it runs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what would be done, without doing it; the same as `plan`.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// A program with its arguments, or one word: a line for the backend's shell.
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WasmCommand {
    /// Compile modules now, so that their first run need not.
    Compile {
        /// Tools, modules of the module directory, or paths of modules.
        #[arg(required = true, value_name = "MODULE")]
        modules: Vec<String>,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolsArgs {
    #[command(subcommand)]
    pub(crate) command: ToolsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ToolsCommand {
    /// List the tools: those that are registered, and the skills in the module directory.
    List {
        /// Print JSON instead of a table.
        #[arg(long)]
        json: bool,
    },
    /// Run a tool and exit with its code.
    Run(ToolRunArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ToolRunArgs {
    /// How long the call may take, such as 500ms, 5s, 2m [default: the tool's time].
    #[arg(long, value_name = "DURATION", value_parser = duration, allow_hyphen_values = true)]
    pub(crate) timeout: Option<Duration>,
    /// A variable for the tool. It gets it if runtime.env_whitelist has the name.
    #[arg(long = "env", value_name = "NAME=VALUE", value_parser = variable)]
    pub(crate) env: Vec<(String, String)>,
    /// The directory to run in [default: this one].
    #[arg(long, value_name = "DIRECTORY")]
    pub(crate) workdir: Option<PathBuf>,
    /// Give our stdin to the tool. Otherwise its stdin is at its end from the start.
    #[arg(long)]
    pub(crate) stdin: bool,
    /// Print one JSON object when the tool has ended, instead of its output while it runs.
    #[arg(long)]
    pub(crate) json: bool,
    /// Say what would be done, without doing it.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The tool's name.
    pub(crate) name: String,
    /// The arguments of the call.
    #[arg(last = true, value_name = "ARG")]
    pub(crate) args: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON instead of a table.
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgs {
    #[command(subcommand)]
    pub(crate) command: ConfigCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Write a file with every key, its meaning and its default.
    Init {
        /// Where to; `-` for stdout [default: where the configuration is looked for].
        file: Option<PathBuf>,
        /// Overwrite a file that is there.
        #[arg(long)]
        force: bool,
    },
    /// Say whether the configuration is right.
    Check {
        /// The file [default: the configuration in use].
        file: Option<PathBuf>,
    },
    /// Print the configuration in force, defaults included. Values of variables are left out.
    Show,
    /// Print the JSON schema of the configuration.
    Schema,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text).map_err(|error| error.to_string())
}

fn variable(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        // The text may be the value itself: it is not repeated.
        _ => Err("expected NAME=VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Args::command().debug_assert();
    }
}
