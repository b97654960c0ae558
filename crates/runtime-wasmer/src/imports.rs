//! What a module imports: whether it is all there, and what stands in the way of some of it.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use prx_runtime_core::Result;
use wasmer::{
    AsStoreMut, Engine, Extern, ExternType, Function, FunctionEnv, FunctionEnvMut, FunctionType,
    Imports, Memory, Module, RuntimeError, Store, StoreMut, Type, Value,
};
use wasmer_wasix::wasmer_wasix_types::wasi::Errno;
use wasmer_wasix::{WasiEnvBuilder, WasiFunctionEnv};

use crate::error::{not_started, unlinkable};
use crate::files::climbs;
use crate::host::{Host, Tasks};
use crate::network;
use crate::stop::Stop;

/// Functions that a guest is refused: processes and threads, which nothing here would bound, and
/// what keeps as much in the host's memory as the guest likes.
const REFUSED: &[&str] = &[
    "context_create",
    "dlopen",
    "epoll_create",
    "fd_event",
    "fd_pipe",
    // wasmer does not reach a file system's own, and makes a link up instead that only this guest
    // finds.
    "path_link",
    "proc_exec",
    "proc_exec2",
    "proc_exec3",
    "proc_exec4",
    "proc_fork",
    "proc_fork_env",
    "proc_raise_interval",
    "proc_snapshot",
    "proc_spawn",
    "proc_spawn2",
    "proc_spawn3",
    "reflect_signature",
    "sock_pair",
    "thread-spawn",
    "thread_spawn",
    "thread_spawn_v2",
    "tty_set",
];

/// Functions that open something, which then counts against [`MAX_HANDLES`], and which of their
/// parameters says where its number is to be written.
const OPENING: &[(&str, usize)] = &[
    ("fd_dup", 1),
    ("fd_dup2", 3),
    ("path_open", 8),
    ("path_open2", 9),
    ("sock_accept", 2),
    ("sock_accept_v2", 2),
    ("sock_open", 3),
];
/// The function that opens something under a number of the guest's choice: in wasmer the old number
/// stays open, too.
const RENUMBERING: &str = "fd_renumber";
/// The function that closes it.
const CLOSING: &str = "fd_close";
/// How many things of the host a guest may hold at once: files, directories, sockets.
const MAX_HANDLES: usize = 512;

/// Functions of WASI preview 1 that take paths, and where among their parameters each is. A path
/// there is one beneath the directory that comes with it; wasmer would let it climb to a directory
/// of all that is granted, or begin there.
const PATHS: &[(&str, &[usize])] = &[
    ("path_create_directory", &[1]),
    ("path_filestat_get", &[2]),
    ("path_filestat_set_times", &[2]),
    ("path_open", &[2]),
    ("path_readlink", &[1]),
    ("path_remove_directory", &[1]),
    ("path_rename", &[1, 4]),
    ("path_symlink", &[3]),
    ("path_unlink_file", &[1]),
];
const PREVIEW_1: &str = "wasi_snapshot_preview1";
/// No path is longer, in bytes.
const MAX_PATH: u32 = 4096;

/// Functions that may wait. What a guest waits for comes early when the guest is to end, and it must
/// not go on as if it had come.
const WAITING: &[&str] = &[
    "epoll_wait",
    "fd_pread",
    "fd_pwrite",
    "fd_read",
    "fd_write",
    "futex_wait",
    "poll_oneoff",
    "proc_join",
    "resolve",
    "sock_accept",
    "sock_accept_v2",
    "sock_connect",
    "sock_recv",
    "sock_recv_from",
    "sock_send",
    "sock_send_file",
    "sock_send_to",
    "thread_join",
    "thread_sleep",
];

/// Functions that take a clock first. The host's time on the processor is none of a guest's
/// business.
const CLOCKS: &[&str] = &["clock_res_get", "clock_time_get"];
const REALTIME: i32 = 0;
const MONOTONIC: i32 = 1;

