//! A filter of system calls for containers whose user is root.
//!
//! A container drops every capability, but whoever owns a file may set its setuid bit, and in a
//! workspace of root that makes a program which any user of the host could become root with. The
//! engine's own filter allows that. This one allows what engines allow to a container without
//! capabilities, except to make or to change a file into one that is setuid or setgid.

use std::os::fd::{AsRawFd, OwnedFd};

use serde_json::{Value, json};

/// The bits setuid and setgid of a mode.
const SET_ID: u32 = 0o6000;
/// The bits of `open` with which a mode is looked at: `O_CREAT` and `O_TMPFILE`.
const CREATES: u32 = 0o100 | 0o20_000_000;
/// Every `CLONE_NEW…`: namespaces.
const NAMESPACES: u32 = 0x7E02_0000;
/// The address family of virtual machine sockets, which no network namespace confines.
const AF_VSOCK: u32 = 40;
/// `ENOSYS`: the caller tries an older call, whose arguments can be looked at.
const NOT_IMPLEMENTED: u32 = 38;

/// Calls that are allowed whatever their arguments.
const ALLOWED: &str = "\
    _llseek _newselect accept accept4 access adjtimex alarm arch_prctl bind brk capget capset chdir \
    chown chown32 clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime \
    clock_gettime64 clock_nanosleep clock_nanosleep_time64 close close_range connect copy_file_range \
    dup dup2 dup3 epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 \
    epoll_wait epoll_wait_old eventfd eventfd2 execve execveat exit exit_group faccessat faccessat2 \
    fadvise64 fadvise64_64 fallocate fanotify_mark fchdir fchown fchown32 fchownat fcntl fcntl64 \
    fdatasync fgetxattr flistxattr flock fork fremovexattr fsetxattr fstat fstat64 fstatat64 fstatfs \
    fstatfs64 fsync ftruncate ftruncate64 futex futex_time64 futimesat get_robust_list \
    get_thread_area getcpu getcwd getdents getdents64 getegid getegid32 geteuid geteuid32 getgid \
    getgid32 getgroups getgroups32 getitimer getpeername getpgid getpgrp getpid getppid getpriority \
    getrandom getresgid getresgid32 getresuid getresuid32 getrlimit getrusage getsid getsockname \
    getsockopt gettid gettimeofday getuid getuid32 getxattr inotify_add_watch inotify_init \
    inotify_init1 inotify_rm_watch io_cancel io_destroy io_getevents io_setup io_submit ioctl \
    ioprio_get ioprio_set ipc kill landlock_add_rule landlock_create_ruleset landlock_restrict_self \
    lchown lchown32 lgetxattr link linkat listen listxattr llistxattr lremovexattr lseek lsetxattr \
    lstat lstat64 madvise membarrier memfd_create memfd_secret mincore mkdir mkdirat mlock mlock2 \
    mlockall mmap mmap2 modify_ldt mprotect mq_getsetattr mq_notify mq_open mq_timedreceive \
    mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink mremap msgctl msgget msgrcv \
    msgsnd msync munlock munlockall munmap nanosleep newfstatat pause pidfd_getfd pidfd_open \
    pidfd_send_signal pipe pipe2 pkey_alloc pkey_free pkey_mprotect poll ppoll ppoll_time64 prctl \
    pread64 preadv preadv2 prlimit64 process_mrelease process_vm_readv process_vm_writev pselect6 \
    pselect6_time64 ptrace pwrite64 pwritev pwritev2 read readahead readdir readlink readlinkat \
    readv recv recvfrom recvmmsg recvmmsg_time64 recvmsg remap_file_pages removexattr rename \
    renameat renameat2 restart_syscall rmdir rseq rt_sigaction rt_sigpending rt_sigprocmask \
    rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait rt_sigtimedwait_time64 \
    rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr \
    sched_getparam sched_getscheduler sched_rr_get_interval sched_rr_get_interval_time64 \
    sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp select \
    semctl semget semop semtimedop semtimedop_time64 send sendfile sendfile64 sendmmsg sendmsg \
    sendto set_robust_list set_thread_area set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 \
    setgid setgid32 setgroups setgroups32 setitimer setpgid setpriority setregid setregid32 \
    setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit setsid setsockopt \
    setuid setuid32 setxattr shmat shmctl shmdt shmget shutdown sigaction sigaltstack signal \
    signalfd signalfd4 sigpending sigprocmask sigreturn sigsuspend socketcall socketpair splice stat \
    stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range syncfs syscall sysinfo tee \
    tgkill time timer_create timer_delete timer_getoverrun timer_gettime timer_gettime64 \
    timer_settime timer_settime64 timerfd timerfd_create timerfd_gettime timerfd_gettime64 \
    timerfd_settime timerfd_settime64 times tkill truncate truncate64 ugetrlimit umask uname unlink \
    unlinkat utime utimensat utimensat_time64 utimes vfork wait4 waitid waitpid write writev";

