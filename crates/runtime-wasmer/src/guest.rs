//! One guest: its store, its run, and how it ended.

use std::sync::Arc;

use bytes::Bytes;
use prx_runtime_core::backend::{Exit, KillSwitch};
use prx_runtime_core::{Error, ErrorKind, Result};
use prx_runtime_wasm::{Guest, GuestOutput, Started, exit_status};
use tokio::runtime::Handle;
use wasmer::sys::NativeEngineExt as _;
use wasmer::{
    Engine, Extern, ExternType, Instance, Memory, MemoryType, Module, RuntimeError, Store,
};
use wasmer_wasix::{
    WasiEnvBuilder, WasiFunctionEnv, WasiModuleInstanceHandles, WasiModuleTreeHandles,
    WasiRuntimeError, WasiThreadError,
};

use crate::error::{Ending, ending, not_started, start_error, text_of};
use crate::files::{self, Mounted};
use crate::host::{Host, Tasks};
use crate::imports;
use crate::limiter::MemoryLimiter;
use crate::network;
use crate::stdio::{Input, Output};
use crate::stop::{Stop, Stream};
use crate::thread::{GuestThread, Reaper};

/// Makes the guest. Its thread starts when its future is polled.
pub(crate) fn start(
    engine: &Engine,
    reaper: &Reaper,
    module: &Module,
    guest: Guest,
) -> Result<Started> {
    let stop = Arc::new(Stop::default());
    let mounts = files::mount(&guest.preopens, guest.working_dir.as_deref())?;
    let runtime = Handle::try_current().map_err(|error| {
        Error::new(ErrorKind::Unavailable, "a guest needs a tokio runtime").with_source(error)
    })?;
    let limiter = MemoryLimiter::new(guest.max_memory, Arc::clone(&stop));
    let mut engine = engine.clone();
    engine.set_tunables(limiter.clone());
    let prepared = Prepared {
        module: module.clone(),
        host: Host {
            engine,
            network: network::grant(guest.network),
            tasks: Arc::new(Tasks {
                stop: Arc::clone(&stop),
                runtime: Some(runtime),
            }),
        },
        stderr: guest.stderr.clone(),
        stop: Arc::clone(&stop),
        limiter,
        mounts,
        guest,
    };
    let kill_switch = KillSwitch::new({
        let stop = Arc::clone(&stop);
        move || stop.stop()
    });
    Ok(Started {
        run: Box::pin(GuestThread::new(
            Box::new(|| prepared.run()),
            stop,
            reaper.clone(),
        )),
        kill_switch: Some(kill_switch),
    })
}

/// Everything that a guest's thread needs.
struct Prepared {
    module: Module,
    host: Host,
    guest: Guest,
    mounts: Mounted,
    stderr: GuestOutput,
    stop: Arc<Stop>,
    limiter: MemoryLimiter,
}

impl Prepared {
    fn run(self) -> Result<Exit> {
        let Self {
            module,
            host,
            guest,
            mounts,
            stderr,
            stop,
            limiter,
        } = self;
        let mut store = Store::new(host.engine.clone());
        if stop.is_stopped() {
            return Err(ended());
        }
        let builder = builder(guest, host, mounts, &stop).map_err(|error| {
            Error::new(
                ErrorKind::Engine,
                format!("wasmer cannot prepare a guest: {}", text_of(&error)),
            )
        })?;
        let end = End {
            stderr,
            limiter,
            stop: Arc::clone(&stop),
        };
        let (instance, env) = match instantiate(builder, &module, &mut store, &stop) {
            Ok(instance) => instance,
            Err(error) => return end.before_start(&error),
        };
        if !stop.attach(env.data(&store).process.clone()) {
            return Err(ended());
        }
        let outcome = call(&mut store, &instance)?;
        let exit = end.after_start(outcome);
        leave(&mut store, &env, &exit);
        Ok(exit)
    }
}

/// What a guest that was ended before it began answers, to nobody.
fn ended() -> Error {
    Error::new(ErrorKind::Engine, "the guest was ended before it began")
}

