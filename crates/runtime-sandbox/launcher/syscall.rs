//! The system calls of the launcher, without a libc.

use core::arch::{asm, global_asm};

/// An error number of the system, positive.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Errno(pub(crate) i32);

impl Errno {
    pub(crate) const PERM: Self = Self(1);
    pub(crate) const INTR: Self = Self(4);
    pub(crate) const INVAL: Self = Self(22);
    pub(crate) const TXTBSY: Self = Self(26);
}

#[cfg(target_arch = "x86_64")]
mod number {
    pub(super) const READ: usize = 0;
    pub(super) const WRITE: usize = 1;
    pub(super) const CLOSE: usize = 3;
    pub(super) const LSEEK: usize = 8;
    pub(super) const MMAP: usize = 9;
    pub(super) const RT_SIGPROCMASK: usize = 14;
    pub(super) const NANOSLEEP: usize = 35;
    pub(super) const EXECVE: usize = 59;
    pub(super) const WAIT4: usize = 61;
    pub(super) const FCNTL: usize = 72;
    pub(super) const CHDIR: usize = 80;
    pub(super) const SETSID: usize = 112;
    pub(super) const PRCTL: usize = 157;
    pub(super) const EXIT_GROUP: usize = 231;
    pub(super) const OPENAT: usize = 257;
    pub(super) const READLINKAT: usize = 267;
    pub(super) const PPOLL: usize = 271;
    pub(super) const SIGNALFD4: usize = 289;
    pub(super) const PRLIMIT64: usize = 302;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const LANDLOCK_ADD_RULE: usize = 445;
    pub(super) const LANDLOCK_RESTRICT_SELF: usize = 446;
}

#[cfg(target_arch = "aarch64")]
mod number {
    pub(super) const FCNTL: usize = 25;
    pub(super) const CHDIR: usize = 49;
    pub(super) const OPENAT: usize = 56;
    pub(super) const CLOSE: usize = 57;
    pub(super) const LSEEK: usize = 62;
    pub(super) const READ: usize = 63;
    pub(super) const WRITE: usize = 64;
    pub(super) const PPOLL: usize = 73;
    pub(super) const SIGNALFD4: usize = 74;
    pub(super) const READLINKAT: usize = 78;
    pub(super) const EXIT_GROUP: usize = 94;
    pub(super) const NANOSLEEP: usize = 101;
    pub(super) const RT_SIGPROCMASK: usize = 135;
    pub(super) const SETSID: usize = 157;
    pub(super) const PRCTL: usize = 167;
    pub(super) const EXECVE: usize = 221;
    pub(super) const MMAP: usize = 222;
    pub(super) const WAIT4: usize = 260;
    pub(super) const PRLIMIT64: usize = 261;
    pub(super) const CLOSE_RANGE: usize = 436;
    pub(super) const LANDLOCK_ADD_RULE: usize = 445;
    pub(super) const LANDLOCK_RESTRICT_SELF: usize = 446;
}

/// One system call.
///
/// # Safety
///
/// What the call does to memory must be sound.
unsafe fn call(number: usize, a: [usize; 6]) -> isize {
    let result: isize;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller vouches for the call; these are the registers of the system's ABI.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number.cast_signed() => result,
            in("rdi") a[0], in("rsi") a[1], in("rdx") a[2],
            in("r10") a[3], in("r8") a[4], in("r9") a[5],
            lateout("rcx") _, lateout("r11") _,
            options(nostack),
        );
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: the caller vouches for the call; these are the registers of the system's ABI.
    unsafe {
        asm!(
            "svc 0",
            in("x8") number,
            inlateout("x0") a[0].cast_signed() => result,
            in("x1") a[1], in("x2") a[2], in("x3") a[3], in("x4") a[4], in("x5") a[5],
            options(nostack),
        );
    }
    result
}

// The start of the process: the kernel jumps here with everything on the stack.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl _start",
    "_start:",
    "xor ebp, ebp",
    "mov rdi, rsp",
    "and rsp, -16",
    "call launcher_main",
    "ud2",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl _start",
    "_start:",
    "mov x29, xzr",
    "mov x30, xzr",
    "mov x0, sp",
    "bl launcher_main",
    "brk #1",
);

