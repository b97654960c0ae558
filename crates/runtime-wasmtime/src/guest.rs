//! One guest: its store, its run, and how it ended.

use std::future::{Future, poll_fn};
use std::pin::Pin;

use bytes::Bytes;
use prx_runtime_core::backend::Exit;
use prx_runtime_core::{Error, ErrorKind, Result};
use prx_runtime_wasm::{Guest, GuestOutput, Started, exit_status};
use wasmtime::component::Component;
use wasmtime::{
    Engine, InstancePre, ModuleExport, PoolConcurrencyLimitError, Store, UpdateDeadline,
};
use wasmtime_wasi::p1::WasiP1Ctx;
use wasmtime_wasi::p2::bindings::CommandPre;
use wasmtime_wasi::{FsPerms, WasiCtxBuilder, WasiCtxView, WasiView};

use crate::error::{Ending, ending, not_started};
use crate::limiter::MemoryLimiter;
use crate::network;
use crate::stdio::{Input, Output};
use crate::ticker::Ticker;

/// How many things of the host a guest may hold at once: files, sockets, timers.
const MAX_HANDLES: usize = 512;

/// What the host keeps for a guest.
pub(crate) struct State {
    wasi: WasiP1Ctx,
    limiter: MemoryLimiter,
}

impl WasiView for State {
    fn ctx(&mut self) -> WasiCtxView<'_> {
        self.wasi.ctx()
    }
}

impl State {
    pub(crate) fn p1(&mut self) -> &mut WasiP1Ctx {
        &mut self.wasi
    }
}

/// A module that is ready to run.
pub(crate) enum Ready {
    Core {
        pre: InstancePre<State>,
        start: ModuleExport,
    },
    Component(CommandPre<State>),
}

/// Makes the guest. It runs when its future is polled, and `ticker` ticks meanwhile.
pub(crate) fn start(
    engine: &Engine,
    ticker: &Ticker,
    ready: &Ready,
    guest: Guest,
) -> Result<Started> {
    let stderr = guest.stderr.clone();
    let store = store(engine, guest)?;
    let mut run: Pin<Box<dyn Future<Output = Result<Exit>> + Send>> = match ready {
        Ready::Core { pre, start } => Box::pin(run_core(store, pre.clone(), *start, stderr)),
        Ready::Component(pre) => Box::pin(run_component(store, pre.clone(), stderr)),
    };
    let ticker = ticker.clone();
    let run = poll_fn(move |cx| match ticker.tick() {
        Ok(_ticking) => run.as_mut().poll(cx),
        Err(error) => std::task::Poll::Ready(Err(Error::new(
            ErrorKind::Exhausted,
            "no thread could be started to measure the time of guests",
        )
        .with_source(error))),
    });
    Ok(Started {
        run: Box::pin(run),
        // A guest runs only while it is polled.
        kill_switch: None,
    })
}

fn store(engine: &Engine, guest: Guest) -> Result<Store<State>> {
    let mut wasi = WasiCtxBuilder::new();
    wasi.args(&guest.args)
        .envs(&guest.env)
        .stdin(Input(guest.stdin))
        .stdout(Output(guest.stdout))
        .stderr(Output(guest.stderr));
    network::grant(&mut wasi, guest.network);
    if let Some(directory) = &guest.working_dir {
        wasi.initial_cwd(directory);
    }
    for preopen in &guest.preopens {
        let perms = if preopen.writable {
            FsPerms::ReadWrite
        } else {
            FsPerms::ReadOnly
        };
        wasi.preopened_dir(&preopen.host, &preopen.guest, perms)
            .map_err(|error| {
                Error::new(
                    ErrorKind::Refused,
                    format!(
                        "the directory `{}`, which is granted as `{}`, cannot be opened",
                        preopen.host.display(),
                        preopen.guest
                    ),
                )
                .with_source(std::io::Error::other(crate::error::text_of(&error)))
                .with_hint("make it, or take it off runtime.wasm.capabilities")
            })?;
    }
    let state = State {
        wasi: wasi.build_p1(),
        limiter: MemoryLimiter::new(guest.max_memory),
    };
    let mut store = Store::new(engine, state);
    store.data_mut().ctx().table.set_max_capacity(MAX_HANDLES);
    store.limiter(|state| &mut state.limiter);
    store.set_epoch_deadline(1);
    // The runtime's own way to yield lets timers and input come up even if this is its only task;
    // a task that only wakes itself would keep a runtime of one thread from looking at them.
    store.epoch_deadline_callback(|_| {
        Ok(UpdateDeadline::YieldCustom(
            1,
            Box::pin(tokio::task::yield_now()),
        ))
    });
    Ok(store)
}

async fn run_core(
    mut store: Store<State>,
    pre: InstancePre<State>,
    start: ModuleExport,
    stderr: GuestOutput,
) -> Result<Exit> {
    let instance = match pre.instantiate_async(&mut store).await {
        Ok(instance) => instance,
        Err(error) => return conclude_start(&store, &error, &stderr),
    };
    let start = instance
        .get_module_export(&mut store, &start)
        .and_then(wasmtime::Extern::into_func)
        .map(|start| start.typed::<(), ()>(&store));
    let start = match start {
        Some(Ok(start)) => start,
        _ => {
            return Err(Error::new(
                ErrorKind::Image,
                "the module's `_start` takes or returns something, so it is no command",
            ));
        }
    };
    match start.call_async(&mut store, ()).await {
        Ok(()) => Ok(exit_status(0)),
        Err(error) => conclude(&store, &error, &stderr),
    }
}

async fn run_component(
    mut store: Store<State>,
    pre: CommandPre<State>,
    stderr: GuestOutput,
) -> Result<Exit> {
    let command = match pre.instantiate_async(&mut store).await {
        Ok(command) => command,
        Err(error) => return conclude_start(&store, &error, &stderr),
    };
    match command.wasi_cli_run().call_run(&mut store).await {
        Ok(Ok(())) => Ok(exit_status(0)),
        Ok(Err(())) => Ok(exit_status(1)),
        Err(error) => conclude(&store, &error, &stderr),
    }
}

/// How a guest ended that did not get beyond its start: a start function may trap or exit like any
/// other, everything else means that it did not run.
fn conclude_start(
    store: &Store<State>,
    error: &wasmtime::Error,
    stderr: &GuestOutput,
) -> Result<Exit> {
    if error.is::<wasmtime::Trap>() || error.is::<wasmtime_wasi::I32Exit>() {
        return conclude(store, error, stderr);
    }
    Err(not_started(error, store.data().limiter.refused()))
}

fn conclude(store: &Store<State>, error: &wasmtime::Error, stderr: &GuestOutput) -> Result<Exit> {
    if error.is::<PoolConcurrencyLimitError>() {
        return Err(not_started(error, false));
    }
    Ok(match ending(error) {
        Ending::Exit(exit) => exit,
        Ending::Trap { reason, account } => {
            stderr.write(Bytes::from(account));
            // What fails for want of memory commonly fails by a trap.
            if store.data().limiter.refused() {
                Exit::OutOfMemory
            } else {
                Exit::Trapped(reason)
            }
        }
    })
}

/// The exports of a component are looked up once.
pub(crate) fn command(
    linker: &wasmtime::component::Linker<State>,
    component: &Component,
) -> wasmtime::Result<CommandPre<State>> {
    CommandPre::new(linker.instantiate_pre(component)?)
}