fn builder(
    guest: Guest,
    host: Host,
    mounts: Mounted,
    stop: &Arc<Stop>,
) -> Result<WasiEnvBuilder, wasmer_wasix::WasiStateCreationError> {
    let mut args = guest.args.into_iter();
    let output = |stream, name| {
        Box::new(Output {
            stream,
            name,
            stop: Arc::clone(stop),
        })
    };
    let mut builder = WasiEnvBuilder::new(args.next().unwrap_or_default())
        .args(args)
        .envs(guest.env)
        .stdin(Box::new(Input {
            stream: guest.stdin,
            stop: Arc::clone(stop),
        }))
        .stdout(output(guest.stdout, Stream::Stdout))
        .stderr(output(guest.stderr, Stream::Stderr))
        .disable_default_builtins(true)
        .runtime(Arc::new(host));
    builder.capabilities_mut().threading.max_threads = Some(1);
    builder
        .capabilities_mut()
        .threading
        .enable_asynchronous_threading = false;
    let Mounted { root, preopens } = mounts;
    builder.set_mount_fs(root);
    for preopen in &preopens {
        builder.add_preopen_build(|directory| {
            // An alias loses its leading slash, and nothing else is left of the root's.
            if preopen.name != "/" {
                directory.alias(&preopen.name);
            }
            let directory = directory.directory(&preopen.path).read(true);
            directory.write(preopen.writable).create(preopen.writable)
        })?;
    }
    if let Some(directory) = guest.working_dir {
        builder.set_current_dir(directory);
    }
    Ok(builder)
}

/// wasmer's own way to do so provides every generation of WASI to every guest, which takes most of
/// the time of a short one.
#[expect(
    clippy::result_large_err,
    reason = "it is wasmer's own, and made once in a guest"
)]
fn instantiate(
    builder: WasiEnvBuilder,
    module: &Module,
    store: &mut Store,
    stop: &Arc<Stop>,
) -> Result<(Instance, WasiFunctionEnv), WasiRuntimeError> {
    let mut env = builder.finalize(store)?;
    let (mut imports, guarded) = imports::provide(module, store, &env, stop);
    let mut memory = None;
    for import in module.imports() {
        // A WASIX module has its memory made for it.
        if let ExternType::Memory(ty) = import.ty() {
            let made = Memory::new(store, *ty).map_err(WasiThreadError::MemoryCreateFailed)?;
            imports.define(import.module(), import.name(), made.clone());
            memory = Some(made);
        }
    }
    let instance = Instance::new(store, module, &imports)?;
    let exported = instance
        .exports
        .iter()
        .find_map(|(_, export)| match export {
            Extern::Memory(memory) => Some(memory.clone()),
            _ => None,
        });
    let memory = match memory.or(exported) {
        Some(memory) => memory,
        // A guest without one can call nothing that would look into it.
        None => Memory::new(store, MemoryType::new(0, Some(0), false))
            .map_err(WasiThreadError::MemoryCreateFailed)?,
    };
    guarded.tell(store, memory.clone());
    let handles = WasiModuleInstanceHandles::new(memory, store, instance.clone(), None);
    let handles = WasiModuleTreeHandles::Static(handles);
    env.initialize_handles_and_layout(store, instance.clone(), handles, None, true)?;
    Ok((instance, env))
}

/// Runs the guest to its end.
fn call(store: &mut Store, instance: &Instance) -> Result<Result<(), RuntimeError>> {
    let start = instance
        .exports
        .get_typed_function::<(), ()>(store, "_start")
        .map_err(|_| {
            Error::new(
                ErrorKind::Image,
                "the module's `_start` takes or returns something, so it is no command",
            )
        })?;
    Ok(start.call(store))
}

/// Closes the files of the guest.
fn leave(store: &mut Store, env: &WasiFunctionEnv, exit: &Exit) {
    let code = match exit {
        Exit::Code(code) => *code,
        _ => 1,
    };
    env.on_exit(store, Some(code.into()));
}

/// What decides how a guest ended.
struct End {
    stderr: GuestOutput,
    limiter: MemoryLimiter,
    stop: Arc<Stop>,
}

impl End {
    /// How a guest ended that did not get beyond its start: a start function may trap or exit like
    /// any other, everything else means that it did not run.
    fn before_start(&self, error: &WasiRuntimeError) -> Result<Exit> {
        match start_error(error) {
            Some(error) => Ok(self.after_start(Err(error.clone()))),
            None => Err(not_started(error, self.limiter.refused())),
        }
    }

    fn after_start(&self, outcome: Result<(), RuntimeError>) -> Exit {
        let Err(error) = outcome else {
            return exit_status(0);
        };
        match ending(&error) {
            Ending::Exit(exit) => exit,
            Ending::Trap { reason, account } => {
                // What ends a guest from outside is a trap too, and none of its own.
                if !self.stop.is_stopped() {
                    self.stderr.write(Bytes::from(account));
                }
                // What fails for want of memory commonly fails by a trap.
                if self.limiter.refused() {
                    Exit::OutOfMemory
                } else {
                    Exit::Trapped(reason)
                }
            }
        }
    }
}
