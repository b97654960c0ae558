//! The kernel: settings, namespaces, calls that no command needs.

use std::io::Read as _;

use libtest_mimic::Failed;

use crate::stage::{Stage, check, told};
use crate::{Entry, caller};

pub(crate) const TRIALS: &[Entry] = &[
    ("kernel_settings_are_not_written", settings),
    ("cgroups_are_not_written", cgroups),
    ("nothing_is_mounted", mounts),
    ("no_user_namespace_is_made", user_namespaces),
    ("no_module_is_loaded", modules),
    ("keyrings_bpf_and_io_uring_are_closed", closed_calls),
    ("nothing_is_typed_into_the_terminal", typing),
    ("nothing_is_written_to_the_terminal", screen),
    ("other_calling_conventions_are_closed", conventions),
    ("there_are_no_capabilities", capabilities),
];

fn root() -> bool {
    rustix::process::getuid().is_root()
}

/// A system call that succeeds or not.
fn call(number: i64, arguments: &str) -> String {
    format!(
        "python3 -c 'import ctypes, sys; r = ctypes.CDLL(None).syscall({number}, {arguments}); \
         sys.exit(0 if r >= 0 else 1)'"
    )
}

fn settings(stage: &Stage) -> Result<(), Failed> {
    let pattern = std::fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    let line =
        "cat /proc/sys/kernel/core_pattern > here && cat here > /proc/sys/kernel/core_pattern";
    if root() {
        stage.denies(line)?;
        stage.refuses("exec 3> /proc/sysrq-trigger")?;
    } else {
        stage.refuses(line)?;
    }
    let after = std::fs::read_to_string("/proc/sys/kernel/core_pattern")?;
    check!(pattern == after, "{after}");
    Ok(())
}

fn cgroups(stage: &Stage) -> Result<(), Failed> {
    let line = "for d in /sys/fs/cgroup /sys/fs/cgroup/*; do \
                mkdir $d/prx-trial-$$ 2>/dev/null && rmdir $d/prx-trial-$$ && exit 0; done; exit 1";
    if root() {
        stage.denies(line)?
    } else {
        stage.refuses(line)?
    };
    let line = "for f in /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/*/cgroup.procs; do \
                (exec 3>> $f) 2>/dev/null && exit 0; done; exit 1";
    if root() {
        stage.denies(line)?
    } else {
        stage.refuses(line)?
    };
    Ok(())
}

fn mounts(stage: &Stage) -> Result<(), Failed> {
    let line = "unshare -m true && mkdir -p m && unshare -m mount -t tmpfs none m";
    if root() {
        stage.denies(line)?
    } else {
        stage.refuses(line)?
    };
    for line in [
        "mount -o remount,rw,bind /",
        "umount /proc",
        "mount --bind . /etc",
    ] {
        stage.refuses(line)?;
    }
    Ok(())
}

fn user_namespaces(stage: &Stage) -> Result<(), Failed> {
    stage.denies("unshare -U true")?;
    stage.denies(&call(libc::SYS_unshare, "0x10000000"))?;
    // The newer call, whose flags no filter sees, is not there at all.
    let clone = "python3 -c 'import ctypes, sys, os; l = ctypes.CDLL(None, use_errno=True); \
                 a = (ctypes.c_uint64 * 8)(0x10000000, 0, 0, 0, 17, 0, 0, 0); \
                 r = l.syscall(435, a, 64); os._exit(0 if r >= 0 else 1)'";
    stage.denies(clone)?;
    Ok(())
}

fn modules(stage: &Stage) -> Result<(), Failed> {
    // An empty image: who may load modules is told that it is none (ENOEXEC), others EPERM.
    let line = "python3 -c 'import ctypes, sys; l = ctypes.CDLL(None, use_errno=True); \
                l.syscall(175, b\"\", 0, b\"\"); sys.exit(0 if ctypes.get_errno() == 8 else 1)'";
    if root() && cfg!(target_arch = "x86_64") && stage.bare(line)?.success() {
        stage.denies(line)?;
    }
    Ok(())
}

