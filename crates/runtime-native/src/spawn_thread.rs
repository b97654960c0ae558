//! The thread that a confined command is started from.
//!
//! It has descriptors of its own, so that what the command must not inherit is closed for it alone,
//! and what confines it may be put on the thread: the rest of the host stays as it is.

use std::ffi::OsString;
use std::io;
use std::marker::PhantomData;
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Stdio;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::command;
use crate::confined::Failure;
use crate::tree::{Cookie, Spawned};

/// The thread starts one process and then waits.
const STACK: usize = 256 * 1024;
/// How long a thread that is not needed any more is waited for. What takes longer is most often the
/// start of a process from a file system that does not answer, which nothing can interrupt; until it
/// does, the thread keeps copies of what the host had open.
const ENDING: Duration = Duration::from_secs(1);

/// What the thread needs to start the process. Descriptors by their numbers: the thread has a table
/// of its own, in which they are copies.
pub(crate) struct Start {
    pub(crate) program: std::path::PathBuf,
    pub(crate) name: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) environment: Vec<(OsString, OsString)>,
    pub(crate) working_dir: std::path::PathBuf,
    pub(crate) inherited: Vec<RawFd>,
    pub(crate) on_thread: Option<prx_runtime_core::confine::ThreadHook>,
    pub(crate) streams: [RawFd; 3],
    pub(crate) cookie: Cookie,
    pub(crate) supervisors: u32,
    /// What is started is a launcher, and not the command itself.
    pub(crate) with_launcher: bool,
}

impl Start {
    /// Starts the process from this thread, which is not good for much else afterwards.
    fn run(self, own: &OwnTable) -> Result<Spawned, Failure> {
        own.close_on_exec().map_err(Failure::Io)?;
        for fd in &self.inherited {
            // SAFETY: only a flag is changed, in the table that this thread has for itself.
            if unsafe { libc::fcntl(*fd, libc::F_SETFD, 0) } == -1 {
                return Err(Failure::Io(io::Error::last_os_error()));
            }
        }
        if let Some(prepare) = self.on_thread {
            prepare().map_err(Failure::Rules)?;
        }
        // SAFETY: in this thread's own table these are copies that nothing else refers to.
        let [stdin, stdout, stderr] = self.streams.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        let mut command = command::confined(&self.program);
        command
            .arg0(&self.name)
            .args(&self.args)
            .env_clear()
            .envs(self.environment)
            .current_dir(&self.working_dir)
            .process_group(0)
            .stdin(Stdio::from(stdin))
            .stdout(Stdio::from(stdout))
            .stderr(Stdio::from(stderr));
        Spawned::start(&mut command, self.cookie, self.supervisors).map_err(|error| {
            if self.with_launcher {
                Failure::Launcher(error)
            } else {
                Failure::Program(error)
            }
        })
    }
}

/// The descriptors of this thread, apart from those of the process. Dropping it gives up the copies
/// of everything that the host has open: they would keep its pipes from ending.
///
/// Whoever has one may close descriptors by their numbers. Nobody else may: the table would be that
/// of the whole host.
struct OwnTable {
    close_on_exec: bool,
    /// Of one thread.
    _thread: PhantomData<*const ()>,
}

impl OwnTable {
    fn new(close_on_exec: bool) -> Self {
        Self {
            close_on_exec,
            _thread: PhantomData,
        }
    }

    /// From here on this thread's descriptors are its own.
    fn take() -> io::Result<Self> {
        // One call does both, and filters of container engines let it pass.
        let flags = libc::CLOSE_RANGE_UNSHARE | libc::CLOSE_RANGE_CLOEXEC;
        // SAFETY: nothing is closed, and the thread is ours.
        if unsafe { close_range(3, flags) }.is_ok() {
            return Ok(Self::new(true));
        }
        // SAFETY: the thread is ours; it holds no descriptor that anybody else would close by it.
        if unsafe { libc::unshare(libc::CLONE_FILES) } == -1 {
            return Err(io::Error::last_os_error());
        }
        Ok(Self::new(false))
    }