/// Whether everything that a module imports is there.
///
/// # Errors
///
/// The first import that is not.
pub(crate) fn check(engine: &Engine, module: &Module) -> Result<()> {
    let mut store = Store::new(engine.clone());
    let host = Host {
        engine: engine.clone(),
        network: network::grant(false),
        tasks: Arc::new(Tasks {
            stop: Arc::default(),
            runtime: None,
        }),
    };
    let mut builder = WasiEnvBuilder::new("").runtime(Arc::new(host));
    builder.set_mount_fs(virtual_fs::MountFileSystem::new());
    builder.set_stdin(Box::<virtual_fs::NullFile>::default());
    let env = builder
        .build()
        .map_err(|error| not_started(&error, false))?;
    let env = WasiFunctionEnv::new(&mut store, env);
    let (provided, _) = provide(module, &mut store, &env, &Arc::default());
    for import in module.imports() {
        // The memory of a WASIX module is made for it.
        let memory = matches!(import.ty(), ExternType::Memory(_));
        if !memory
            && provided
                .get_export(import.module(), import.name())
                .is_none()
        {
            return Err(unlinkable(import.module(), import.name()));
        }
    }
    Ok(())
}

/// The functions that a module may import, of the generations of WASI that it was built for, and
/// what has to be told its memory when there is one.
pub(crate) fn provide(
    module: &Module,
    store: &mut Store,
    env: &WasiFunctionEnv,
    stop: &Arc<Stop>,
) -> (Imports, Guarded) {
    // A module that imports nothing of any of them needs nothing.
    let mut imports = env
        .import_object_for_all_wasi_versions(store, module)
        .unwrap_or_default();
    let guarded = guard(module, &mut store.as_store_mut(), &mut imports, stop);
    (imports, guarded)
}

/// Puts a guard before some of the functions that a module imports.
fn guard(
    module: &Module,
    store: &mut StoreMut<'_>,
    imports: &mut Imports,
    stop: &Arc<Stop>,
) -> Guarded {
    let env = FunctionEnv::new(
        store,
        State {
            held: HashSet::new(),
            memory: None,
            stop: Arc::clone(stop),
        },
    );
    for import in module.imports() {
        let ExternType::Function(ty) = import.ty() else {
            continue;
        };
        let (namespace, name) = (import.module(), import.name());
        let Some(Extern::Function(inner)) = imports.get_export(namespace, name) else {
            continue;
        };
        let mut function = inner;
        let mut guard = |guard: Guard| {
            let inner = function.clone();
            function = Function::new_with_env(store, &env, ty.clone(), move |mut env, params| {
                guard(&mut env, &inner, params)
            });
        };
        if REFUSED.contains(&name) {
            function = refusal(store, ty);
        } else {
            if let Some(&(_, number)) = OPENING.iter().find(|(of, _)| *of == name) {
                guard(Box::new(move |env, inner, params| {
                    open(env, inner, params, number)
                }));
            } else if name == RENUMBERING {
                guard(Box::new(renumber));
            } else if name == CLOSING {
                guard(Box::new(close));
            } else if CLOCKS.contains(&name) {
                guard(Box::new(clock));
            }
            if WAITING.contains(&name) {
                guard(Box::new(wait));
            }
            if namespace == PREVIEW_1
                && let Some((_, paths)) = PATHS.iter().find(|(of, _)| *of == name)
            {
                guard(Box::new(|env, inner, params| {
                    beneath(env, inner, params, paths)
                }));
            }
        }
        imports.define(namespace, name, function);
    }
    Guarded(env)
}

/// What the guards of one guest share.
#[derive(Debug)]
struct State {
    /// The numbers of what the guest holds, without what it was given.
    held: HashSet<u32>,
    memory: Option<Memory>,
    stop: Arc<Stop>,
}

/// The guards of one guest.
#[derive(Debug)]
pub(crate) struct Guarded(FunctionEnv<State>);

impl Guarded {
    /// From here on the guest has `memory`.
    pub(crate) fn tell(&self, store: &mut Store, memory: Memory) {
        self.0.as_mut(store).memory = Some(memory);
    }
}