fn closed_calls(stage: &Stage) -> Result<(), Failed> {
    // KEYCTL_GET_KEYRING_ID of the session keyring.
    let keys = call(libc::SYS_keyctl, "0, -3, 1");
    let ring = format!(
        "python3 -c 'import ctypes, sys; p = (ctypes.c_char * 120)(); \
         r = ctypes.CDLL(None).syscall({}, 1, p); sys.exit(0 if r >= 0 else 1)'",
        libc::SYS_io_uring_setup
    );
    for (what, line) in [("keyctl", keys), ("io_uring", ring)] {
        // A host may have closed it itself.
        if stage.bare(&line)?.success() {
            stage.denies(&line).map_err(|error| {
                Failed::from(format!("{what}: {}", error.message().unwrap_or_default()))
            })?;
        }
    }
    // BPF_MAP_CREATE of an array: key 4, value 4, one entry.
    let map = format!(
        "python3 -c 'import ctypes, sys; a = (ctypes.c_uint32 * 32)(2, 4, 4, 1); \
         r = ctypes.CDLL(None).syscall({}, 0, a, 128); sys.exit(0 if r >= 0 else 1)'",
        libc::SYS_bpf
    );
    if root() && stage.bare(&map)?.success() {
        stage.denies(&map)?;
    }
    stage.refuses(&map)?;
    Ok(())
}

fn typing(stage: &Stage) -> Result<(), Failed> {
    const MARK: &str = "PRX_TRIAL_WITH_TERMINAL";
    // The call is refused before the kernel looks at what it is called on (EPERM and not ENOTTY).
    let line = "python3 -c 'import fcntl, sys, errno\n\
                try: fcntl.ioctl(0, 0x5412, b\"x\")\n\
                except OSError as e: sys.exit(0 if e.errno == errno.ENOTTY else 1)'";
    if std::env::var_os(MARK).is_none() {
        stage.denies(line)?;
        // And in a process that has a terminal.
        return with_terminal(stage, "kernel::nothing_is_typed_into_the_terminal", MARK);
    }
    let terminal = std::fs::File::open("/dev/tty")?;
    let waiting = || rustix::io::ioctl_fionread(&terminal);
    let line = "python3 -c 'import fcntl, os; t = os.open(\"/dev/tty\", os.O_RDWR)\n\
                for c in b\"x\\n\": fcntl.ioctl(t, 0x5412, bytes([c]))'";
    // A kernel may have it closed for everybody (dev.tty.legacy_tiocsti).
    if stage.bare(line)?.success() {
        check!(waiting()? == 2, "nothing was typed without the sandbox");
        (&terminal).read_exact(&mut [0; 2])?;
    }
    stage.refuses(line)?;
    check!(waiting()? == 0, "something was typed");
    Ok(())
}

/// Runs the trial again in a process that has a terminal, and `mark` in its environment.
fn with_terminal(stage: &Stage, trial: &str, mark: &str) -> Result<(), Failed> {
    let spawn = "import os, pty, sys\n\
                 sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    caller::again_by(
        &["python3", "-c", spawn],
        &stage.name(trial),
        (mark, stage.outside()),
    )
}

fn screen(stage: &Stage) -> Result<(), Failed> {
    const MARK: &str = "PRX_TRIAL_WITH_SCREEN";
    if std::env::var_os(MARK).is_none() {
        return with_terminal(stage, "kernel::nothing_is_written_to_the_terminal", MARK);
    }
    // What is said there goes past the capture, and tells the terminal what to do.
    let own = std::fs::read_link("/proc/self/fd/0")?;
    check!(own.starts_with("/dev/pts"), "{}", own.display());
    let host = std::process::id();
    for terminal in ["/dev/tty", &own.to_string_lossy()] {
        stage.denies(&format!("printf shown > {terminal}"))?;
        stage.denies(&format!("exec 3< {terminal}"))?;
    }
    stage.denies(&format!("printf shown > /proc/{host}/fd/0"))?;
    Ok(())
}

fn conventions(stage: &Stage) -> Result<(), Failed> {
    if !cfg!(target_arch = "x86_64") {
        return Ok(());
    }
    // getpid by the x32 numbers.
    stage.refuses(&call(0x4000_0000 + libc::SYS_getpid, "0"))?;
    Ok(())
}

fn capabilities(stage: &Stage) -> Result<(), Failed> {
    let output = stage.confined("grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status")?;
    let said = output.stdout.to_text();
    for line in said.lines() {
        let (name, value) = line.split_once(':').ok_or("a line without a name")?;
        let value = value.trim();
        match name {
            "NoNewPrivs" => check!(value == "1", "{said}"),
            "Seccomp" => check!(value == "2", "{said}"),
            "CapBnd" if !root() => {}
            _ => check!(value.trim_start_matches('0').is_empty(), "{said}"),
        }
    }
    check!(said.lines().count() >= 6, "{}", told(&output));
    Ok(())
}
