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
    (
        "machine::a_missing_program_is_named_with_its_package",
        missing_program,
    ),
    ("machine::an_old_landlock_is_refused_or_said", old_landlock),
    (
        "machine::firejail_alone_is_not_enough",
        firejail_without_landlock,
    ),
    (
        "machine::a_launcher_that_makes_no_namespaces_is_found_out",
        silent_launcher,
    ),
    (
        "machine::a_launcher_that_hangs_is_given_up",
        hanging_launcher,
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
    let words = "bwrap: No permissions to create new namespace";
    put_program(stage, "bwrap", &format!("echo '{words}' >&2; exit 1"))?;
    // A kernel that says why.
    let settings = stage.outside().join("settings");
    std::fs::create_dir_all(settings.join("kernel"))?;
    std::fs::write(settings.join("kernel/unprivileged_userns_clone"), "0\n")?;
    let machine = Machine::current()
        .with_programs_in(stage.outside())
        .with_settings_in(settings);
    let confiner = confiner_on(&machine, SandboxKind::Bubblewrap, &stage.config.security)?;
    let runtime = NativeRuntime::confined(&stage.config, confiner)?;
    let request = prx_runtime_core::ExecutionRequest::shell("true");
    match stage.run(&runtime, request) {
        Ok(output) => return Err(told(&output).into()),
        Err(error) => {
            let said = error.to_string();
            check!(error.kind() == ErrorKind::Refused, "{said}");
            for part in [words, "kernel.unprivileged_userns_clone = 0", "set it to 1"] {
                check!(said.contains(part), "{said}");
            }
        }
    }
    let probe = block_on(runtime.probe());
    check!(!probe.available, "{}", probe.detail);
    let hint = probe.hint.unwrap_or_default();
    check!(hint.contains("unprivileged_userns_clone"), "{hint}");
    Ok(())
}

fn missing_program(stage: &Stage) -> Result<(), Failed> {
    let machine = Machine::current().with_programs_in(stage.outside());
    for (kind, program) in [
        (SandboxKind::Bubblewrap, "bwrap"),
        (SandboxKind::Firejail, "firejail"),
    ] {
        match confiner_on(&machine, kind, &stage.config.security) {
            Ok(_) => return Err(format!("{kind} without `{program}`").into()),
            Err(error) => {
                let said = error.to_string();
                check!(error.kind() == ErrorKind::Unavailable, "{said}");
                let setting = format!("security.sandbox.backend = \"{kind}\"");
                for part in [&setting, program, "not on PATH", "install the package"] {
                    check!(said.contains(part), "{said}");
                }
            }
        }
    }
    Ok(())
}

fn old_landlock(stage: &Stage) -> Result<(), Failed> {
    let kind = SandboxKind::Landlock;
    let machine = |version| Machine::current().with_landlock(version);
    match confiner_on(&machine(0), kind, &stage.config.security) {
        Ok(_) => return Err("landlock without landlock".into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Unavailable, "{error}");
            check!(error.to_string().contains("Linux 5.13"), "{error}");
        }
    }
    let mut easy = stage.config.clone();
    easy.security.sandbox.level = SandboxLevel::BestEffort;
    for (version, needs) in [(2, "Linux 6.2"), (5, "Linux 6.12")] {
        match confiner_on(&machine(version), kind, &stage.config.security) {
            Ok(_) => return Err(format!("interface {version} was enough").into()),
            Err(error) => {
                check!(error.kind() == ErrorKind::Refused, "{error}");
                for part in [needs, "security.sandbox.level", "best-effort"] {
                    check!(error.to_string().contains(part), "{error}");
                }
            }
        }
        let confiner = confiner_on(&machine(version), kind, &easy.security)?;
        let isolation = confiner.isolation();
        let said = isolation.not_enforced.join("; ");
        check!(said.contains(needs), "{said}");
        let applied = isolation.applied.join("; ");
        check!(
            applied.contains(&format!("interface {version}")),
            "{applied}"
        );
    }
    Ok(())
}

fn firejail_without_landlock(stage: &Stage) -> Result<(), Failed> {
    put_program(stage, "firejail", "exit 1")?;
    let machine = Machine::current()
        .with_landlock(0)
        .with_programs_in(stage.outside());
    match confiner_on(&machine, SandboxKind::Firejail, &stage.config.security) {
        Ok(_) => Err("firejail alone was enough".into()),
        // Accounts that firejail does not serve do not get that far.
        Err(error) if error.kind() == ErrorKind::Unavailable => Ok(()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            check!(error.to_string().contains("Landlock"), "{error}");
            Ok(())
        }
    }
}

fn silent_launcher(stage: &Stage) -> Result<(), Failed> {
    // As firejail does in a container: it runs the program, and makes nothing around it.
    let body = "while [ \"$1\" != -- ]; do shift; done; shift; exec \"$@\"";
    put_program(stage, "firejail", body)?;
    let machine = Machine::current().with_programs_in(stage.outside());
    let confiner = match confiner_on(&machine, SandboxKind::Firejail, &stage.config.security) {
        Err(error) if error.kind() != ErrorKind::InvalidConfig => return Ok(()),
        confiner => confiner?,
    };
    let runtime = NativeRuntime::confined(&stage.config, confiner)?;
    let request = prx_runtime_core::ExecutionRequest::shell("echo ran > ran");
    match stage.run(&runtime, request) {
        Ok(output) => return Err(told(&output).into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            check!(
                error.to_string().contains("namespaces of its own"),
                "{error}"
            );
        }
    }
    check!(!stage.workspace().join("ran").exists(), "it ran");
    Ok(())
}

fn hanging_launcher(stage: &Stage) -> Result<(), Failed> {
    // As one does that waits for a file system which does not answer.
    put_program(stage, "bwrap", "exec sleep 600")?;
    let machine = Machine::current().with_programs_in(stage.outside());
    let mut config = stage.config.clone();
    config.security.sandbox.level = SandboxLevel::BestEffort;
    config.security.resources.max_memory_mb = Some(64);
    let confiner = confiner_on(&machine, SandboxKind::Bubblewrap, &config.security)?;
    let runtime = NativeRuntime::confined(&config, confiner)?;
    let probe = block_on(runtime.probe());
    check!(!probe.available, "{}", probe.detail);
    check!(probe.detail.contains("does not start"), "{}", probe.detail);
    // It is ended before the group in which it was.
    let lasting = crate::resources::lasting_groups();
    check!(lasting.is_empty(), "left: {lasting:?}");
    Ok(())
}

/// A program of a trial's own, by the lines of a shell script.
fn put_program(stage: &Stage, name: &str, lines: &str) -> Result<(), Failed> {
    let file = stage.outside().join(name);
    std::fs::write(&file, format!("#!/bin/sh\n{lines}\n"))?;
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755))?;
    Ok(())
}