type Env<'a> = FunctionEnvMut<'a, State>;
type Answer = std::result::Result<Vec<Value>, RuntimeError>;
type Guard = Box<dyn Fn(&mut Env<'_>, &Function, &[Value]) -> Answer + Send + Sync>;

/// `number` is the parameter that says where the guest will find the number.
fn open(env: &mut Env<'_>, inner: &Function, params: &[Value], number: usize) -> Answer {
    if env.data().held.len() >= MAX_HANDLES {
        return Ok(refuse(Errno::Mfile));
    }
    let answer = inner.call(&mut env.as_store_mut(), params)?;
    if succeeded(&answer) {
        let opened = match params.get(number) {
            Some(Value::I32(pointer)) => read_number(env, u64::from(pointer.cast_unsigned())),
            Some(Value::I64(pointer)) => read_number(env, pointer.cast_unsigned()),
            _ => None,
        };
        // The guest has been told, so that it can be read. Were it not, nothing could be counted.
        let opened =
            opened.ok_or_else(|| RuntimeError::new("what the guest has opened is not known"))?;
        env.data_mut().held.insert(opened);
    }
    Ok(answer.into_vec())
}

/// A number in the memory of the guest.
fn read_number(env: &Env<'_>, pointer: u64) -> Option<u32> {
    let mut bytes = [0; 4];
    let memory = env.data().memory.as_ref()?;
    memory.view(env).read(pointer, &mut bytes).ok()?;
    Some(u32::from_le_bytes(bytes))
}

fn renumber(env: &mut Env<'_>, inner: &Function, params: &[Value]) -> Answer {
    let to = number(params.get(1));
    let held = &env.data().held;
    if held.len() >= MAX_HANDLES && to.is_none_or(|to| !held.contains(&to)) {
        return Ok(refuse(Errno::Mfile));
    }
    let answer = inner.call(&mut env.as_store_mut(), params)?;
    if succeeded(&answer) {
        env.data_mut().held.extend(to);
    }
    Ok(answer.into_vec())
}

/// A descriptor among the parameters.
fn number(param: Option<&Value>) -> Option<u32> {
    match param {
        Some(Value::I32(number)) => Some(number.cast_unsigned()),
        _ => None,
    }
}

fn close(env: &mut Env<'_>, inner: &Function, params: &[Value]) -> Answer {
    let answer = inner.call(&mut env.as_store_mut(), params)?;
    if succeeded(&answer) {
        // What the guest was given open was never counted.
        if let Some(closed) = number(params.first()) {
            env.data_mut().held.remove(&closed);
        }
    }
    Ok(answer.into_vec())
}

fn wait(env: &mut Env<'_>, inner: &Function, params: &[Value]) -> Answer {
    let answer = inner.call(&mut env.as_store_mut(), params)?;
    if env.data().stop.is_stopped() {
        return Err(RuntimeError::new("the guest is to end"));
    }
    Ok(answer.into_vec())
}

fn clock(env: &mut Env<'_>, inner: &Function, params: &[Value]) -> Answer {
    match params.first() {
        Some(Value::I32(REALTIME | MONOTONIC)) => inner
            .call(&mut env.as_store_mut(), params)
            .map(<[Value]>::into_vec),
        _ => Ok(refuse(Errno::Inval)),
    }
}

fn beneath(env: &mut Env<'_>, inner: &Function, params: &[Value], paths: &[usize]) -> Answer {
    for &at in paths {
        let Some([Value::I32(pointer), Value::I32(len)]) = params.get(at..at + 2) else {
            return Ok(refuse(Errno::Inval));
        };
        match path(env, pointer.cast_unsigned(), len.cast_unsigned()) {
            Ok(path) if climbs(Path::new(&path)) => return Ok(refuse(Errno::Perm)),
            Ok(_) => {}
            Err(errno) => return Ok(refuse(errno)),
        }
    }
    inner
        .call(&mut env.as_store_mut(), params)
        .map(<[Value]>::into_vec)
}

/// A path in the memory of the guest. It has one thread, so nobody changes it meanwhile.
fn path(env: &Env<'_>, pointer: u32, len: u32) -> std::result::Result<String, Errno> {
    if len > MAX_PATH {
        return Err(Errno::Nametoolong);
    }
    let memory = env.data().memory.as_ref().ok_or(Errno::Fault)?;
    let mut bytes = vec![0; len as usize];
    memory
        .view(env)
        .read(u64::from(pointer), &mut bytes)
        .map_err(|_| Errno::Fault)?;
    String::from_utf8(bytes).map_err(|_| Errno::Ilseq)
}

fn refusal(store: &mut StoreMut<'_>, ty: &FunctionType) -> Function {
    let results: Vec<Value> = ty
        .results()
        .iter()
        .map(|result| match result {
            Type::I64 => Value::I64(0),
            Type::F32 => Value::F32(0.0),
            Type::F64 => Value::F64(0.0),
            _ => Value::I32(i32::from(Errno::Notsup as u16)),
        })
        .collect();
    Function::new(store, ty.clone(), move |_| Ok(results.clone()))
}

fn refuse(errno: Errno) -> Vec<Value> {
    vec![Value::I32(i32::from(errno as u16))]
}

fn succeeded(answer: &[Value]) -> bool {
    matches!(answer, [Value::I32(0)])
}
