//! The system calls that a confined command does not get.
//!
//! Short on purpose: the kernel checks and compiles the filter anew for each spawn, about 4 µs an
//! instruction. What capabilities, namespaces and Landlock already keep away (mounting, loading
//! modules, tracing, signalling) is not listed a second time.

use seccompiler::{BpfProgram, sock_filter};

/// What else stands around the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Around {
    /// Namespaces, in which processes of the host have no number. That of the network covers neither
    /// sockets of virtual machines nor, through the file system, Unix sockets.
    Namespaces,
    /// Landlock, which covers no socket of the file system, and of what can be done to processes of
    /// the same user no more than signals and tracing.
    Landlock,
}

/// Into the terminal that a process holds, as if it had been typed.
const TIOCSTI: u32 = 0x5412;
/// The same by the console's selection.
const TIOCLINUX: u32 = 0x541c;
/// Set in the two types of socket that send to whatever address they are told, also as one of a
/// pair: `SOCK_DGRAM` and `SOCK_RAW`. Pairs of the others cannot be connected again.
const DATAGRAMS: u32 = 2;
/// `PRIO_PROCESS` and `IOPRIO_WHO_PROCESS`; others are a group and a user.
const PROCESS: u32 = 0;
const IO_PROCESS: u32 = 1;
/// Numbers from here on are calls of the x32 ABI, which no rule would match.
#[cfg(target_arch = "x86_64")]
const X32: u32 = 0x4000_0000;

/// The machine as `AUDIT_ARCH_…` names it.
#[cfg(target_arch = "x86_64")]
const MACHINE: u32 = 0xc000_003e;
#[cfg(target_arch = "aarch64")]
const MACHINE: u32 = 0xc000_00b7;

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

/// Calls that change a process, which their first argument names; 0 is the caller.
const OF_A_PROCESS: [i64; 4] = [
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setparam,
    libc::SYS_sched_setattr,
];

/// The filter, as the kernel takes it. A call that no rule names is allowed.
pub(crate) fn filter(around: Around, allow_network: bool) -> BpfProgram {
    let mut steps = Steps::default();
    let ended = steps.answer(libc::SECCOMP_RET_KILL_PROCESS);
    let unknown = steps.answer(errno(libc::ENOSYS));
    let refused = steps.answer(errno(libc::EPERM));
    let allowed = steps.answer(libc::SECCOMP_RET_ALLOW);

    let mut cases: Vec<Case> = Vec::new();
    for number in REFUSED {
        cases.push(call(number, refused));
    }
    // No filter can read its flags. Libraries fall back to `clone`.
    cases.push(call(libc::SYS_clone3, unknown));
    #[cfg(target_arch = "x86_64")]
    cases.push(Case {
        test: AT_LEAST,
        value: X32,
        then: unknown,
    });

    let user_namespace = libc::CLONE_NEWUSER.cast_unsigned();
    let namespaces = steps.choose(low(0), &[any_bit(user_namespace, refused)], allowed);
    cases.push(call(libc::SYS_clone, namespaces));
    cases.push(call(libc::SYS_unshare, namespaces));

    let typing = [equal(TIOCSTI, refused), equal(TIOCLINUX, refused)];
    let typing = steps.choose(low(1), &typing, allowed);
    cases.push(call(libc::SYS_ioctl, typing));

    let family = |family: i32| equal(family.cast_unsigned(), refused);
    let hypervisor = family(libc::AF_VSOCK);
    let sockets = match (around, allow_network) {
        (Around::Namespaces, true) => steps.choose(low(0), &[hypervisor], allowed),
        (Around::Namespaces, false) | (Around::Landlock, true) => {
            steps.choose(low(0), &[hypervisor, family(libc::AF_UNIX)], allowed)
        }
        (Around::Landlock, false) => refused,
    };
    cases.push(call(libc::SYS_socket, sockets));
    if (around, allow_network) != (Around::Namespaces, true) {
        // Of the other families only those make pairs that send anywhere.
        let pairs = steps.choose(low(1), &[any_bit(DATAGRAMS, refused)], allowed);
        let unix = equal(libc::AF_UNIX.cast_unsigned(), pairs);
        let pairs = steps.choose(low(0), &[unix], refused);
        cases.push(call(libc::SYS_socketpair, pairs));
    }

    if around == Around::Landlock {
        cases.extend(of_processes(&mut steps, allowed, refused));
    }
    let by_number = steps.choose(NUMBER, &cases, allowed);
    // Numbers mean something else on other machines, such as 32-bit x86.
    steps.choose(ARCHITECTURE, &[equal(MACHINE, by_number)], ended);
    steps.finish()
}

