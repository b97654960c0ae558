//! The system calls that a confined command does not get.
//!
//! Short on purpose: the kernel checks and compiles the filter anew for each spawn, about 4 µs an
//! instruction. What capabilities and namespaces already keep away (mounting, loading modules,
//! setting the clock) is not listed a second time.

use std::collections::BTreeMap;

use prx_runtime_core::{Error, ErrorKind, Result};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, sock_filter,
};

/// What else keeps a command from the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sockets {
    /// The network is allowed.
    All,
    /// A network namespace: only what it does not cover is refused, which is sockets of virtual
    /// machines and, through the file system, Unix sockets.
    Namespaced,
    /// Nothing: no socket can be made at all. Pairs can.
    None,
}

/// Into the terminal that a process holds, as if it had been typed.
const TIOCSTI: u64 = 0x5412;
/// The same by the console's selection.
const TIOCLINUX: u64 = 0x541c;
/// Numbers from here on are calls of the x32 ABI, which no rule would match.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

#[cfg(target_arch = "x86_64")]
const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::x86_64;
#[cfg(target_arch = "aarch64")]
const ARCH: seccompiler::TargetArch = seccompiler::TargetArch::aarch64;

/// Calls that answer `EPERM`, whatever their arguments.
const REFUSED: [i64; 8] = [
    // The kernel's keyrings are no part of any namespace.
    libc::SYS_keyctl,
    libc::SYS_add_key,
    libc::SYS_request_key,
    // Operations that no filter of system calls sees.
    libc::SYS_io_uring_setup,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    // Into namespaces of others.
    libc::SYS_setns,
];

/// The filter, as the kernel takes it.
pub(crate) fn filter(sockets: Sockets) -> Result<BpfProgram> {
    compile(sockets).map_err(|error| {
        Error::new(
            ErrorKind::Refused,
            "the filter of system calls cannot be made",
        )
        .with_source(error)
    })
}

/// The filter as bytes, for a launcher.
pub(crate) fn filter_bytes(sockets: Sockets) -> Result<Vec<u8>> {
    let program = filter(sockets)?;
    Ok(program
        .iter()
        .flat_map(|step| {
            let [a, b] = step.code.to_ne_bytes();
            let [c, d, e, f] = step.k.to_ne_bytes();
            [a, b, step.jt, step.jf, c, d, e, f]
        })
        .collect())
}

fn compile(sockets: Sockets) -> Result<BpfProgram, seccompiler::BackendError> {
    let equals = |argument: u8, value: u64| {
        let condition =
            SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)?;
        SeccompRule::new(vec![condition])
    };
    let has_bit = |argument: u8, bit: u64| {
        let test = SeccompCmpOp::MaskedEq(bit);
        let condition = SeccompCondition::new(argument, SeccompCmpArgLen::Dword, test, bit)?;
        SeccompRule::new(vec![condition])
    };
    let user_namespace = u64::from(libc::CLONE_NEWUSER.cast_unsigned());
    let family = |family: i32| equals(0, u64::from(family.cast_unsigned()));
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = BTreeMap::new();
    rules.insert(libc::SYS_clone, vec![has_bit(0, user_namespace)?]);
    rules.insert(libc::SYS_unshare, vec![has_bit(0, user_namespace)?]);
    rules.insert(
        libc::SYS_ioctl,
        vec![equals(1, TIOCSTI)?, equals(1, TIOCLINUX)?],
    );
    let sockets = match sockets {
        Sockets::All => vec![family(libc::AF_VSOCK)?],
        Sockets::Namespaced => vec![family(libc::AF_VSOCK)?, family(libc::AF_UNIX)?],
        Sockets::None => Vec::new(),
    };
    rules.insert(libc::SYS_socket, sockets);
    let filter = SeccompFilter::new(
        rules,
        SeccompAction::Allow,
        SeccompAction::Errno(libc::EPERM.cast_unsigned()),
        ARCH,
    )?;
    let rest: BpfProgram = filter.try_into()?;
    let mut program = by_number();
    program.extend(rest);
    Ok(program)
}

/// What the number alone decides, one instruction each; `seccompiler` would take four. Calls that
/// answer `ENOSYS`, so that libraries fall back to older ones, are `clone3`, whose flags no filter
/// can read, and on x86-64 everything of the x32 ABI.
fn by_number() -> BpfProgram {
    const LOAD_WORD: u16 = 0x20;
    const JUMP: u16 = 0x05;
    const JUMP_EQUAL: u16 = 0x15;
    #[cfg(target_arch = "x86_64")]
    const JUMP_AT_LEAST: u16 = 0x35;
    const RETURN: u16 = 0x06;
    let step = |code, jt, jf, k| sock_filter { code, jt, jf, k };
    let answer = |errno: i32| {
        step(
            RETURN,
            0,
            0,
            libc::SECCOMP_RET_ERRNO | errno.cast_unsigned(),
        )
    };
    let mut tests: Vec<(u16, u32)> = REFUSED
        .into_iter()
        .map(|call| (JUMP_EQUAL, call as u32))
        .collect();
    let refused = tests.len();
    tests.push((JUMP_EQUAL, libc::SYS_clone3 as u32));
    #[cfg(target_arch = "x86_64")]
    tests.push((JUMP_AT_LEAST, X32));
    // The number of the call is the first word. Numbers of other machines are told apart by the
    // rest of the filter, which ends a process that uses them.
    let mut program = vec![step(LOAD_WORD, 0, 0, 0)];
    for (index, (test, number)) in tests.iter().enumerate() {
        // Past the tests that are left and the jump behind them, and past the first answer for
        // those that want the second.
        let behind = tests.len() - index + usize::from(index >= refused);
        program.push(step(
            *test,
            u8::try_from(behind).unwrap_or(u8::MAX),
            0,
            *number,
        ));
    }
    program.push(step(JUMP, 0, 0, 2));
    program.extend([answer(libc::EPERM), answer(libc::ENOSYS)]);
    program
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_stays_short() {
        for sockets in [Sockets::All, Sockets::Namespaced, Sockets::None] {
            let length = filter(sockets).unwrap().len();
            assert!(length <= 64, "{sockets:?}: {length} instructions");
            assert_eq!(filter_bytes(sockets).unwrap().len(), 8 * length);
        }
    }
}