// clone(CLONE_VM | CLONE_VFORK | SIGCHLD) on a stack of its own, so that the child cannot spoil the
// frames that the parent comes back to.
#[cfg(target_arch = "x86_64")]
global_asm!(
    ".globl launcher_vfork",
    "launcher_vfork:", // rdi: function, rsi: its argument, rdx: top of the child's stack
    "mov r8, rdi",
    "mov r9, rsi",
    "mov rsi, rdx",
    "mov edi, 0x4111",
    "xor edx, edx",
    "xor r10d, r10d",
    "mov eax, 56",
    "syscall",
    "test rax, rax",
    "jnz 1f",
    "xor ebp, ebp",
    "mov rdi, r9",
    "call r8",
    "ud2",
    "1:",
    "ret",
);

#[cfg(target_arch = "aarch64")]
global_asm!(
    ".globl launcher_vfork",
    "launcher_vfork:", // x0: function, x1: its argument, x2: top of the child's stack
    "mov x9, x0",
    "mov x10, x1",
    "mov x1, x2",
    "mov x0, #0x4111",
    "mov x2, xzr",
    "mov x3, xzr",
    "mov x4, xzr",
    "mov x8, #220",
    "svc 0",
    "cbnz x0, 1f",
    "mov x29, xzr",
    "mov x0, x10",
    "blr x9",
    "brk #1",
    "1:",
    "ret",
);

unsafe extern "C" {
    fn launcher_vfork(
        function: unsafe extern "C" fn(*mut u8) -> !,
        argument: *mut u8,
        stack: *mut u8,
    ) -> isize;
}

/// Runs `function` in a child that shares our memory; returns when it has executed a program or
/// exited.
///
/// # Safety
///
/// `function` must leave our memory sound.
pub(crate) unsafe fn vfork_call(
    function: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
) -> Result<i32, Errno> {
    const STACK: usize = 64 * 1024;
    let stack = sys::map_memory(STACK)?;
    // SAFETY: the stack is fresh and stays mapped; the caller vouches for the function.
    let result = unsafe { launcher_vfork(function, argument, stack.wrapping_add(STACK)) };
    sys::result(result).map(|pid| pid as i32)
}

/// The calls by name.
pub(crate) mod sys {
    use super::{Errno, call, number};

    /// What all six arguments of a call look like where fewer are used.
    macro_rules! call {
        ($number:expr $(, $argument:expr)*) => {{
            let mut arguments = [0_usize; 6];
            let given: &[usize] = &[$($argument as usize),*];
            let mut index = 0;
            while index < given.len() && index < 6 {
                arguments[index] = given[index];
                index += 1;
            }
            call($number, arguments)
        }};
    }

    pub(crate) fn result(value: isize) -> Result<usize, Errno> {
        if (-4095..0).contains(&value) {
            Err(Errno(-value as i32))
        } else {
            Ok(value.cast_unsigned())
        }
    }

    pub(crate) fn exit(code: i32) -> ! {
        loop {
            // SAFETY: ends the process.
            unsafe { call!(number::EXIT_GROUP, code) };
        }
    }

    pub(crate) fn write(fd: i32, bytes: &[u8]) -> Result<usize, Errno> {
        // SAFETY: reads from a slice.
        result(unsafe { call!(number::WRITE, fd, bytes.as_ptr(), bytes.len()) })
    }

    /// Reads and forgets what a descriptor has to say.
    pub(crate) fn drain(fd: i32) {
        let mut bytes = [0_u8; 128];
        // SAFETY: writes into the array.
        let _ = unsafe { call!(number::READ, fd, &raw mut bytes, bytes.len()) };
    }

    /// A descriptor that is readable when a child has ended.
    pub(crate) fn watch_children() -> Result<i32, Errno> {
        const BLOCK: usize = 0;
        const CHILD: u32 = 17;
        const NONBLOCK_CLOEXEC: usize = 0o2_004_000;
        let set = 1_u64 << (CHILD - 1);
        // SAFETY: reads eight bytes.
        result(unsafe {
            call!(number::RT_SIGPROCMASK, BLOCK, &raw const set, 0, size_of::<u64>())
        })?;
        // SAFETY: as above.
        let fd = unsafe {
            call!(number::SIGNALFD4, -1_isize, &raw const set, size_of::<u64>(), NONBLOCK_CLOEXEC)
        };
        result(fd).map(|fd| fd as i32)
    }

