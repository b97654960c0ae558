//! `doctor`

use std::fmt::Write;

use prx_runtime::{Diagnosis, Result};
use serde::Serialize;

use crate::args::{DoctorArgs, Global};
use crate::exit::{self, Code};
use crate::{config, failure};

/// One backend, as JSON.
#[derive(Serialize)]
struct Row<'a> {
    backend: &'a str,
    compiled: bool,
    available: bool,
    isolation: &'a str,
    detail: &'a str,
    hint: Option<&'a str>,
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
            compiled: diagnosis.compiled,
            available: diagnosis.probe.available,
            isolation: diagnosis.isolation.as_str(),
            detail: &diagnosis.probe.detail,
            hint: diagnosis.probe.hint.as_deref(),
        })
        .collect();
    let text = serde_json::to_string_pretty(&rows)
        .map_err(|error| failure::io("cannot write JSON", &error.into()))?;
    Ok(text + "\n")
}

fn table(diagnoses: &[Diagnosis]) -> String {
    let mut text = format!(
        "{:<9}{:<11}{:<11}DETAIL\n",
        "BACKEND", "AVAILABLE", "ISOLATION"
    );
    for diagnosis in diagnoses {
        let available = if diagnosis.probe.available {
            "yes"
        } else {
            "no"
        };
        let isolation = diagnosis.isolation.as_str();
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "{:<9}{available:<11}{isolation:<11}{}",
            diagnosis.name, diagnosis.probe.detail
        );
        if let Some(hint) = &diagnosis.probe.hint {
            let _ = writeln!(text, "{:<31}{hint}", "");
        }
    }
    text
}
