//! Limits of the operating system.

use libtest_mimic::Failed;
use prx_runtime_core::config::{Config, SandboxKind, SandboxLevel};
use prx_runtime_core::{ErrorKind, IsolationLevel, Termination};

use crate::Entry;
use crate::stage::{Stage, check, told};

/// Under each sandbox.
pub(crate) const TRIALS: &[Entry] = &[
    ("a_fork_bomb_ends_at_its_limit", fork_bomb),
    ("a_memory_bomb_ends_at_its_limit", memory_bomb),
    ("a_processor_burner_ends_at_its_limit", burner),
    ("a_hog_of_descriptors_ends_at_its_limit", hog),
    ("a_command_stays_in_its_group_or_it_is_said", leaver),
];

/// Without any sandbox, too.
pub(crate) const ALONE: &[Entry] = &[
    ("resources::a_fork_bomb_ends_at_its_limit", fork_bomb),
    ("resources::a_memory_bomb_ends_at_its_limit", memory_bomb),
    ("resources::a_processor_burner_ends_at_its_limit", burner),
    ("resources::a_hog_of_descriptors_ends_at_its_limit", hog),
    (
        "resources::a_command_stays_in_its_group_or_it_is_said",
        leaver,
    ),
    ("resources::limits_alone_are_no_isolation", no_isolation),
    ("resources::exits_are_exact_through_the_launcher", exact),
    ("resources::no_group_is_left", no_group_left),
];

fn limited(stage: &Stage, edit: impl FnOnce(&mut Config)) -> Stage {
    let mut config = stage.config.clone();
    edit(&mut config);
    stage.under(config)
}

fn fork_bomb(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_subprocesses = Some(10)
    });
    let runtime = match stage.runtime() {
        // Root is exempt where there is no cgroup; then it is said.
        Err(error) if error.kind() == ErrorKind::Refused => {
            check!(error.to_string().contains("max_subprocesses"), "{error}");
            return Ok(());
        }
        runtime => runtime?,
    };
    // Forks until it is not allowed to, or as often as nobody would by mistake.
    std::fs::write(
        stage.workspace().join("bomb.py"),
        "import os, time, signal\nchildren = []\ntry:\n    while len(children) < 1500:\n        \
         child = os.fork()\n        if child == 0: time.sleep(60)\n        \
         children.append(child)\nexcept OSError: pass\n\
         for child in children: os.kill(child, signal.SIGKILL)\nprint(len(children))\n",
    )?;
    let request = prx_runtime_core::ExecutionRequest::shell("exec python3 bomb.py");
    let output = stage.run(&runtime, request)?;
    let text = output.stdout.to_text().into_owned();
    let started = text.trim().parse::<u32>()?;
    let applied = output.isolation.applied.join(", ");
    check!(applied.contains("process limit 10"), "{applied}");
    // Where other processes of the user count, those that end meanwhile make room.
    let most = if applied.contains("beside") { 1499 } else { 10 };
    check!(started <= most, "{started} processes: {}", told(&output));
    // A few are no bomb.
    stage.allows("for i in 1 2 3 4; do sleep 0.01 & done; wait; echo done | cat")?;
    Ok(())
}

fn memory_bomb(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_memory_mb = Some(64)
    });
    let output =
        stage.confined("exec python3 -c 'b = [bytearray(1 << 20) for _ in range(4096)]'")?;
    check!(!output.success(), "{}", told(&output));
    let applied = output.isolation.applied.join(", ");
    check!(applied.contains("memory limit 64 MiB"), "{applied}");
    if !applied.contains("a process") {
        check!(
            output.termination == Termination::OutOfMemory,
            "{}",
            told(&output)
        );
        check!(output.exit_code == 137, "{}", told(&output));
    }
    // That a child ran out of memory is the command's own business.
    let output = stage.confined(
        "python3 -c 'b = [bytearray(1 << 20) for _ in range(4096)]' 2>/dev/null; exit 5",
    )?;
    check!(
        output.termination == Termination::Exited,
        "{}",
        told(&output)
    );
    check!(output.exit_code == 5, "{}", told(&output));
    stage.allows("echo small")?;
    Ok(())
}

fn burner(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_cpu_time_seconds = Some(1)
    });
    let output = stage.confined("while :; do :; done")?;
    check!(
        output.termination == Termination::Signaled(libc::SIGXCPU),
        "{}",
        told(&output)
    );
    let output = stage.confined("trap '' XCPU; while :; do :; done")?;
    check!(
        output.termination == Termination::Signaled(libc::SIGKILL),
        "{}",
        told(&output)
    );
    Ok(())
}