    /// Waits until `children` is readable or nobody reads `pipe` any more, which it answers.
    pub(crate) fn wait_for(children: i32, pipe: i32) -> bool {
        const READABLE: u32 = 1;
        const ERROR: u32 = 8;
        // Descriptor, what is asked in the lower half and what is answered in the upper.
        let mut entries = [[children.cast_unsigned(), READABLE], [pipe.cast_unsigned(), 0]];
        // SAFETY: reads and writes two entries of eight bytes.
        let _ = unsafe { call!(number::PPOLL, &raw mut entries, entries.len(), 0, 0, 0) };
        // SAFETY: the kernel wrote there behind the compiler's back.
        let entries = unsafe { core::ptr::read_volatile(&raw const entries) };
        entries[1][1] >> 16 & ERROR != 0
    }

    /// The text of a symbolic link; how long it is.
    pub(crate) fn read_link(path: *const u8, text: &mut [u8]) -> Result<usize, Errno> {
        // SAFETY: reads a string and writes into the slice.
        result(unsafe {
            call!(number::READLINKAT, CURRENT, path, text.as_mut_ptr(), text.len())
        })
    }

    /// Relative paths start at the current directory.
    const CURRENT: isize = -100;

    /// Opens `path` for nothing but its name.
    pub(crate) fn open_path(path: *const u8) -> Result<i32, Errno> {
        const PATH_CLOEXEC: usize = 0o12_000_000;
        // SAFETY: reads a string.
        let fd = unsafe { call!(number::OPENAT, CURRENT, path, PATH_CLOEXEC, 0) };
        result(fd).map(|fd| fd as i32)
    }

    /// Adds to `ruleset` that `rights` are given below `directory`.
    pub(crate) fn landlock_add(ruleset: i32, directory: i32, rights: u64) -> Result<usize, Errno> {
        const PATH_BENEATH: usize = 1;
        let [a, b] = [rights as u32, (rights >> 32) as u32];
        let rule = [a, b, directory.cast_unsigned()];
        // SAFETY: reads the twelve bytes of a packed rule.
        result(unsafe {
            call!(number::LANDLOCK_ADD_RULE, ruleset, PATH_BENEATH, &raw const rule, 0)
        })
    }

    pub(crate) fn landlock_restrict(ruleset: i32) -> Result<usize, Errno> {
        // SAFETY: touches no memory.
        result(unsafe { call!(number::LANDLOCK_RESTRICT_SELF, ruleset, 0) })
    }

    pub(crate) fn no_new_privileges() -> Result<usize, Errno> {
        const SET_NO_NEW_PRIVS: usize = 38;
        // SAFETY: touches no memory.
        result(unsafe { call!(number::PRCTL, SET_NO_NEW_PRIVS, 1, 0, 0, 0) })
    }

    /// Puts a filter of `length` steps on this thread and on what it starts.
    pub(crate) fn set_filter(steps: *const u64, length: u16) -> Result<usize, Errno> {
        const SET_SECCOMP: usize = 22;
        const FILTER: usize = 2;
        let program = [usize::from(length), steps as usize];
        // SAFETY: the kernel reads the length, which is the first 16 bits, and so many steps.
        result(unsafe { call!(number::PRCTL, SET_SECCOMP, FILTER, &raw const program) })
    }

    /// What loses its parent becomes our child.
    pub(crate) fn adopt_orphans() -> Result<usize, Errno> {
        const SET_CHILD_SUBREAPER: usize = 36;
        // SAFETY: touches no memory.
        result(unsafe { call!(number::PRCTL, SET_CHILD_SUBREAPER, 1) })
    }

    pub(crate) fn close(fd: i32) -> Result<usize, Errno> {
        // SAFETY: nobody else in this process owns descriptors.
        result(unsafe { call!(number::CLOSE, fd) })
    }

    pub(crate) fn length_of(fd: i32) -> Result<usize, Errno> {
        const SEEK_END: usize = 2;
        // SAFETY: touches no memory.
        result(unsafe { call!(number::LSEEK, fd, 0, SEEK_END) })
    }

    pub(crate) fn map_file(fd: i32, length: usize) -> Result<*mut u8, Errno> {
        const READ: usize = 1;
        const PRIVATE: usize = 2;
        // SAFETY: a fresh mapping.
        let address = unsafe { call!(number::MMAP, 0, length, READ, PRIVATE, fd, 0) };
        result(address).map(|address| address as *mut u8)
    }

    pub(crate) fn map_memory(length: usize) -> Result<*mut u8, Errno> {
        const READ_WRITE: usize = 3;
        const PRIVATE_ANONYMOUS: usize = 0x22;
        // SAFETY: a fresh mapping.
        let address =
            unsafe { call!(number::MMAP, 0, length, READ_WRITE, PRIVATE_ANONYMOUS, -1_isize, 0) };
        result(address).map(|address| address as *mut u8)
    }

