//! Machines on which a sandbox cannot work, by stubs in the place of its program.

use std::os::unix::fs::PermissionsExt;

use libtest_mimic::Failed;
use prx_runtime_core::config::{SandboxKind, SandboxLevel};
use prx_runtime_core::{ErrorKind, RuntimeAdapter};
use prx_runtime_native::NativeRuntime;
use prx_runtime_sandbox::{Machine, confiner_on};

use crate::Entry;
use crate::stage::{Stage, block_on, check, told};

pub(crate) const TRIALS: &[Entry] = &[
    ("machine::best_effort_says_what_is_missing", best_effort),
    ("machine::require_refuses_what_is_missing", require),
    (
        "machine::a_launcher_that_fails_is_an_error_with_its_words",
        failing_launcher,
    ),
];

fn best_effort(stage: &Stage) -> Result<(), Failed> {
    let mut config = stage.config.clone();
    config.security.sandbox.level = SandboxLevel::BestEffort;
    let confiner =
        prx_runtime_sandbox::unconfined(&config.security, "bubblewrap: not here".into())?;
    let runtime = NativeRuntime::confined(&config, confiner)?;
    let output = stage.run(&runtime, prx_runtime_core::ExecutionRequest::shell("true"))?;
    check!(output.success(), "{}", told(&output));
    check!(
        output
            .isolation
            .not_enforced
            .iter()
            .any(|what| what.contains("not here")),
        "{}",
        output.isolation
    );
    Ok(())
}

fn require(stage: &Stage) -> Result<(), Failed> {
    let missing = "bubblewrap: not here".to_owned();
    match prx_runtime_sandbox::unconfined(&stage.config.security, missing) {
        Ok(_) => Err("require was content".into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            check!(error.to_string().contains("best-effort"), "{error}");
            Ok(())
        }
    }
}

fn failing_launcher(stage: &Stage) -> Result<(), Failed> {
    let stub = stage.outside().join("bwrap");
    let words = "bwrap: No permissions to create new namespace";
    std::fs::write(&stub, format!("#!/bin/sh\necho '{words}' >&2\nexit 1\n"))?;
    std::fs::set_permissions(&stub, PermissionsExt::from_mode(0o755))?;
    let machine = Machine::current().with_programs_in(stage.outside());
    let confiner = confiner_on(&machine, SandboxKind::Bubblewrap, &stage.config.security)?;
    let runtime = NativeRuntime::confined(&stage.config, confiner)?;
    let request = prx_runtime_core::ExecutionRequest::shell("true");
    match stage.run(&runtime, request) {
        Ok(output) => return Err(told(&output).into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            check!(error.to_string().contains(words), "{error}");
        }
    }
    let probe = block_on(runtime.probe());
    check!(!probe.available, "{}", probe.detail);
    Ok(())
}
