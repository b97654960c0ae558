//! The launcher: a static program of a few kilobytes that the crate carries inside itself. It runs
//! between the host and a command, where nothing else can: inside the namespaces, as the first
//! process there, or just before a command that is only limited.
//!
//! It reads an order from a descriptor, joins cgroups, sets limits, enters the working directory
//! and executes the program. As the first process of a PID namespace, or just below one that is not
//! ours, it stays, reaps what is orphaned, and reports on a pipe how the command's main process
//! ended: the exact wait status, which no exit code of a launcher can hold. It ends when nobody
//! reads that pipe any more, and the namespace with it. Otherwise it becomes the command.
//!
//! Where whoever made the namespaces cannot do all that is to be done, it does the rest to the
//! command: a filter of system calls, a ruleset of Landlock. And it believes nobody that there are
//! namespaces: it looks.
//!
//! Usage: `launcher ORDER REPORT EXECUTABLE`, three numbers of descriptors. The format of the order
//! and of the reports is in `wire.rs`, which the crate shares.
//!
//! It has no libc: it must run whatever the sandbox shows, and start in a tenth of a millisecond.

#![no_std]
#![no_main]

mod syscall;
mod wire;

use core::ptr;

use syscall::{Errno, sys};
use wire::{Step, Tag};

/// Tries of a program that somebody is still writing: another thread of the host may fork in
/// between and hold its descriptor open for a moment.
const BUSY_TRIES: u32 = 5;
const BUSY_PAUSE_NS: i64 = 5_000_000;

/// What the order says.
struct Order {
    stays: bool,
    passes: bool,
    working_dir: *const u8,
    program: *const u8,
    argv: *const *const u8,
    envp: *const *const u8,
    limits: *const wire::Limit,
    limit_count: usize,
    joins: *const i32,
    join_count: usize,
    filter: *const u64,
    filter_length: u32,
    ruleset: i32,
    rights: u64,
    /// Strings one after the other, the namespaces and then the grants.
    apart: *const u8,
    apart_count: u32,
    grants: *const u8,
    grant_count: u32,
}

/// Where the child leaves what kept it from executing the program, for its parent, whose memory it
/// shares until then.
struct Outcome {
    step: u32,
    errno: i32,
}

struct Descriptors {
    order: i32,
    report: i32,
    executable: i32,
}

/// The start of the process. `stack` is what the kernel laid out: argc, argv, NULL, envp, NULL.
#[unsafe(no_mangle)]
unsafe extern "C" fn launcher_main(stack: *const usize) -> ! {
    // SAFETY: the kernel put argc and then argc pointers to strings there.
    let (argc, argv) = unsafe { (*stack, stack.add(1).cast::<*const u8>()) };
    if argc != 4 {
        sys::exit(2);
    }
    // SAFETY: there are four arguments, all of them strings.
    let number = |index: usize| unsafe { parse_number(*argv.add(index)) };
    let fds = Descriptors { order: number(1), report: number(2), executable: number(3) };
    let order = match read_order(fds.order) {
        Ok(order) => order,
        Err(errno) => fail(&fds, Step::LAUNCHER, errno),
    };
    let joins = order.joins;
    for index in 0..order.join_count {
        // SAFETY: the order has so many of them.
        let group = unsafe { *joins.add(index) };
        if let Err(errno) = sys::write(group, b"0") {
            fail(&fds, Step::CGROUP, errno);
        }
    }
    if let Err(errno) = find_apart(&order) {
        fail(&fds, Step::NAMESPACES, errno);
    }
    if let Err(errno) = complete_ruleset(&order) {
        fail(&fds, Step::RULESET, errno);
    }
    if order.stays { supervise(&fds, &order) } else { become_command(&fds, &order) }
}

