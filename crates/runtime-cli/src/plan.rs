//! `plan`, `run --dry-run` and `tools run --dry-run`

use std::fmt::Write;

use prx_runtime::{Description, Result, Source, describe};

use crate::args::{Global, RunArgs};
use crate::exit::{self, Code};
use crate::run::request;
use crate::{config, failure};

pub(crate) async fn run(global: &Global, args: RunArgs) -> Result<Code> {
    let config = config::load(global)?;
    let json = args.json;
    let request = request(args, &config);
    print(&describe(&config, &request).await?, json)
}

/// Prints what would be done.
pub(crate) fn print(description: &Description, json: bool) -> Result<Code> {
    let text = if json {
        render_json(description)?
    } else {
        render(description)
    };
    failure::print(&text)?;
    Ok(exit::SUCCESS)
}

fn render_json(description: &Description) -> Result<String> {
    let text = serde_json::to_string_pretty(description)
        .map_err(|error| failure::io("cannot write JSON", &error.into()))?;
    Ok(text + "\n")
}

fn render(description: &Description) -> String {
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "{name:<12}{}", value.replace('\n', "\n            "));
    };
    line("backend", &description.backend);
    for (index, word) in description.argv.iter().enumerate() {
        line(if index == 0 { "argv" } else { "" }, &format!("{word:?}"));
    }
    line("directory", &description.working_dir);
    for (index, variable) in description.environment.iter().enumerate() {
        let source = match variable.source {
            Source::Host => "from the host",
            Source::Call => "from the call",
            _ => "from the configuration",
        };
        let note = if variable.loader {
            "; makes a loader or an interpreter run code"
        } else {
            ""
        };
        line(
            if index == 0 { "environment" } else { "" },
            &format!("{} ({source}{note})", variable.name),
        );
    }
    if !description.refused_env.is_empty() {
        line("refused", &description.refused_env.join(", "));
    }
    let timeout = match description.timeout_ms {
        Some(timeout) => format!("{timeout} ms, then {} ms to end", description.kill_grace_ms),
        None => "none".to_owned(),
    };
    line("timeout", &timeout);
    line(
        "output",
        &format!("{} bytes of each stream", description.max_output_bytes),
    );
    line("isolation", &description.isolation.to_string());
    for (name, value) in &description.details {
        line(name, &shortened(value));
    }
    text
}

/// How much of a detail is for people, in characters. A container's body has a whole filter of
/// system calls in it.
const LEGIBLE: usize = 1200;

fn shortened(value: &str) -> String {
    match value.char_indices().nth(LEGIBLE) {
        Some((cut, _)) => format!(
            "{} … ({} bytes more with --json)",
            &value[..cut],
            value.len() - cut
        ),
        None => value.to_owned(),
    }
}