    /// From here on none of them is inherited unless that is said of it: neither by what this
    /// thread starts nor, by way of this thread, by what others do.
    fn close_on_exec(&self) -> io::Result<()> {
        if self.close_on_exec {
            return Ok(());
        }
        self.each(3, |fd| {
            // SAFETY: only a flag is changed, in a table of this thread's own.
            let _ = unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) };
        })
    }

    /// Calls `each` with every descriptor from `first` on, for kernels that know no ranges.
    fn each(&self, first: RawFd, each: impl Fn(RawFd)) -> io::Result<()> {
        let open: Vec<RawFd> = std::fs::read_dir("/proc/thread-self/fd")?
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
            .filter(|fd| *fd >= first)
            .collect();
        open.into_iter().for_each(each);
        Ok(())
    }
}

impl Drop for OwnTable {
    fn drop(&mut self) {
        // SAFETY: the table is this thread's own, and nothing in this thread uses a descriptor later.
        if unsafe { close_range(0, 0) }.is_err() {
            // Where it fails nothing can be done, and the thread ends with the execution.
            let _ = self.each(0, |fd| {
                // SAFETY: as above.
                let _ = unsafe { libc::close(fd) };
            });
        }
    }
}

/// # Safety
///
/// What it closes must be nobody's: either the table is this thread's own, or `flags` make it so.
unsafe fn close_range(first: libc::c_uint, flags: libc::c_uint) -> io::Result<()> {
    // SAFETY: the caller's promise.
    let done = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, flags) };
    if done == -1 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}

/// The thread that a process is started from. It waits until it is dropped: what is to die with its
/// parent dies with the thread that started it.
pub(crate) struct Thread {
    stop: Option<mpsc::Sender<()>>,
    words: mpsc::Receiver<Word>,
    handle: Option<JoinHandle<()>>,
}

/// What the thread says, apart from what comes of the start. That it ends is said by its silence.
enum Word {
    /// The numbers that it knows are not those of the process any more, or will not be used.
    Apart,
    /// What it started, if nobody waits for that any more: to be ended by a thread whose
    /// descriptors are those of the process.
    Returned(Spawned),
}

/// What comes of a start.
pub(crate) type Outcome = oneshot::Receiver<Result<Spawned, Failure>>;

impl Thread {
    pub(crate) fn start(start: Start) -> io::Result<(Self, Outcome)> {
        let (done, spawned) = oneshot::channel();
        let (stop, stopped) = mpsc::channel::<()>();
        let (say, words) = mpsc::channel();
        let handle = std::thread::Builder::new()
            .name("prx-runtime-spawn".into())
            .stack_size(STACK)
            .spawn(move || {
                let own = OwnTable::take();
                let _ = say.send(Word::Apart);
                let outcome = match &own {
                    Ok(own) => start.run(own),
                    Err(error) => Err(of_table(error)),
                };
                // Sending comes before the table goes: a sleeping runtime is woken through a
                // descriptor.
                if let Err(Ok(unwanted)) = done.send(outcome)
                    && let Err(unwanted) = say.send(Word::Returned(unwanted))
                {
                    // It is ended from here, perhaps by a thread that shares the table: what lies
                    // in it is closed once both have ended.
                    drop(unwanted);
                    std::mem::forget(own);
                    return;
                }
                drop(own);
                let _ = stopped.recv();
            })?;
        let thread = Self {
            stop: Some(stop),
            words,
            handle: Some(handle),
        };
        Ok((thread, spawned))
    }
}

/// Why there is no table.
fn of_table(error: &io::Error) -> Failure {
    let forbidden = matches!(
        error.raw_os_error(),
        Some(libc::EPERM | libc::EACCES | libc::ENOSYS)
    );
    if forbidden {
        Failure::Descriptors(copy(error))
    } else {
        Failure::Io(copy(error))
    }
}

