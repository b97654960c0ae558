//! WebAssembly by wasmer. The engine compiles and runs, and nothing else; what the two engines
//! share is in `prx-runtime-wasm`.
//!
//! # How a guest is ended
//!
//! wasmer calls host functions synchronously: a guest that reads, sleeps or waits blocks its
//! thread. So each guest has a thread of its own for as long as it runs, and what polls its
//! execution waits for that thread. Ending a guest takes two things together, because neither
//! alone reaches everywhere:
//!
//! - Guest code asks whether it is to end, every 65 536 loops and calls: a change to the module
//!   when it is compiled (`turns.rs`). It costs a decrement and a branch in each loop.
//! - All that a host function of ours waits for (streams, timers, atomics) is woken, and answers at
//!   once (`stop.rs`).
//!
//! What else was tried. The store's *interrupter* sends SIGUSR1 to the thread and costs a running
//! guest nothing; it ended a guest that only computes 100 times of 100. But its handler unwinds
//! whatever runs on the guest's stack, and that is not guest code alone: wasmer takes a lock of the
//! whole process there after each host function (`is_interrupted`), and the memory allocator's in
//! its library calls. Signalled there, the lock stays taken: in the conformance suite, where guests
//! sleep and print while they are ended, all guests of the process stood still within minutes.
//! Besides, SIGUSR1 from outside then ends the host. *Metering* counts every instruction and ends a
//! guest after a number of them, not at a time. A *watchdog thread* has nothing by which it could
//! end another thread's guest code but one of these.

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
mod turns;

pub use adapter::WasmerRuntime;
