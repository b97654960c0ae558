//! Other processes, and what the host holds.

use std::fs::File;
use std::io::{Read, Seek};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;

use libtest_mimic::Failed;
use prx_runtime_core::config::SandboxKind;
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::Entry;
use crate::caller::command;
use crate::stage::{Stage, block_on, check, told};

pub(crate) const TRIALS: &[Entry] = &[
    (
        "the_environment_of_the_host_is_out_of_reach",
        host_environment,
    ),
    ("the_memory_maps_of_the_host_are_out_of_reach", host_maps),
    ("the_host_is_not_signalled", host_signal),
    ("the_host_is_not_traced", host_trace),
    ("nothing_of_the_host_is_limited_or_slowed_down", others),
    ("a_command_limits_and_slows_down_itself", itself),
    ("descriptors_of_the_host_are_not_inherited", descriptors),
    ("nothing_of_the_launcher_is_inherited", launcher_descriptors),
    ("the_launcher_is_out_of_reach", launcher),
    (
        "arguments_and_environment_are_in_no_command_line",
        command_lines,
    ),
    ("nothing_outlives_the_command", nothing_outlives),
    ("many_strays_end_and_are_counted", strays),
];

fn host_environment(stage: &Stage) -> Result<(), Failed> {
    let host = std::process::id();
    stage.denies(&format!("head -c 9 /proc/{host}/environ | grep -qa ."))?;
    let ours = "cat /proc/[0-9]*/environ 2>/dev/null | tr '\\0' '\\n' | grep ^CARGO_MANIFEST_DIR=";
    if std::env::var_os("CARGO_MANIFEST_DIR").is_some() {
        stage.denies(ours)?;
    }
    Ok(())
}

fn host_maps(stage: &Stage) -> Result<(), Failed> {
    let host = std::process::id();
    stage.denies(&format!("head -c 16 /proc/{host}/maps | grep -q ."))?;
    stage.refuses(&format!("readlink /proc/{host}/fd/0"))?;
    Ok(())
}

fn host_signal(stage: &Stage) -> Result<(), Failed> {
    let host = std::process::id();
    stage.denies(&format!("kill -0 {host}"))?;
    Ok(())
}

fn host_trace(stage: &Stage) -> Result<(), Failed> {
    // A sleeper of the host, which a tracer of the same user could attach to.
    let mut sleeper = command("sleep").arg("60").spawn()?;
    let line = format!(
        "python3 -c 'import ctypes, sys; libc = ctypes.CDLL(None); \
         r = libc.ptrace(0x4206, {}, 0, 0); sys.exit(0 if r == 0 else 1)'",
        sleeper.id()
    );
    let result = stage.refuses(&line);
    let control = stage.bare(&line);
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    result?;
    // Yama may forbid it even without us, to all but root.
    if rustix::process::getuid().is_root() {
        let control = control?;
        check!(control.success(), "{}", told(&control));
    }
    Ok(())
}

fn others(stage: &Stage) -> Result<(), Failed> {
    let mut sleeper = command("sleep").arg("60").process_group(0).spawn()?;
    let result = meddle(stage, sleeper.id());
    let _ = sleeper.kill();
    let _ = sleeper.wait();
    result
}

fn python(code: &str) -> String {
    format!("python3 -c 'import ctypes as c, os, resource as r; {code}'")
}

/// Whatever a process may do to another of the same user without a signal.
fn meddle(stage: &Stage, victim: u32) -> Result<(), Failed> {
    let attributes = "a = (c.c_uint32 * 12)(48, os.SCHED_IDLE)";
    for code in [
        format!("r.prlimit({victim}, r.RLIMIT_NOFILE, (64, 64))"),
        format!("r.prlimit({victim}, r.RLIMIT_CPU, (3600, 3600))"),
        format!("os.sched_setaffinity({victim}, os.sched_getaffinity(0))"),
        format!("os.setpriority(os.PRIO_PROCESS, {victim}, 5)"),
        format!("os.setpriority(os.PRIO_PGRP, {victim}, 5)"),
        format!("os.sched_setscheduler({victim}, os.SCHED_IDLE, os.sched_param(0))"),
        format!("os.sched_setparam({victim}, os.sched_param(0))"),
        format!(
            "{attributes}; assert c.CDLL(None).syscall({}, {victim}, a, 0) == 0",
            libc::SYS_sched_setattr
        ),
    ] {
        stage.denies(&python(&code))?;
    }
    stage.denies(&format!("ionice -c 3 -p {victim}"))?;
    stage.denies(&format!("ionice -c 3 -P {victim}"))?;
    // Here the kernel itself asks whether the caller may trace. It may have no such call.
    for call in [
        format!("{}, {victim}, 64, m, m", libc::SYS_migrate_pages),
        format!("{}, {victim}, 0, None, None, None, 0", libc::SYS_move_pages),
        format!("{}, {victim}, {victim}, 0, 0, 0", libc::SYS_kcmp),
    ] {
        let code = format!("m = (c.c_uint64 * 2)(1); assert c.CDLL(None).syscall({call}) >= 0");
        if stage.bare(&python(&code))?.success() {
            stage.denies(&python(&code))?;
        }
    }
    Ok(())
}