/// The cases by which a command leaves alone what it can still name, which is every process of the
/// same user: a limit of processor time kills as well as a signal does.
fn of_processes(steps: &mut Steps, allowed: Place, refused: Place) -> Vec<Case> {
    let itself = steps.choose(low(0), &[equal(0, allowed)], refused);
    let mut cases: Vec<Case> = OF_A_PROCESS.map(|number| call(number, itself)).into();
    // Without new limits the call reads the old ones: `setrlimit` is this call of oneself.
    let reads = steps.choose(high(2), &[equal(0, allowed)], itself);
    let reads = steps.choose(low(2), &[equal(0, reads)], itself);
    cases.push(call(libc::SYS_prlimit64, reads));
    let itself = steps.choose(low(1), &[equal(0, allowed)], refused);
    for (number, process) in [
        (libc::SYS_setpriority, PROCESS),
        (libc::SYS_ioprio_set, IO_PROCESS),
    ] {
        let kind = steps.choose(low(0), &[equal(process, itself)], refused);
        cases.push(call(number, kind));
    }
    cases
}

/// The filter as bytes, for a launcher.
pub(crate) fn filter_bytes(around: Around, allow_network: bool) -> Vec<u8> {
    filter(around, allow_network)
        .iter()
        .flat_map(|step| {
            let [a, b] = step.code.to_ne_bytes();
            let [c, d, e, f] = step.k.to_ne_bytes();
            [a, b, step.jt, step.jf, c, d, e, f]
        })
        .collect()
}

// Operations of the filter's machine.
const LOAD_WORD: u16 = 0x20;
const EQUAL: u16 = 0x15;
#[cfg(target_arch = "x86_64")]
const AT_LEAST: u16 = 0x35;
const ANY_BIT: u16 = 0x45;
const RETURN: u16 = 0x06;

// Where the words of a call stand that it can load, as `struct seccomp_data` has them.
const NUMBER: u32 = 0;
const ARCHITECTURE: u32 = 4;

/// The lower half of an argument, all of it where the argument is an `int`.
fn low(argument: u32) -> u32 {
    16 + 8 * argument
}

fn high(argument: u32) -> u32 {
    low(argument) + 4
}

fn errno(errno: i32) -> u32 {
    libc::SECCOMP_RET_ERRNO | errno.cast_unsigned()
}

/// Where to go on if a word passes a test.
#[derive(Debug, Clone, Copy)]
struct Case {
    test: u16,
    value: u32,
    then: Place,
}

fn equal(value: u32, then: Place) -> Case {
    Case {
        test: EQUAL,
        value,
        then,
    }
}

fn any_bit(value: u32, then: Place) -> Case {
    Case {
        test: ANY_BIT,
        value,
        then,
    }
}

fn call(number: i64, then: Place) -> Case {
    equal(number as u32, then)
}

/// How far from the end of the filter a step stands.
#[derive(Debug, Clone, Copy)]
struct Place(usize);

/// A filter in the making, the last step first: jumps lead forward only, to what is there already.
#[derive(Default)]
struct Steps {
    reversed: BpfProgram,
}

impl Steps {
    fn put(&mut self, code: u16, (jt, jf): (u8, u8), k: u32) -> Place {
        self.reversed.push(sock_filter { code, jt, jf, k });
        Place(self.reversed.len())
    }

