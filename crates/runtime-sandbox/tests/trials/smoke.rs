//! What everybody needs works under the default profile, or people turn the sandbox off.

use libtest_mimic::Failed;
use prx_runtime_core::{ExecutionRequest, IsolationLevel, Termination};

use crate::Entry;
use crate::stage::{Stage, check, told};

pub(crate) const TRIALS: &[Entry] = &[
    ("sh_and_bash", sh_and_bash),
    ("dev_null", dev_null),
    ("mktemp", mktemp),
    ("git_commits", git_commits),
    ("python", python),
    ("gcc", gcc),
    ("proc_self", proc_self),
    ("pipeline_and_here_document", pipeline_and_here_document),
    ("exits_and_signals_are_exact", exits_and_signals_are_exact),
    (
        "what_cannot_be_started_is_an_error",
        what_cannot_be_started_is_an_error,
    ),
    ("isolation_says_sandbox", isolation_says_sandbox),
    (
        "the_word_sandbox_changes_nothing",
        the_word_sandbox_changes_nothing,
    ),
    (
        "an_empty_workspace_stays_empty",
        an_empty_workspace_stays_empty,
    ),
];

fn sh_and_bash(stage: &Stage) -> Result<(), Failed> {
    for shell in ["sh", "bash"] {
        let request = ExecutionRequest::program(shell)
            .arg("-c")
            .arg("echo $((6 * 7))");
        let output = stage.run(&stage.runtime()?, request)?;
        check!(output.success(), "{}", told(&output));
        check!(output.stdout.to_text() == "42\n", "{}", told(&output));
    }
    Ok(())
}

fn dev_null(stage: &Stage) -> Result<(), Failed> {
    stage.allows("echo gone > /dev/null && cat /dev/null && head -c 8 /dev/urandom | wc -c")?;
    Ok(())
}

fn mktemp(stage: &Stage) -> Result<(), Failed> {
    // By the default profile, whose /tmp is writable.
    let stage = Stage::new(stage.kind())?.with(|config, _| {
        config.security.sandbox.writable_paths = vec!["/tmp".into()];
    });
    stage.allows("unset TMPDIR; file=$(mktemp) && echo text > $file && cat $file && rm $file")?;
    Ok(())
}

fn git_commits(stage: &Stage) -> Result<(), Failed> {
    stage.allows(
        "git init -q . && echo text > file && git add file && \
         git -c user.name=a -c user.email=a@b.c commit -q -m one && git log --oneline",
    )?;
    Ok(())
}

fn python(stage: &Stage) -> Result<(), Failed> {
    let said = stage.allows("python3 -c 'import os, json; print(json.dumps(os.getcwd()))'")?;
    check!(said.contains("work"), "{said}");
    Ok(())
}

fn gcc(stage: &Stage) -> Result<(), Failed> {
    let stage = Stage::new(stage.kind())?.with(|config, _| {
        config.security.sandbox.writable_paths = vec!["/tmp".into()];
    });
    let said = stage.allows(
        "printf '#include <stdio.h>\\nint main(void) { puts(\"built\"); }' > a.c && \
         gcc -o a a.c && ./a",
    )?;
    check!(said == "built\n", "{said}");
    Ok(())
}

fn proc_self(stage: &Stage) -> Result<(), Failed> {
    stage.allows("ls /proc/self > listed && grep -q environ listed && cat /proc/self/status")?;
    Ok(())
}

fn pipeline_and_here_document(stage: &Stage) -> Result<(), Failed> {
    let said = stage.allows("cat <<END | tr a-z A-Z | sort\nb\na\nEND\n")?;
    check!(said == "A\nB\n", "{said}");
    Ok(())
}

fn exits_and_signals_are_exact(stage: &Stage) -> Result<(), Failed> {
    for code in [0, 1, 7, 126, 127, 137, 143, 255] {
        let output = stage.confined(&format!("exit {code}"))?;
        check!(
            output.termination == Termination::Exited,
            "{}",
            told(&output)
        );
        check!(output.exit_code == code, "{code}: {}", told(&output));
    }
    // Not HUP, which whoever runs the tests may ignore (`nohup`).
    for signal in [9, 10, 15, 24] {
        let output = stage.confined(&format!("kill -{signal} $$"))?;
        check!(
            output.termination == Termination::Signaled(signal),
            "{}",
            told(&output)
        );
        check!(
            output.exit_code == 128 + signal,
            "{signal}: {}",
            told(&output)
        );
    }
    Ok(())
}

fn what_cannot_be_started_is_an_error(stage: &Stage) -> Result<(), Failed> {
    use prx_runtime_core::ErrorKind;
    let work = stage.workspace();
    std::fs::write(work.join("plain"), "text")?;
    std::fs::write(work.join("orphan"), "#!/no/such/interpreter\n")?;
    std::fs::write(work.join("noise"), "\x01\x02\x03\x04")?;
    for name in ["orphan", "noise"] {
        std::fs::set_permissions(
            work.join(name),
            std::os::unix::fs::PermissionsExt::from_mode(0o755),
        )?;
    }
    for (program, kind) in [
        ("no-such-program", ErrorKind::ProgramNotFound),
        ("./nowhere", ErrorKind::ProgramNotFound),
        ("./plain", ErrorKind::NotExecutable),
        ("./orphan", ErrorKind::NotExecutable),
        ("./noise", ErrorKind::NotExecutable),
    ] {
        match stage.run(
            &stage.runtime()?,
            ExecutionRequest::program(program).arg("x"),
        ) {
            Ok(output) => return Err(format!("{program} ran: {}", told(&output)).into()),
            Err(error) => check!(error.kind() == kind, "{program}: {error}"),
        }
    }
    Ok(())
}

fn isolation_says_sandbox(stage: &Stage) -> Result<(), Failed> {
    let output = stage.confined("true")?;
    check!(
        output.isolation.level == IsolationLevel::Sandbox,
        "{}",
        output.isolation
    );
    let name = stage.kind().as_str();
    check!(
        output
            .isolation
            .applied
            .iter()
            .any(|what| what.starts_with(name)),
        "{}",
        output.isolation
    );
    check!(
        output.isolation.not_enforced.is_empty(),
        "{}",
        output.isolation
    );
    Ok(())
}

fn the_word_sandbox_changes_nothing(stage: &Stage) -> Result<(), Failed> {
    let output =
        stage.confined("echo 'bwrap: sandbox: landlock: Operation not permitted' >&2; exit 1")?;
    check!(
        output.termination == Termination::Exited,
        "{}",
        told(&output)
    );
    check!(output.exit_code == 1, "{}", told(&output));
    Ok(())
}

fn an_empty_workspace_stays_empty(stage: &Stage) -> Result<(), Failed> {
    stage.allows("true")?;
    let output = stage.confined("kill -9 $$")?;
    check!(
        output.termination == Termination::Signaled(9),
        "{}",
        told(&output)
    );
    let left = std::fs::read_dir(stage.workspace())?.count();
    check!(left == 0, "{left} files were left");
    Ok(())
}
