//! What each sandbox lets through and what it keeps away, tried for real: as root and as somebody
//! else, and each denial with a control run without the sandbox, which must succeed.
//!
//! `cargo test -p prx-runtime-sandbox --test trials -- bubblewrap::root` runs one corner of it.

mod caller;
mod files;
mod host;
mod kernel;
mod machine;
mod nesting;
mod network;
mod processes;
mod resources;
mod secrets;
mod smoke;
mod stage;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
use prx_runtime_core::config::SandboxKind;

use caller::Caller;
use stage::Stage;

/// A trial: its name, and what it does.
type Entry = (&'static str, fn(&Stage) -> Result<(), Failed>);

/// Every sandbox that is tried.
const KINDS: [SandboxKind; 3] = [
    SandboxKind::Bubblewrap,
    SandboxKind::Landlock,
    SandboxKind::Firejail,
];

fn main() -> ExitCode {
    let arguments = Arguments::from_args();
    let mut trials = Vec::new();
    let groups: [(&str, &[Entry]); 9] = [
        ("smoke", smoke::TRIALS),
        ("files", files::TRIALS),
        ("secrets", secrets::TRIALS),
        ("nesting", nesting::TRIALS),
        ("processes", processes::TRIALS),
        ("network", network::TRIALS),
        ("kernel", kernel::TRIALS),
        ("host", host::TRIALS),
        ("resources", resources::TRIALS),
    ];
    for caller in Caller::all() {
        for kind in KINDS {
            let missing = stage::missing(kind).or_else(|| caller.missing(kind));
            for (group, entries) in groups {
                for (name, body) in entries {
                    let full = format!("{kind}::{caller}::{group}::{name}");
                    trials.push(trial(full, caller, kind, *body, missing.as_deref()));
                }
            }
        }
        for (name, body) in resources::ALONE.iter().chain(machine::TRIALS) {
            let full = format!("none::{caller}::{name}");
            trials.push(trial(full, caller, SandboxKind::None, *body, None));
        }
    }
    let conclusion = libtest_mimic::run(&arguments, trials);
    caller::clean_up();
    conclusion.exit_code()
}

fn trial(
    name: String,
    caller: Caller,
    kind: SandboxKind,
    body: fn(&Stage) -> Result<(), Failed>,
    missing: Option<&str>,
) -> Trial {
    let again = name.clone();
    let trial = Trial::test(name.clone(), move || {
        if caller.is_us() {
            body(&Stage::new(kind)?)
        } else {
            caller.run(kind, &again)
        }
    });
    match missing {
        // What can be installed has to be, where it is said so; a kernel is what it is.
        Some(reason) if kind == SandboxKind::Landlock || !prx_fixtures::is_required("sandbox") => {
            trial.with_ignored_flag(true).with_kind(reason.to_owned())
        }
        _ => trial,
    }
}
