//! What the suite asks a guest to do.

use std::path::PathBuf;
use std::time::Duration;

/// One thing for a guest to do. [`Driver::spell`](crate::Driver::spell) puts it into the words of
/// a backend; [`PosixSpelling`](crate::PosixSpelling) has them all for a POSIX shell.
///
/// Files are named relative to the working directory. Every task ends by itself after a time, so
/// that a backend that fails a trial leaves nothing for ever; only [`Spin`](Self::Spin) does not.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Task {
    /// Prints each argument, followed by a NUL byte. The arguments are those of the program, so
    /// that what arrives is what was asked for. Never without any.
    PrintArgs(Vec<String>),
    /// Prints the environment, `NAME=value` and a newline each.
    PrintEnv,
    /// Prints the value of a variable and a newline; a code other than 0 where it is not set.
    PrintVariable(String),
    /// Prints the working directory and a newline.
    PrintDirectory,
    /// Prints these bytes.
    Print {
        /// To stdout.
        stdout: Vec<u8>,
        /// To stderr.
        stderr: Vec<u8>,
    },
    /// Prints pieces to stdout, each at once, with a pause after each.
    PrintPieces {
        /// The pieces.
        pieces: Vec<Vec<u8>>,
        /// The pause.
        pause: Duration,
    },
    /// Prints `stdout` and `stderr` at once, then sleeps.
    PrintThenSleep {
        /// To stdout.
        stdout: Vec<u8>,
        /// To stderr.
        stderr: Vec<u8>,
        /// How long it sleeps.
        sleep: Duration,
    },
    /// Prints [`FILLING`] over and over, cut at so many bytes, to both streams at the same time.
    Fill {
        /// How many bytes to stdout.
        stdout: u64,
        /// How many bytes to stderr.
        stderr: u64,
    },
    /// Copies stdin to stdout until its end.
    CopyStdin,
    /// Copies so many bytes of stdin to stdout and ends, whatever else there is.
    CopySome(usize),
    /// Answers each line of stdin at once with `echo:`, the line and a newline, until the end.
    EchoLines,
    /// Ends with this code.
    Exit(u8),
    /// Sends itself a signal that ends it.
    KillItself(i32),
    /// Sleeps, then ends with code 0.
    Sleep(Duration),
    /// Computes for ever.
    Spin,
    /// Closes stdout and stderr, then sleeps.
    CloseOutputThenSleep(Duration),
    /// Prints `ready` and a newline, sleeps up to a minute, and prints `last words` and a newline
    /// when TERM comes, before it ends with code 0.
    LastWords,
    /// Says that it started, sleeps, and writes the marker.
    Mark(Marker),
    /// As [`Mark`](Self::Mark), and ignores TERM.
    MarkDeaf(Marker),
    /// Says that it started, stops itself (SIGSTOP), and writes the marker when it goes on.
    MarkStopped(Marker),
    /// Starts a descendant that does as [`Mark`](Self::Mark), waits until that has started, prints
    /// `left` and a newline, and does what `then` says.
    Leave {
        /// How the descendant is related.
        descendant: Descendant,
        /// What it writes.
        marker: Marker,
        /// What the main process does next.
        then: Then,
    },
    /// Starts `count` child processes, one process each, that sleep, and ends with code 0 at once.
    LeaveMany {
        /// How many.
        count: u32,
        /// How long they sleep.
        sleep: Duration,
    },
    /// Starts a child, waits for its end, and ends with code 0.
    WaitForChild,
    /// Prints a file. The path may be absolute: one of the host.
    ReadFile(PathBuf),
    /// Writes a file in the working directory.
    WriteFile {
        /// Its name.
        file: String,
        /// What it holds.
        text: String,
    },
    /// Connects to a TCP port of the host's loopback address; code 0 if that works.
    Connect(u16),
}

/// What [`Task::Fill`] repeats. Sixteen bytes, so that where a byte stood can be told.
pub const FILLING: &[u8; 16] = b"0123456789abcde\n";

/// A file that is there only if a guest lived on.
///
/// A guest writes `FILE.started` when it starts and `FILE` when its delay is over. Both are empty.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Marker {
    /// The name of the file in the working directory: letters and digits.
    pub file: String,
    /// From the start of the guest to the writing of the file.
    pub delay: Duration,
}

impl Marker {
    /// What is added to the name of the file that says that the guest has started.
    pub const STARTED: &str = ".started";
}

/// How a descendant is related to the main process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Descendant {
    /// A child, in the same process group, that holds the streams.
    Child,
    /// The lowest of a tree of three levels below the main process.
    GreatGrandchild,
    /// A child that has left the session (`setsid`).
    Session,
    /// The child of a child that has ended (a double fork), so that nobody knows its parent.
    Orphan,
    /// A double fork that left the session and holds none of the streams.
    Daemon,
    /// A child that ignores TERM.
    Deaf,
    /// A child that has stopped itself.
    Stopped,
}

/// What the main process does when its descendant has started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Then {
    /// Ends with this code.
    Exit(u8),
    /// Sends itself a signal that ends it.
    Die(i32),
    /// Sleeps.
    Sleep(Duration),
}
