//! Threads for work that blocks: reading, compiling and loading modules. They live as long as
//! that work, belong to no runtime (which would wait for them when it ends) and are shared with
//! whatever parallelism the compiler has.

use prx_runtime_core::{Error, ErrorKind, Result};
use rayon::ThreadPoolBuilder;

/// Compilers recurse.
const STACK: usize = 8 << 20;

/// Starts `job`. It runs to its end also if nobody waits for it: a compiler cannot be interrupted,
/// and what it made will be wanted again.
///
/// # Errors
///
/// [`ErrorKind::Exhausted`] where no thread can be had.
pub(crate) fn start(job: impl FnOnce() + Send + 'static) -> Result<()> {
    let pool = ThreadPoolBuilder::new()
        .thread_name(|index| format!("prx-compile-{index}"))
        .stack_size(STACK)
        .build()
        .map_err(|error| {
            Error::new(
                ErrorKind::Exhausted,
                "no thread could be started to compile a module",
            )
            .with_source(error)
        })?;
    // The pool ends when its handle is gone and the job has been done.
    pool.spawn(job);
    Ok(())
}