    pub(crate) fn wait(status: &mut i32, only_look: bool) -> Result<i32, Errno> {
        let options = usize::from(only_look);
        // SAFETY: writes into `status`.
        let pid = unsafe { call!(number::WAIT4, -1_isize, &raw mut *status, options, 0) };
        result(pid).map(|pid| pid as i32)
    }

    pub(crate) fn make_undumpable() -> Result<usize, Errno> {
        const SET_DUMPABLE: usize = 4;
        // SAFETY: touches no memory.
        result(unsafe { call!(number::PRCTL, SET_DUMPABLE, 0) })
    }

    /// A session and process group of its own, without the terminal of the host, and no signal
    /// blocked.
    pub(crate) fn own_session() -> Result<usize, Errno> {
        const SET_MASK: usize = 2;
        let empty = 0_u64;
        // SAFETY: reads eight bytes.
        result(unsafe {
            call!(number::RT_SIGPROCMASK, SET_MASK, &raw const empty, 0, size_of::<u64>())
        })?;
        // SAFETY: touches no memory.
        result(unsafe { call!(number::SETSID, 0) })
    }

    pub(crate) fn set_limit(resource: u64, soft: u64, hard: u64) -> Result<usize, Errno> {
        let limit = [soft, hard];
        // SAFETY: reads sixteen bytes.
        result(unsafe { call!(number::PRLIMIT64, 0, resource, limit.as_ptr(), 0) })
    }

    pub(crate) fn change_directory(path: *const u8) -> Result<usize, Errno> {
        // SAFETY: reads a string.
        result(unsafe { call!(number::CHDIR, path) })
    }

    /// Returns only where it fails.
    pub(crate) fn execute(
        program: *const u8,
        argv: *const *const u8,
        envp: *const *const u8,
    ) -> Errno {
        // SAFETY: reads a string and two arrays of strings that end with a null pointer.
        match result(unsafe { call!(number::EXECVE, program, argv, envp) }) {
            Ok(_) => Errno::INVAL,
            Err(errno) => errno,
        }
    }

    pub(crate) fn sleep(nanoseconds: i64) {
        let time = [0_i64, nanoseconds];
        // SAFETY: reads sixteen bytes.
        let _ = unsafe { call!(number::NANOSLEEP, time.as_ptr(), 0) };
    }

    /// Descriptors above the standard streams that an old kernel is asked to close one by one.
    const OLD_KERNEL_TABLE: i32 = 1024;

    /// Closes everything but the standard streams and `kept`.
    pub(crate) fn close_all_but(kept: [i32; 2]) {
        let [a, b] = kept;
        let (low, high) = if a < b { (a, b) } else { (b, a) };
        let mut all = true;
        for (first, last) in [
            (3, (low - 1).cast_unsigned()),
            (low + 1, (high - 1).cast_unsigned()),
            (high + 1, u32::MAX),
        ] {
            if first.cast_unsigned() <= last {
                // SAFETY: nobody else in this process owns descriptors.
                all &= result(unsafe { call!(number::CLOSE_RANGE, first, last, 0) }).is_ok();
            }
        }
        if all {
            return;
        }
        for fd in 3..OLD_KERNEL_TABLE {
            if !kept.contains(&fd) {
                let _ = close(fd);
            }
        }
    }

    /// Lets the program that is executed next inherit the standard streams and nothing else.
    pub(crate) fn close_all_but_standard_on_exec() {
        const CLOSE_ON_EXEC_RANGE: usize = 4;
        // SAFETY: closes nothing now.
        let marked =
            result(unsafe { call!(number::CLOSE_RANGE, 3, u32::MAX, CLOSE_ON_EXEC_RANGE) });
        if marked.is_err() {
            for fd in 3..OLD_KERNEL_TABLE {
                close_on_exec(fd);
            }
        }
    }

    /// Keeps one descriptor from the program that is executed next.
    pub(crate) fn close_on_exec(fd: i32) {
        const SET_FLAGS: usize = 2;
        const CLOSE_ON_EXEC: usize = 1;
        // SAFETY: closes nothing now.
        let _ = unsafe { call!(number::FCNTL, fd, SET_FLAGS, CLOSE_ON_EXEC) };
    }
}
