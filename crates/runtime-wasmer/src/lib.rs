//! WebAssembly by wasmer. The engine compiles and runs, and nothing else; what the two engines
//! share is in `prx-runtime-wasm`.
//!
//! # How a guest is ended
//!
//! wasmer calls host functions synchronously: a guest that reads, sleeps or waits blocks its
//! thread. So each guest has a thread of its own for as long as it runs, and what polls its
//! execution waits for that thread. Ending a guest takes two things together, because neither
//! alone reaches everywhere ([`stop`]):
//!
//! - The store's *interrupter* (a signal to that very thread) ends guest code, also code that never
//!   calls the host. It costs a running guest nothing. A signal that comes while the thread is
//!   between host and guest is lost, so it is sent again until the thread has ended.
//! - All that a host function of ours waits for (streams, timers) is woken, and answers at once.
//!
//! What else was considered: *metering* counts instructions, not time, slows every loop down (the
//! counter is decremented at each branch), and makes compiled modules larger; a *watchdog thread*
//! has nothing by which it could end another thread's guest code but one of these two.
//!
//! The interrupter works by SIGUSR1, for which wasmer installs a handler in the whole process when
//! the first engine is made. A host that uses SIGUSR1 for itself cannot use this engine. Where
//! there is no interrupter (Windows) the engine refuses to be made.

mod adapter;
mod engine;
mod error;
mod files;
mod guest;
mod host;
mod imports;
mod limiter;
mod network;
mod stdio;
mod stop;
mod thread;

pub use adapter::WasmerRuntime;