/// The same error once more.
fn copy(error: &io::Error) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl Drop for Thread {
    fn drop(&mut self) {
        self.stop = None;
        // Until the thread is apart, its numbers are those of the process. It has nothing to wait
        // for before that.
        let mut word = self
            .words
            .recv()
            .map_err(|_| RecvTimeoutError::Disconnected);
        let silence = loop {
            match word {
                Ok(Word::Apart) => {}
                // What nobody waits for any more ends here.
                Ok(Word::Returned(unwanted)) => drop(unwanted),
                Err(silence) => break silence,
            }
            word = self.words.recv_timeout(ENDING);
        };
        match (silence, self.handle.take()) {
            (RecvTimeoutError::Disconnected, Some(handle)) => drop(handle.join()),
            _ => tracing::warn!(
                "a thread that starts a command does not end and is left behind: the program or its \
                 directory may lie on a file system that does not answer"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsRawFd, BorrowedFd};

    use prx_runtime_core::{EXECUTION_ID_VARIABLE, ExecutionId, Owner};

    use rustix::io::{FdFlags, fcntl_getfd};

    use super::*;

    fn is_open(fd: RawFd) -> bool {
        // SAFETY: it is only looked at, and a number that is closed is an error.
        unsafe { fcntl_getfd(BorrowedFd::borrow_raw(fd)) }.is_ok()
    }

    /// The processes whose environment holds `mark`.
    fn processes_with(mark: &str) -> Vec<std::path::PathBuf> {
        let processes = std::fs::read_dir("/proc").unwrap().flatten();
        let marked = |process: &std::path::PathBuf| {
            std::fs::read(process.join("environ")).is_ok_and(|environment| {
                environment
                    .windows(mark.len())
                    .any(|at| at == mark.as_bytes())
            })
        };
        processes.map(|entry| entry.path()).filter(marked).collect()
    }

    #[test]
    fn what_nobody_waits_for_is_ended() {
        let nothing = [(); 3].map(|()| std::fs::File::open("/dev/null").unwrap());
        let start = || {
            let cookie = Cookie::new(ExecutionId::random().unwrap(), Owner::current());
            let mark = cookie.value().to_owned();
            let start = Start {
                program: "/bin/sleep".into(),
                name: "sleep".into(),
                args: vec!["600".into()],
                environment: vec![(EXECUTION_ID_VARIABLE.into(), mark.clone().into())],
                working_dir: "/".into(),
                inherited: Vec::new(),
                on_thread: None,
                streams: nothing.each_ref().map(AsRawFd::as_raw_fd),
                cookie,
                supervisors: 0,
                with_launcher: false,
            };
            (Thread::start(start).unwrap(), mark)
        };
        let ((thread, outcome), mark) = start();
        let spawned = outcome.blocking_recv().unwrap();
        assert!(spawned.is_ok() && !processes_with(&mark).is_empty());
        drop((spawned, thread));
        let ((thread, outcome), unheard) = start();
        drop(outcome);
        drop(thread);
        // What was killed needs a moment to be gone.
        while !processes_with(&mark).is_empty() || !processes_with(&unheard).is_empty() {
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_a_thread_closes_stays_open_for_the_others() {
        let (reader, _writer) = io::pipe().unwrap();
        let fd = reader.as_raw_fd();
        std::thread::spawn(move || {
            let own = OwnTable::take().unwrap();
            assert!(is_open(fd));
            drop(own);
            assert!(!is_open(fd));
        })
        .join()
        .unwrap();
        assert!(is_open(fd));
    }

    #[test]
    fn kernels_without_ranges_are_served_one_by_one() {
        let (reader, writer) = io::pipe().unwrap();
        let (fd, other) = (reader.as_raw_fd(), writer.as_raw_fd());
        std::thread::spawn(move || {
            let own = OwnTable::take().unwrap();
            own.each(3, |fd| {
                // SAFETY: only a flag is changed, in a table of this thread's own.
                unsafe { libc::fcntl(fd, libc::F_SETFD, 0) };
            })
            .unwrap();
            // SAFETY: it is only looked at.
            let flags = unsafe { fcntl_getfd(BorrowedFd::borrow_raw(fd)) };
            assert_eq!(flags.unwrap(), FdFlags::empty());
            own.each(fd, |open| {
                if open == fd {
                    // SAFETY: a copy that is this thread's own.
                    unsafe { libc::close(open) };
                }
            })
            .unwrap();
            assert!(!is_open(fd));
            assert!(is_open(other));
        })
        .join()
        .unwrap();
        assert!(is_open(fd));
    }
}