/// Whether this process is in namespaces of its own, where it ought to be.
fn find_apart(order: &Order) -> Result<(), Errno> {
    const DIRECTORY: &[u8] = b"/proc/self/ns/";
    let mut host = order.apart;
    for _ in 0..order.apart_count {
        // SAFETY: the order has so many strings there.
        let (name, next) = unsafe { split_string(host) };
        host = next;
        // What stands before the colon is the name of the link.
        let kind = name.split(|byte| *byte == b':').next().unwrap_or(name);
        let mut path = [0_u8; 32];
        for (to, from) in path.iter_mut().zip(DIRECTORY.iter().chain(kind)) {
            *to = *from;
        }
        let mut own = [0_u8; 64];
        let length = sys::read_link(path.as_ptr(), &mut own)?;
        if own.iter().take(length).eq(name) {
            return Err(Errno::PERM);
        }
    }
    Ok(())
}

/// Adds what only shows here: a directory over which another one was mounted is not the same.
fn complete_ruleset(order: &Order) -> Result<(), Errno> {
    let mut grant = order.grants;
    for _ in 0..order.grant_count {
        // SAFETY: the order has so many strings there.
        let (_, next) = unsafe { split_string(grant) };
        let directory = sys::open_path(grant)?;
        let added = sys::landlock_add(order.ruleset, directory, order.rights);
        let _ = sys::close(directory);
        added?;
        grant = next;
    }
    Ok(())
}

/// A string without its NUL byte, and where the next one starts.
///
/// # Safety
///
/// `text` is a string that ends with a NUL byte and lives as long as the process.
unsafe fn split_string(text: *const u8) -> (&'static [u8], *const u8) {
    let mut length = 0;
    // Volatile, or the compiler takes the loop for a call of `strlen`, which nobody brings along.
    // SAFETY: not past the NUL byte.
    while unsafe { ptr::read_volatile(text.wrapping_add(length)) } != 0 {
        length += 1;
    }
    // SAFETY: so many bytes are there.
    let string = unsafe { core::slice::from_raw_parts(text, length) };
    (string, text.wrapping_add(length + 1))
}

/// Becomes the command. The end of the report pipe, without a report, says that it worked.
fn become_command(fds: &Descriptors, order: &Order) -> ! {
    if order.passes {
        for own in [fds.order, fds.report, fds.executable] {
            sys::close_on_exec(own);
        }
        for index in 0..order.join_count {
            // SAFETY: the order has so many of them.
            sys::close_on_exec(unsafe { *order.joins.add(index) });
        }
    } else {
        sys::close_all_but_standard_on_exec();
    }
    let mut outcome = Outcome { step: 0, errno: 0 };
    execute(order, &mut outcome, false);
    report(fds.report, Tag::FAILED, outcome.step << 16 | outcome.errno.unsigned_abs());
    sys::exit(1)
}

/// Starts the command as a child and stays for as long as anything of it does.
fn supervise(fds: &Descriptors, order: &Order) -> ! {
    // Nothing that the command starts may trace this process or read its descriptors.
    let _ = sys::make_undumpable();
    // The first process of a namespace does so anyway.
    let _ = sys::adopt_orphans();
    let _ = sys::close(fds.order);
    let _ = sys::close(fds.executable);
    let children = match sys::watch_children() {
        Ok(children) => children,
        Err(errno) => fail(fds, Step::LAUNCHER, errno),
    };
    let mut outcome = Outcome { step: 0, errno: 0 };
    let child = match start(order, &mut outcome) {
        Ok(child) => child,
        Err(errno) => fail(fds, Step::LAUNCHER, errno),
    };
    // SAFETY: the child is past its use of our memory; it wrote there behind the compiler's back.
    let outcome = unsafe { ptr::read_volatile(&raw const outcome) };
    if outcome.step != 0 {
        report(fds.report, Tag::FAILED, outcome.step << 16 | outcome.errno.unsigned_abs());
        sys::exit(1);
    }
    // Everything else that the host handed down was for whoever made the sandbox.
    sys::close_all_but([fds.report, children]);
    report(fds.report, Tag::STARTED, 0);
    let mut status = 0;
    loop {
        match sys::wait(&mut status, true) {
            Ok(0) => {
                if sys::wait_for(children, fds.report) {
                    // The host is gone.
                    sys::exit(1);
                }
                sys::drain(children);
            }
            Ok(pid) if pid == child => {
                let exit = status;
                // Who has no child in here is alone: orphans are children of the first process.
                let alone = loop {
                    match sys::wait(&mut status, true) {
                        Ok(0) => break false,
                        Ok(_) => {}
                        Err(_) => break true,
                    }
                };
                let alone_flag = if alone { wire::ALONE } else { 0 };
                report(fds.report, Tag::EXITED, (exit.cast_unsigned() & 0xffff) | alone_flag);
            }
            Ok(_) => {}
            Err(Errno::INTR) => {}
            Err(_) => sys::exit(0),
        }
    }
}

