//! What the crate and the launcher say to each other. Compiled into both.
//!
//! An order is a file: a [`Header`], then that many [`Limit`]s, then that many steps of a filter of
//! system calls (64 bits each), then that many descriptors of `cgroup.procs` files (32 bits each),
//! then strings, each with its NUL byte: the working directory (empty: stay), the program, the
//! arguments from the name on, the environment, the namespaces of the host, the directories to be
//! added to the ruleset.
//!
//! A report is a record of [`RECORD`] bytes: a [`Tag`] and a value, 32 bits each, little-endian.

/// The length of a report in bytes.
pub(crate) const RECORD: usize = 8;

/// In the value of [`Tag::EXITED`], beside the wait status: nothing else is left.
pub(crate) const ALONE: u32 = 1 << 16;

/// The start of an order.
#[repr(C)]
pub(crate) struct Header {
    /// Not 0: the launcher stays as the first process of its PID namespace.
    pub(crate) stays: u32,
    pub(crate) limits: u32,
    pub(crate) joins: u32,
    pub(crate) argc: u32,
    pub(crate) envc: u32,
    /// Not 0: what the launcher inherited, other than its own descriptors, passes to the program,
    /// which is a launcher too.
    pub(crate) passes: u32,
    /// The steps of the filter that the command gets; 0 is none.
    pub(crate) filter: u32,
    /// The namespaces, as `/proc/self/ns` names them, in which the launcher must not find itself.
    pub(crate) apart: u32,
    /// An open ruleset of Landlock that the command gets; negative is none.
    pub(crate) ruleset: i32,
    /// The directories, as the launcher sees them, that are added to the ruleset.
    pub(crate) grants: u32,
    /// What the ruleset gives below those.
    pub(crate) rights: u64,
}

/// One limit, as `setrlimit` takes it.
#[repr(C)]
pub(crate) struct Limit {
    pub(crate) resource: u64,
    pub(crate) soft: u64,
    pub(crate) hard: u64,
}

/// What a report is about.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tag(pub(crate) u32);

impl Tag {
    /// The command runs; the value is 0.
    pub(crate) const STARTED: Self = Self(1);
    /// The command does not run: a [`Step`] in the upper half of the value, an error number below.
    pub(crate) const FAILED: Self = Self(2);
    /// The main process ended: its wait status, and [`ALONE`].
    pub(crate) const EXITED: Self = Self(3);
}

/// What was tried when it failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step(pub(crate) u32);

impl Step {
    pub(crate) const LAUNCHER: Self = Self(1);
    pub(crate) const CGROUP: Self = Self(2);
    pub(crate) const LIMIT: Self = Self(3);
    pub(crate) const WORKING_DIRECTORY: Self = Self(4);
    pub(crate) const PROGRAM: Self = Self(5);
    pub(crate) const NAMESPACES: Self = Self(6);
    pub(crate) const RULESET: Self = Self(7);
    pub(crate) const FILTER: Self = Self(8);
}
