//! `doctor`

use std::fmt::Write;

use prx_runtime::{Diagnosis, Result, RoundTrip};
use serde::Serialize;

use crate::args::{DoctorArgs, Global};
use crate::exit::{self, Code};
use crate::{config, failure};

/// One backend, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    backend: &'a str,
    sandbox: Option<&'a str>,
    compiled: bool,
    available: bool,
    isolation: &'a str,
    detail: &'a str,
    hint: Option<&'a str>,
    /// What came of really using it, where that was tried.
    round_trip: Option<Trip<'a>>,
}

/// What came of using a backend, as JSON; an error where something did not work.
#[derive(Serialize)]
struct Trip<'a> {
    good: bool,
    command_error: Option<&'a str>,
    workspace_error: Option<&'a str>,
    network_reached: bool,
    network_open: bool,
}

pub(crate) async fn run(global: &Global, args: &DoctorArgs) -> Result<Code> {
    let config = config::load(global)?;
    let diagnoses = prx_runtime::diagnose(&config).await;
    let text = if args.json {
        json(&diagnoses)?
    } else {
        table(&diagnoses)
    };
    failure::print(&text)?;
    let any = diagnoses.iter().any(|diagnosis| diagnosis.probe.available);
    Ok(if any { exit::SUCCESS } else { exit::NEGATIVE })
}

fn json(diagnoses: &[Diagnosis]) -> Result<String> {
    let rows: Vec<_> = diagnoses
        .iter()
        .map(|diagnosis| Row {
            backend: diagnosis.name,
            sandbox: diagnosis.sandbox,
            compiled: diagnosis.compiled,
            available: diagnosis.probe.available,
            isolation: diagnosis.isolation.as_str(),
            detail: &diagnosis.probe.detail,
            hint: diagnosis.probe.hint.as_deref(),
            round_trip: diagnosis.round_trip.as_ref().map(|trip| Trip {
                good: trip.is_good(),
                command_error: trip.command.as_ref().err().map(String::as_str),
                workspace_error: trip.workspace.as_ref().err().map(String::as_str),
                network_reached: trip.network_reached,
                network_open: trip.network_open,
            }),
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows)
        .map_err(|error| failure::io("cannot write JSON", &error.into()))?;
    Ok(text + "\n")
}

fn table(diagnoses: &[Diagnosis]) -> String {
    let mut text = String::new();
    let (sandboxes, backends): (Vec<_>, Vec<_>) = diagnoses
        .iter()
        .partition(|diagnosis| diagnosis.sandbox.is_some());
    for (heading, rows) in [("BACKEND", backends), ("SANDBOX", sandboxes)] {
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{heading:<12}{:<11}{:<11}DETAIL",
            "AVAILABLE", "ISOLATION"
        );
        for row in rows {
            let _ = write_row(&mut text, row);
        }
    }
    text
}

fn write_row(text: &mut String, diagnosis: &Diagnosis) -> std::fmt::Result {
    let available = if diagnosis.probe.available {
        "yes"
    } else {
        "no"
    };
    let name = diagnosis.sandbox.unwrap_or(diagnosis.name);
    let isolation = diagnosis.isolation.as_str();
    writeln!(
        text,
        "{name:<12}{available:<11}{isolation:<11}{}",
        diagnosis.probe.detail
    )?;
    if let Some(hint) = &diagnosis.probe.hint {
        writeln!(text, "{:<34}{hint}", "")?;
    }
    for line in diagnosis.round_trip.iter().flat_map(trip_lines) {
        writeln!(text, "{:<34}{line}", "")?;
    }
    Ok(())
}

fn trip_lines(trip: &RoundTrip) -> [String; 3] {
    let outcome = |what: &str, result: &std::result::Result<(), String>| match result {
        Ok(()) => format!("{what}: ok"),
        Err(error) => format!("{what}: FAILED: {error}"),
    };
    let network = match (trip.network_open, trip.network_reached) {
        (true, true) => "open, and the host was reached",
        (true, false) => "open; the host's loopback was not reached",
        (false, false) => "closed: the host was not reached",
        (false, true) => "FAILED: it should be closed, and the host was reached",
    };
    [
        outcome("run a command", &trip.command),
        outcome("write in the workspace", &trip.workspace),
        format!("network: {network}"),
    ]
}
