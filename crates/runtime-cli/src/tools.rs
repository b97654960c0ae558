//! `tools`

use std::fmt::Write;

use prx_runtime::{Result, Tool, ToolCall, ToolOrigin, ToolRegistry};
use serde::Serialize;

use crate::args::{Global, ToolRunArgs, ToolsCommand};
use crate::exit::{self, Code};
use crate::{config, failure, plan, run};

pub(crate) async fn run(global: &Global, command: ToolsCommand) -> Result<Code> {
    let config = config::load(global)?;
    let registry = ToolRegistry::new(&config)?;
    match command {
        ToolsCommand::List { json } => {
            let tools = registry.list()?;
            failure::print(&if json {
                list_json(&tools)?
            } else {
                list(&tools)
            })?;
            Ok(exit::SUCCESS)
        }
        ToolsCommand::Run(args) => {
            let (name, json, dry_run) = (args.name.clone(), args.json, args.dry_run);
            let own_timeout = match registry.resolve(&name)?.origin {
                ToolOrigin::Configured(tool) => tool.timeout_secs.is_some(),
                _ => false,
            };
            let mut call = call(args);
            if !own_timeout && !call.has_timeout() {
                call = call.timeout(config.runtime.default_timeout());
            }
            if dry_run {
                return plan::print(&registry.describe(&name, call).await?, json);
            }
            run::follow(
                registry.spawn(&name, call),
                config.runtime.kill_grace(),
                json,
            )
            .await
        }
    }
}

fn call(args: ToolRunArgs) -> ToolCall {
    let mut call = ToolCall::new().args(args.args);
    for (name, value) in args.env {
        call = call.env(name, value);
    }
    if let Some(directory) = args.workdir {
        call = call.working_dir(directory);
    }
    if let Some(timeout) = args.timeout {
        call = call.timeout(timeout);
    }
    if args.stdin {
        call = call.stdin(run::host_stdin());
    }
    call
}

/// One tool, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    r#type: &'a str,
    description: Option<&'a str>,
    /// `configured`, or `discovered` with the file.
    origin: &'a str,
    file: Option<String>,
}

fn list_json(tools: &[Tool]) -> Result<String> {
    let rows: Vec<_> = tools
        .iter()
        .map(|tool| {
            let (origin, file) = match &tool.origin {
                ToolOrigin::Discovered(file) => ("discovered", Some(file.display().to_string())),
                _ => ("configured", None),
            };
            Row {
                name: &tool.name,
                r#type: tool.kind.as_str(),
                description: tool.description.as_deref(),
                origin,
                file,
            }
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows)
        .map_err(|error| failure::io("cannot write JSON", &error.into()))?;
    Ok(text + "\n")
}

fn list(tools: &[Tool]) -> String {
    let width = tools
        .iter()
        .map(|tool| tool.name.len())
        .max()
        .unwrap_or(0)
        .max(4)
        + 2;
    let mut text = format!("{:<width$}{:<9}DESCRIPTION\n", "NAME", "TYPE");
    for tool in tools {
        let description = match (&tool.description, &tool.origin) {
            (Some(description), _) => description.clone(),
            (None, ToolOrigin::Discovered(file)) => format!("module {}", file.display()),
            (None, _) => String::new(),
        };
        // Writing to a string does not fail.
        let _ = writeln!(text, "{:<width$}{:<9}{description}", tool.name, tool.kind);
    }
    text
}