/// The profile, as engines take it.
pub(crate) fn without_set_id() -> String {
    let allowed: Vec<_> = ALLOWED.split_ascii_whitespace().collect();
    let mut rules = vec![
        json!({"names": allowed, "action": "SCMP_ACT_ALLOW", "args": []}),
        // Its arguments lie in memory, where no filter sees them.
        json!({
            "names": ["clone3", "fchmodat2", "openat2"],
            "action": "SCMP_ACT_ERRNO",
            "errnoRet": NOT_IMPLEMENTED,
            "args": [],
        }),
    ];
    let modes = [
        ("chmod", 1),
        ("fchmod", 1),
        ("fchmodat", 2),
        ("creat", 1),
        ("mknod", 1),
        ("mknodat", 2),
        ("open", 2),
        ("openat", 3),
    ];
    rules.extend(modes.map(|(name, argument)| without_bits(name, argument, SET_ID)));
    rules.extend(
        [("open", 1), ("openat", 2)].map(|(name, flags)| without_bits(name, flags, CREATES)),
    );
    rules.push(without_bits("clone", 0, NAMESPACES));
    rules.push(when("socket", 0, "SCMP_CMP_NE", AF_VSOCK, 0));
    // What `personality` may be: Linux, 32 bits, addresses not randomised, or asked for.
    let personalities = [0, 8, 0x2_0000, 0x2_0008, u32::MAX];
    rules.extend(personalities.map(|kind| when("personality", 0, "SCMP_CMP_EQ", kind, 0)));
    let architectures = [
        (
            "SCMP_ARCH_X86_64",
            ["SCMP_ARCH_X86", "SCMP_ARCH_X32"].as_slice(),
        ),
        ("SCMP_ARCH_AARCH64", &["SCMP_ARCH_ARM"]),
    ]
    .map(|(name, also)| json!({"architecture": name, "subArchitectures": also}));
    json!({"defaultAction": "SCMP_ACT_ERRNO", "archMap": architectures, "syscalls": rules})
        .to_string()
}

/// A profile as a file in memory, for an engine that reads it by a path: Podman. There as long as
/// this is.
#[derive(Debug)]
pub(crate) struct ProfileFile(OwnedFd);

impl ProfileFile {
    pub(crate) fn new(profile: &str) -> std::io::Result<Self> {
        let file = rustix::fs::memfd_create("prx-seccomp", rustix::fs::MemfdFlags::CLOEXEC)?;
        let mut file = std::fs::File::from(file);
        std::io::Write::write_all(&mut file, profile.as_bytes())?;
        Ok(Self(file.into()))
    }

    /// Where an engine of this machine finds it.
    pub(crate) fn path(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }
}

/// Allows a call whose argument has none of `bits`.
fn without_bits(name: &str, argument: u32, bits: u32) -> Value {
    when(name, argument, "SCMP_CMP_MASKED_EQ", bits, 0)
}

fn when(name: &str, argument: u32, operator: &str, value: u32, other: u32) -> Value {
    let condition = json!({"index": argument, "op": operator, "value": value, "valueTwo": other});
    json!({"names": [name], "action": "SCMP_ACT_ALLOW", "args": [condition]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_allowed_twice_over() {
        let profile: Value = serde_json::from_str(&without_set_id()).unwrap();
        let allowed: Vec<_> = ALLOWED.split_ascii_whitespace().collect();
        for rule in profile["syscalls"].as_array().unwrap() {
            let conditional =
                !rule["args"].as_array().unwrap().is_empty() || rule["action"] == "SCMP_ACT_ERRNO";
            for name in rule["names"].as_array().unwrap() {
                let unconditional = allowed.contains(&name.as_str().unwrap());
                assert_ne!(conditional, unconditional, "{name}");
            }
        }
    }

    #[test]
    fn calls_that_would_get_around_it_are_not_allowed() {
        let allowed: Vec<_> = ALLOWED.split_ascii_whitespace().collect();
        for name in [
            "io_uring_setup",
            "open_by_handle_at",
            "mount",
            "unshare",
            "setns",
            "bpf",
            "keyctl",
            "kexec_load",
        ] {
            assert!(!allowed.contains(&name), "{name}");
        }
    }
}