    fn answer(&mut self, answer: u32) -> Place {
        self.put(RETURN, (0, 0), answer)
    }

    /// Loads a word, and goes where the first case says whose test it passes. There is at least one.
    fn choose(&mut self, word: u32, cases: &[Case], otherwise: Place) -> Place {
        let mut next = otherwise;
        for case in cases.iter().rev() {
            let ways = (self.way(case.then), self.way(next));
            next = self.put(case.test, ways, case.value);
        }
        self.put(LOAD_WORD, (0, 0), word)
    }

    /// How many steps a jump from the next one passes over.
    fn way(&self, to: Place) -> u8 {
        u8::try_from(self.reversed.len() - to.0).unwrap_or(u8::MAX)
    }

    fn finish(mut self) -> BpfProgram {
        self.reversed.reverse();
        self.reversed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [(Around, bool); 4] = [
        (Around::Namespaces, true),
        (Around::Namespaces, false),
        (Around::Landlock, true),
        (Around::Landlock, false),
    ];
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | 1;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | 38;
    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;

    /// What the kernel makes of a filter.
    fn judge(filter: &[sock_filter], machine: u32, number: i64, arguments: [u64; 3]) -> u32 {
        let load = |word: u32| match word {
            NUMBER => number as u32,
            ARCHITECTURE => machine,
            _ => {
                let argument = arguments[(word as usize - 16) / 8];
                (argument >> (8 * (word & 4))) as u32
            }
        };
        let (mut at, mut word) = (0, 0);
        loop {
            let step = &filter[at];
            let holds = match step.code {
                LOAD_WORD => {
                    word = load(step.k);
                    at += 1;
                    continue;
                }
                RETURN => return step.k,
                EQUAL => word == step.k,
                ANY_BIT => word & step.k != 0,
                0x35 => word >= step.k,
                code => panic!("no such operation: {code:#x}"),
            };
            at += 1 + usize::from(if holds { step.jt } else { step.jf });
        }
    }

    fn answers(around: Around, network: bool, expected: &[(i64, [u64; 3], u32)]) {
        let filter = filter(around, network);
        for (number, arguments, answer) in expected {
            let found = judge(&filter, MACHINE, *number, *arguments);
            assert_eq!(
                found, *answer,
                "{around:?}, network {network}: {number} {arguments:?}"
            );
        }
    }

    #[test]
    fn the_filter_stays_short() {
        for (around, network) in ALL {
            let length = filter(around, network).len();
            let most = if around == Around::Landlock { 54 } else { 36 };
            assert!(length <= most, "{around:?}: {length} instructions");
            assert_eq!(filter_bytes(around, network).len(), 8 * length);
        }
    }

    #[test]
    fn some_calls_are_refused_everywhere() {
        for (around, network) in ALL {
            let refused = REFUSED.map(|number| (number, [0; 3], EPERM));
            answers(around, network, &refused);
            answers(
                around,
                network,
                &[
                    (libc::SYS_read, [0, 1, 2], ALLOW),
                    (libc::SYS_execve, [1, 2, 3], ALLOW),
                    (libc::SYS_clone3, [1, 88, 0], ENOSYS),
                    (libc::SYS_clone, [0x11, 0, 0], ALLOW),
                    (libc::SYS_clone, [0x1000_0011, 0, 0], EPERM),
                    (libc::SYS_unshare, [0x1002_0000, 0, 0], EPERM),
                    (libc::SYS_ioctl, [0, 0x5401, 0], ALLOW),
                    (libc::SYS_ioctl, [0, 0x5412, 0], EPERM),
                    // Of the number of a request the kernel takes the lower half.
                    (libc::SYS_ioctl, [0, 0x1_0000_5412, 0], EPERM),
                    (libc::SYS_ioctl, [0, 0x541c, 0], EPERM),
                    (libc::SYS_socket, [40, 1, 0], EPERM),
                    (libc::SYS_socketpair, [1, 1 | 0x80000, 0], ALLOW),
                    (libc::SYS_socketpair, [1, 5, 0], ALLOW),
                ],
            );
            let filter = filter(around, network);
            for number in [0, libc::SYS_keyctl, libc::SYS_socket] {
                let found = judge(&filter, 0x4000_0003, number, [0; 3]);
                assert_eq!(found, libc::SECCOMP_RET_KILL_PROCESS, "{number}");
            }
            if cfg!(target_arch = "x86_64") {
                let found = judge(&filter, MACHINE, 0x4000_0000, [0; 3]);
                assert_eq!(found, ENOSYS);
            }
        }
    }

    #[test]
    fn sockets_are_those_that_something_else_covers() {
        let cases = [
            // UNIX, INET, NETLINK, and a pair of datagrams.
            (Around::Namespaces, true, [ALLOW, ALLOW, ALLOW, ALLOW]),
            (Around::Namespaces, false, [EPERM, ALLOW, ALLOW, EPERM]),
            (Around::Landlock, true, [EPERM, ALLOW, ALLOW, EPERM]),
            (Around::Landlock, false, [EPERM, EPERM, EPERM, EPERM]),
        ];
        for (around, network, [unix, inet, netlink, datagrams]) in cases {
            answers(
                around,
                network,
                &[
                    (libc::SYS_socket, [1, 1, 0], unix),
                    (libc::SYS_socket, [2, 1, 0], inet),
                    (libc::SYS_socket, [16, 3, 0], netlink),
                    (libc::SYS_socketpair, [1, 2 | 0x80000, 0], datagrams),
                    (libc::SYS_socketpair, [1, 3, 0], datagrams),
                    // TIPC, which has addresses and pairs of every type.
                    (libc::SYS_socketpair, [30, 4, 0], datagrams),
                    (libc::SYS_socketpair, [30, 5, 0], datagrams),
                ],
            );
        }
    }

    #[test]
    fn under_landlock_a_command_changes_itself_only() {
        const POINTER: u64 = 0x7fff_0000_1000;
        // Its lower half is zero, and it is a pointer all the same.
        const ROUND: u64 = 0x7fff_0000_0000;
        let mut expected = vec![
            (libc::SYS_prlimit64, [0, 7, POINTER], ALLOW),
            (libc::SYS_prlimit64, [0, 7, 0], ALLOW),
            (libc::SYS_prlimit64, [4711, 7, 0], ALLOW),
            (libc::SYS_prlimit64, [4711, 7, POINTER], EPERM),
            (libc::SYS_prlimit64, [4711, 7, ROUND], EPERM),
            (libc::SYS_prlimit64, [4711, 7, 0x1000], EPERM),
            // Of a process, of a group, of a user.
            (libc::SYS_setpriority, [0, 0, 5], ALLOW),
            (libc::SYS_setpriority, [0, 4711, 5], EPERM),
            (libc::SYS_setpriority, [1, 0, 5], EPERM),
            (libc::SYS_setpriority, [2, 0, 5], EPERM),
            (libc::SYS_ioprio_set, [1, 0, 5], ALLOW),
            (libc::SYS_ioprio_set, [1, 4711, 5], EPERM),
            (libc::SYS_ioprio_set, [2, 0, 5], EPERM),
            (libc::SYS_ioprio_set, [3, 0, 5], EPERM),
            (libc::SYS_ioprio_set, [0, 0, 5], EPERM),
        ];
        for number in OF_A_PROCESS {
            expected.push((number, [0, 8, POINTER], ALLOW));
            expected.push((number, [4711, 8, POINTER], EPERM));
        }
        for network in [true, false] {
            answers(Around::Landlock, network, &expected);
        }
        // In a namespace a number names a process of the command, and nothing is to be refused.
        for (_, _, answer) in &mut expected {
            *answer = ALLOW;
        }
        answers(Around::Namespaces, false, &expected);
    }
}
