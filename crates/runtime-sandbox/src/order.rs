//! What the launcher is told and what it answers.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use prx_runtime_core::confine::{Report, ReportPipe, Step};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::memfd;

#[path = "../launcher/wire.rs"]
mod wire;

pub(crate) use wire::Limit;

/// What becomes of the launcher.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Role {
    /// It stays, as the first process of a PID namespace or below one that is not ours.
    Stay,
    /// It becomes the command.
    Become,
    /// It becomes another launcher, which inherits what it inherited.
    Pass,
}

/// An order, before it is written down.
pub(crate) struct Order<'a> {
    pub(crate) role: Role,
    pub(crate) limits: &'a [Limit],
    /// Open `cgroup.procs` files of the groups to join.
    pub(crate) joins: &'a [RawFd],
    pub(crate) working_dir: Option<&'a Path>,
    pub(crate) guard: Guard<'a>,
    pub(crate) program: &'a Path,
    pub(crate) name: &'a OsStr,
    pub(crate) args: Vec<&'a OsStr>,
    pub(crate) environment: Vec<(&'a OsStr, &'a OsStr)>,
}

/// What the launcher does to the command where the maker of its namespaces cannot.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Guard<'a> {
    /// A filter of system calls, as the kernel takes it.
    pub(crate) filter: &'a [u8],
    pub(crate) ruleset: Option<Lent<'a>>,
    /// The namespaces of the host, which must not be the launcher's: `pid:[4026531836]`.
    pub(crate) apart: &'a [String],
}

/// A ruleset of Landlock that the launcher inherits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lent<'a> {
    pub(crate) file: RawFd,
    /// Directories as the launcher sees them, and what is given below.
    pub(crate) grants: &'a [&'a str],
    pub(crate) rights: u64,
}

impl Order<'_> {
    fn encode(&self) -> Vec<u8> {
        let length = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        let mut bytes = Vec::with_capacity(4096);
        for word in [
            u32::from(self.role == Role::Stay),
            length(self.limits.len()),
            length(self.joins.len()),
            length(self.args.len() + 1),
            length(self.environment.len()),
            u32::from(self.role == Role::Pass),
            length(self.guard.filter.len() / 8),
            length(self.guard.apart.len()),
        ] {
            bytes.extend(word.to_ne_bytes());
        }
        let (ruleset, grants, rights) = self.guard.ruleset.map_or((-1, &[][..], 0), |lent| {
            (lent.file, lent.grants, lent.rights)
        });
        bytes.extend(ruleset.to_ne_bytes());
        bytes.extend(length(grants.len()).to_ne_bytes());
        bytes.extend(rights.to_ne_bytes());
        debug_assert_eq!(bytes.len(), size_of::<wire::Header>());
        for limit in self.limits {
            for word in [limit.resource, limit.soft, limit.hard] {
                bytes.extend(word.to_ne_bytes());
            }
        }
        bytes.extend(self.guard.filter);
        for join in self.joins {
            bytes.extend(join.to_ne_bytes());
        }
        let directory = self
            .working_dir
            .map_or(&b""[..], |path| path.as_os_str().as_bytes());
        let mut string = |text: &[u8]| {
            bytes.extend(text);
            bytes.push(0);
        };
        string(directory);
        string(self.program.as_os_str().as_bytes());
        string(self.name.as_bytes());
        for arg in &self.args {
            string(arg.as_bytes());
        }
        for (name, value) in &self.environment {
            string(&[name.as_bytes(), b"=", value.as_bytes()].concat());
        }
        for name in self.guard.apart {
            string(name.as_bytes());
        }
        for directory in grants {
            string(directory.as_bytes());
        }
        bytes
    }
}

/// The launcher's program, ready to be executed by processes that inherit it.
#[derive(Debug)]
pub(crate) struct Launcher {
    image: OwnedFd,
}

/// A launcher with an order of its own: what to execute, and what comes with it.
pub(crate) struct Ordered {
    /// The path under which a process that inherits `inherited` executes the launcher.
    pub(crate) program: String,
    /// Its arguments after the name.
    pub(crate) args: [String; 3],
    pub(crate) inherited: Vec<OwnedFd>,
    pub(crate) report: ReportPipe,
}

impl Launcher {
    /// Whether this build has one for the machine.
    pub(crate) const EXISTS: bool = !IMAGE.is_empty();

    pub(crate) fn new() -> io::Result<Self> {
        Ok(Self {
            image: memfd::program("prx-launcher", IMAGE)?,
        })
    }

    /// Writes `order` down for a launcher to be started.
    pub(crate) fn ordered(&self, order: &Order<'_>) -> io::Result<Ordered> {
        let image = self.image.try_clone()?;
        let paper = memfd::holding("prx-order", &order.encode())?;
        let (ours, theirs) = pipe_with(PipeFlags::CLOEXEC)?;
        Ok(Ordered {
            program: format!("/proc/self/fd/{}", image.as_raw_fd()),
            args: [&paper, &theirs, &image].map(|fd| fd.as_raw_fd().to_string()),
            inherited: vec![image, paper, theirs],
            report: ReportPipe {
                pipe: ours,
                parse,
                stays: order.role == Role::Stay,
            },
        })
    }
}

/// Compiled by the build script.
static IMAGE: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/launcher"));

fn parse(record: [u8; ReportPipe::RECORD]) -> Option<Report> {
    const { assert!(ReportPipe::RECORD == wire::RECORD) };
    let word = |at: usize| Some(u32::from_le_bytes(record.get(at..at + 4)?.try_into().ok()?));
    let (tag, value) = (wire::Tag(word(0)?), word(4)?);
    Some(match tag {
        wire::Tag::STARTED => Report::Started,
        wire::Tag::FAILED => Report::Failed {
            step: match wire::Step(value >> 16) {
                wire::Step::CGROUP => Step::Cgroup,
                wire::Step::LIMIT => Step::Limit,
                wire::Step::WORKING_DIRECTORY => Step::WorkingDirectory,
                wire::Step::PROGRAM => Step::Program,
                wire::Step::NAMESPACES => Step::Namespaces,
                wire::Step::RULESET | wire::Step::FILTER => Step::Filter,
                wire::Step::LAUNCHER => Step::Launcher,
                _ => return None,
            },
            errno: (value & 0xffff).cast_signed(),
        },
        wire::Tag::EXITED => Report::Exited {
            status: (value & 0xffff).cast_signed(),
            alone: value & wire::ALONE != 0,
        },
        _ => return None,
    })
}