/// A child that shares our memory until it executes the program, as `vfork` has it: nothing is
/// copied, and what kept it from doing so can be read here afterwards.
fn start(order: &Order, outcome: &mut Outcome) -> Result<i32, Errno> {
    let mut job = Job { order, outcome };
    // SAFETY: the parent sleeps until the child has executed or exited, and the child touches
    // nothing but the job and its own stack.
    unsafe { syscall::vfork_call(child_main, (&raw mut job).cast()) }
}

struct Job<'a> {
    order: &'a Order,
    outcome: &'a mut Outcome,
}

unsafe extern "C" fn child_main(job: *mut u8) -> ! {
    // SAFETY: `start` passes a job that outlives the child's use of it.
    let job = unsafe { &mut *job.cast::<Job<'_>>() };
    sys::close_all_but_standard_on_exec();
    execute(job.order, job.outcome, true);
    sys::exit(127)
}

/// Limits, directory, program. Returns only with what went wrong.
fn execute(order: &Order, outcome: &mut Outcome, own_session: bool) {
    let mut failed = |step: Step, errno: Errno| {
        // SAFETY: a plain write; volatile, because the reader may be another process with our
        // memory, which the compiler cannot know.
        unsafe {
            ptr::write_volatile(outcome, Outcome { step: step.0, errno: errno.0 });
        }
    };
    if own_session && let Err(errno) = sys::own_session() {
        return failed(Step::LAUNCHER, errno);
    }
    for index in 0..order.limit_count {
        // SAFETY: the order has so many of them.
        let limit = unsafe { ptr::read_unaligned(order.limits.add(index)) };
        if let Err(errno) = sys::set_limit(limit.resource, limit.soft, limit.hard) {
            return failed(Step::LIMIT, errno);
        }
    }
    // An order for somebody else's launcher names no directory.
    // SAFETY: it is a string.
    if unsafe { *order.working_dir } != 0
        && let Err(errno) = sys::change_directory(order.working_dir)
    {
        return failed(Step::WORKING_DIRECTORY, errno);
    }
    if order.ruleset >= 0 || order.filter_length > 0 {
        if let Err(errno) = sys::no_new_privileges() {
            return failed(Step::FILTER, errno);
        }
        if order.ruleset >= 0
            && let Err(errno) = sys::landlock_restrict(order.ruleset)
        {
            return failed(Step::RULESET, errno);
        }
        // Last: it may forbid what came before.
        if order.filter_length > 0
            && let Err(errno) = sys::set_filter(order.filter, order.filter_length as u16)
        {
            return failed(Step::FILTER, errno);
        }
    }
    let mut tries = 0;
    loop {
        let errno = sys::execute(order.program, order.argv, order.envp);
        if errno != Errno::TXTBSY || tries == BUSY_TRIES {
            return failed(Step::PROGRAM, errno);
        }
        tries += 1;
        sys::sleep(BUSY_PAUSE_NS);
    }
}

fn report(pipe: i32, tag: Tag, value: u32) {
    let mut record = [0; wire::RECORD];
    let (tag, value) = (tag.0.to_le_bytes(), value.to_le_bytes());
    let mut index = 0;
    while index < 4 {
        record[index] = tag[index];
        record[index + 4] = value[index];
        index += 1;
    }
    // Nobody listens any more where this fails; there is nobody else to tell.
    let _ = sys::write(pipe, &record);
}

fn fail(fds: &Descriptors, step: Step, errno: Errno) -> ! {
    report(fds.report, Tag::FAILED, step.0 << 16 | errno.0.unsigned_abs());
    sys::exit(1)
}

/// Maps the order and lays out the arrays of pointers that `execve` takes.
fn read_order(order: i32) -> Result<Order, Errno> {
    let length = sys::length_of(order)?;
    if length < size_of::<wire::Header>() {
        return Err(Errno::INVAL);
    }
    let base = sys::map_file(order, length)?;
    // SAFETY: the mapping is that long, page-aligned, and stays for the life of the process.
    let header = unsafe { &*base.cast::<wire::Header>() };
    let (argc, envc) = (header.argc as usize, header.envc as usize);
    let words = sys::map_memory((argc + envc + 2) * size_of::<*const u8>())?.cast::<*const u8>();
    let limits = base.wrapping_add(size_of::<wire::Header>()).cast::<wire::Limit>();
    let filter = limits.wrapping_add(header.limits as usize).cast::<u64>();
    let joins = filter.wrapping_add(header.filter as usize).cast::<i32>();
    let mut string = joins.wrapping_add(header.joins as usize).cast::<u8>().cast_const();
    let end = base.wrapping_add(length).cast_const();
    let mut next = || {
        let start = string;
        string = skip_string(start, end)?;
        Ok(start)
    };
    let (working_dir, program) = (next()?, next()?);
    for index in 0..argc {
        let argument = next()?;
        // SAFETY: the array has room for argc, envc and the two nulls after them, which are there
        // already: fresh memory is zero.
        unsafe { *words.add(index) = argument };
    }
    for index in 0..envc {
        let variable = next()?;
        // SAFETY: as above.
        unsafe { *words.add(argc + 1 + index) = variable };
    }
    let apart = string;
    for _ in 0..header.apart {
        string = skip_string(string, end)?;
    }
    let grants = string;
    for _ in 0..header.grants {
        string = skip_string(string, end)?;
    }
    Ok(Order {
        stays: header.stays != 0,
        passes: header.passes != 0,
        working_dir,
        program,
        argv: words,
        envp: words.wrapping_add(argc + 1),
        limits,
        limit_count: header.limits as usize,
        joins,
        join_count: header.joins as usize,
        filter,
        filter_length: header.filter,
        ruleset: header.ruleset,
        rights: header.rights,
        apart,
        apart_count: header.apart,
        grants,
        grant_count: header.grants,
    })
}

/// Where the string after this one starts, if this one ends before `end`.
fn skip_string(mut string: *const u8, end: *const u8) -> Result<*const u8, Errno> {
    loop {
        if string >= end {
            return Err(Errno::INVAL);
        }
        // SAFETY: below the end of the mapping.
        let byte = unsafe { *string };
        string = string.wrapping_add(1);
        if byte == 0 {
            return Ok(string);
        }
    }
}

/// Reads decimal digits.
///
/// # Safety
///
/// `text` is a string that ends with a NUL byte.
unsafe fn parse_number(mut text: *const u8) -> i32 {
    let mut number = 0_i32;
    loop {
        // SAFETY: not past the NUL byte.
        let byte = unsafe { *text };
        if !byte.is_ascii_digit() {
            return number;
        }
        number = number.wrapping_mul(10).wrapping_add(i32::from(byte - b'0'));
        text = text.wrapping_add(1);
    }
}

#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    sys::exit(2)
}