fn itself(stage: &Stage) -> Result<(), Failed> {
    for line in [
        "ulimit -Sn 64 && test $(ulimit -Sn) = 64",
        "nice -n 5 true",
        "ionice -c 3 true",
        "chrt --idle 0 true",
        &python("os.sched_setaffinity(0, os.sched_getaffinity(0))"),
        // What is only read may be anybody's.
        &python("r.prlimit(os.getpid(), r.RLIMIT_NOFILE)"),
    ] {
        stage.allows(line)?;
    }
    Ok(())
}

fn descriptors(stage: &Stage) -> Result<(), Failed> {
    let path = stage.outside_file("held", "what the host holds")?;
    let mut held = File::open(path)?;
    // As a careless host has it.
    // SAFETY: only a flag of a descriptor that is ours is changed.
    let changed = unsafe { libc::fcntl(held.as_raw_fd(), libc::F_SETFD, 0) };
    check!(changed == 0, "the flag cannot be changed");
    let line = format!("cat <&{}", held.as_raw_fd());
    stage.denies(&line)?;
    held.rewind()?;
    let mut text = String::new();
    held.read_to_string(&mut text)?;
    check!(text == "what the host holds", "the host lost it: {text}");
    Ok(())
}

fn launcher_descriptors(stage: &Stage) -> Result<(), Failed> {
    let listed = stage.allows("for fd in /proc/self/fd/*; do echo ${fd##*/}; done")?;
    let numbers: Vec<&str> = listed
        .lines()
        .filter(|fd| !matches!(*fd, "0" | "1" | "2"))
        .collect();
    // The shell itself may hold the directory that it lists.
    check!(
        numbers.len() <= 1,
        "more than the standard streams: {numbers:?}"
    );
    Ok(())
}

fn launcher(stage: &Stage) -> Result<(), Failed> {
    if stage.kind() != SandboxKind::Bubblewrap {
        return Ok(());
    }
    stage.refuses("kill -9 1; sleep 0.1; cat /proc/1/environ /proc/1/maps")?;
    stage.refuses("ls -l /proc/1/fd/ | grep -q pipe")?;
    stage.refuses(
        "python3 -c 'import ctypes, sys; libc = ctypes.CDLL(None); \
         sys.exit(0 if libc.ptrace(0x4206, 1, 0, 0) == 0 else 1)'",
    )?;
    Ok(())
}

fn command_lines(stage: &Stage) -> Result<(), Failed> {
    let stage = stage.under({
        let mut config = stage.config.clone();
        config.runtime.env_whitelist.push("PRX_WORD".into());
        config
    });
    // Seen from the host, while it runs.
    let runtime = stage.runtime()?;
    let request = ExecutionRequest::shell("touch here; while ! test -e seen; do sleep 0.01; done")
        .env("PRX_WORD", "swordfish-of-the-call")
        .working_dir(stage.workspace())
        .timeout(std::time::Duration::from_secs(20));
    let lines = block_on(async {
        let running = tokio::task::LocalSet::new();
        let workspace = stage.workspace();
        running
            .run_until(async {
                let looked = tokio::task::spawn_local(async move {
                    while !workspace.join("here").exists() {
                        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    }
                    let lines = every_command_line();
                    let _ = std::fs::write(workspace.join("seen"), "");
                    lines
                });
                let output = runtime.run(request).await;
                (looked.await, output)
            })
            .await
    });
    let (lines, output) = (lines.0?, lines.1?);
    check!(output.success(), "{}", told(&output));
    check!(
        lines.contains("while ! test -e seen"),
        "the command itself was not seen"
    );
    check!(
        !lines.contains("swordfish-of-the-call"),
        "the value stands in a command line"
    );
    Ok(())
}

fn every_command_line() -> String {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return String::new();
    };
    processes
        .flatten()
        .filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok())
        .map(|line| String::from_utf8_lossy(&line).replace('\0', " ") + "\n")
        .collect()
}

fn nothing_outlives(stage: &Stage) -> Result<(), Failed> {
    let output = stage
        .confined("(setsid sh -c 'sleep 1; echo alive > late' > /dev/null 2>&1 &) ; exit 3")?;
    check!(output.exit_code == 3, "{}", told(&output));
    std::thread::sleep(std::time::Duration::from_millis(1500));
    check!(!stage.workspace().join("late").exists(), "a stray lived on");
    Ok(())
}

fn strays(stage: &Stage) -> Result<(), Failed> {
    let output = stage.confined(
        "for i in $(seq 200); do (setsid sleep 300 > /dev/null 2>&1 &); done; echo started; exit 5",
    )?;
    check!(output.exit_code == 5, "{}", told(&output));
    check!(output.leftover_processes > 0, "no leftovers were counted");
    Ok(())
}