fn hog(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_open_files = Some(16)
    });
    let said = stage.allows("ulimit -n; ulimit -Hn")?;
    check!(said == "16\n16\n", "{said}");
    stage.refuses("for i in $(seq 3 40); do eval \"exec $i< /dev/null\" || exit 1; done")?;
    Ok(())
}

fn leaver(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_memory_mb = Some(256)
    });
    // Out of the group that was made for this process, to wherever that may be. Groups of others
    // come and go meanwhile.
    let line = "groups=$(find /sys/fs/cgroup -path '*/prx-*/cgroup.procs' 2>/dev/null)\n\
                own=$(grep -slx $$ $groups /dev/null | head -n 1)\n\
                [ \"$own\" ] || { echo sees none; exit; }\n\
                for to in ${own%/*}/../cgroup.procs /sys/fs/cgroup/cgroup.procs \
                /sys/fs/cgroup/*/cgroup.procs; do\n\
                { echo 0 > $to; } 2>/dev/null\n\
                grep -qx $$ $own || { echo left; exit; }\n\
                done\n\
                echo stays";
    let output = stage.confined(line)?;
    let applied = output.isolation.applied.join(", ");
    check!(applied.contains("memory limit 256 MiB"), "{applied}");
    let said = applied.contains("unless the command leaves its cgroup");
    let came_of_it = output.stdout.to_string();
    check!(
        ["sees none\n", "stays\n", "left\n"].contains(&came_of_it.as_str()),
        "{}",
        told(&output)
    );
    check!(
        said == (came_of_it == "left\n"),
        "{applied}: {}",
        told(&output)
    );
    check!(
        !said || stage.kind() == SandboxKind::None,
        "a sandbox can keep it there: {applied}"
    );
    Ok(())
}

fn no_isolation(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_open_files = Some(64)
    });
    let output = stage.confined("true")?;
    check!(
        output.isolation.level == IsolationLevel::None,
        "{}",
        output.isolation
    );
    check!(!output.isolation.open.is_empty(), "{}", output.isolation);
    Ok(())
}

fn exact(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.resources.max_open_files = Some(64)
    });
    let output = stage.confined("exit 143")?;
    check!(
        output.termination == Termination::Exited,
        "{}",
        told(&output)
    );
    let output = stage.confined("kill -15 $$")?;
    check!(
        output.termination == Termination::Signaled(15),
        "{}",
        told(&output)
    );
    let request = prx_runtime_core::ExecutionRequest::program("./nowhere").arg("x");
    match stage.run(&stage.runtime()?, request) {
        Ok(output) => Err(told(&output).into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::ProgramNotFound, "{error}");
            Ok(())
        }
    }
}

fn no_group_left(stage: &Stage) -> Result<(), Failed> {
    let stage = limited(stage, |config| {
        config.security.sandbox.level = SandboxLevel::BestEffort;
        config.security.resources.max_memory_mb = Some(64);
        config.security.resources.max_subprocesses = Some(20);
    });
    for line in [
        "true",
        "exit 1",
        "kill -9 $$",
        "setsid sleep 60 >/dev/null 2>&1 & exit 0",
    ] {
        stage.confined(line)?;
    }
    let lasting = lasting_groups();
    check!(lasting.is_empty(), "left: {lasting:?}");
    Ok(())
}

/// The groups of this process in which nothing runs, now and for as long as a trial beside this one
/// may take to start something in one that it has made.
pub(crate) fn lasting_groups() -> Vec<std::path::PathBuf> {
    let own = format!("prx-{}-", prx_runtime_core::Owner::current());
    let mut left = find("/sys/fs/cgroup".as_ref(), &own, 6);
    for _ in 0..200 {
        left.retain(|path| {
            std::fs::read_to_string(path.join("cgroup.procs")).is_ok_and(|text| text.is_empty())
        });
        if left.is_empty() {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    left
}

fn find(directory: &std::path::Path, prefix: &str, depth: u32) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    let Ok(entries) = std::fs::read_dir(directory) else {
        return found;
    };
    for entry in entries.flatten() {
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        if entry.file_name().to_string_lossy().starts_with(prefix) {
            found.push(entry.path());
        } else if depth > 0 {
            found.extend(find(&entry.path(), prefix, depth - 1));
        }
    }
    found
}
