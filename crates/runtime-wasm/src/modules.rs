//! Modules in memory: each is compiled and loaded once, and again when its file has changed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use prx_runtime_core::{Error, ErrorKind, Result};
use tokio::sync::watch;

use crate::cache::{DiskCache, Key};
use crate::error::{SharedError, unreadable};
use crate::inspect::{Facts, inspect};
use crate::lookup::{Located, Lookup};
use crate::source::{self, Stamp};
use crate::{Artifact, LoadError, ModuleKind, Preopen, WasmEngine, compile};

/// How long a call waits for its module to be compiled. It is not on the command's clock.
const COMPILE_BUDGET: Duration = Duration::from_secs(300);

/// How many modules stay loaded. What was used longest ago goes first; running guests keep theirs.
const MAX_LOADED: usize = 64;

/// A module that can be run.
#[derive(Debug)]
pub(crate) struct Prepared<M> {
    pub(crate) module: M,
    pub(crate) kind: ModuleKind,
    pub(crate) facts: Facts,
    /// The file, links resolved.
    pub(crate) path: PathBuf,
    /// Its place in the cache on disk, where there is one.
    pub(crate) entry: Option<PathBuf>,
    /// How long compiling took; `None` if it came from the cache.
    pub(crate) compiled_in: Option<Duration>,
    key: Key,
}

/// All modules of one engine.
pub(crate) struct Modules<E: WasmEngine> {
    engine: Arc<E>,
    fingerprint: Vec<u8>,
    cache: Option<DiskCache>,
    lookup: Lookup,
    /// The largest memory limit of any guest, in bytes.
    max_memory: u64,
    state: Mutex<State<E::Module>>,
}

struct State<M> {
    known: HashMap<Located, Known<M>>,
    /// What is being prepared, and for which state of its file.
    under_way: HashMap<(Located, Stamp), watch::Receiver<Option<Outcome<M>>>>,
    uses: u64,
}

struct Known<M> {
    stamp: Stamp,
    /// Whether an unchanged stamp means an unchanged file.
    settled: bool,
    prepared: Arc<Prepared<M>>,
    last_use: u64,
}

type Outcome<M> = Result<Arc<Prepared<M>>, SharedError>;

impl<E: WasmEngine> Modules<E> {
    pub(crate) fn new(
        engine: Arc<E>,
        cache: Option<DiskCache>,
        lookup: Lookup,
        max_memory: u64,
    ) -> Self {
        Self {
            fingerprint: engine.fingerprint(),
            engine,
            cache,
            lookup,
            max_memory,
            state: Mutex::new(State {
                known: HashMap::new(),
                under_way: HashMap::new(),
                uses: 0,
            }),
        }
    }

    pub(crate) fn lookup(&self) -> &Lookup {
        &self.lookup
    }

    /// Refuses to let a guest write where compiled modules are kept: what lies there is executed
    /// as it is.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`], with the directory.
    pub(crate) fn guard_cache(&self, preopens: &[Preopen]) -> Result<()> {
        let Some(cache) = &self.cache else {
            return Ok(());
        };
        let holds = |preopen: &&Preopen| preopen.writable && cache.lies_in(&preopen.host);
        match preopens.iter().find(holds) {
            None => Ok(()),
            Some(preopen) => Err(Error::new(
                ErrorKind::Refused,
                format!(
                    "the guest may write in `{}`, and so put modules of its own in the place of those in \
                     `{}`, which are executed as they are",
                    preopen.host.display(),
                    cache.directory().display()
                ),
            )
            .with_hint(
                "grant it for reading only, set runtime.wasm.cache_path elsewhere, or \
                 runtime.wasm.cache_size = 0",
            )),
        }
    }

    pub(crate) fn engine(&self) -> &E {
        &self.engine
    }

    /// The module in a file, compiled and loaded if that was not done before. Callers that come
    /// while it is being compiled wait for the same result. Cancel-safe; what was begun is
    /// finished and kept.
    ///
    /// # Errors
    ///
    /// The file cannot be read, is no module, is no command, or imports what nothing provides.
    pub(crate) async fn get(
        self: &Arc<Self>,
        located: &Located,
    ) -> Result<Arc<Prepared<E::Module>>> {
        let stamp = Stamp::of(&located.path).map_err(|error| unreadable(&located.path, error))?;
        let mut outcome = {
            let mut state = self.lock();
            if let Some(prepared) = state.fresh(located, &stamp) {
                return Ok(prepared);
            }
            self.join_or_begin(&mut state, located, stamp)?
        };
        let done = tokio::time::timeout(COMPILE_BUDGET, outcome.wait_for(Option::is_some)).await;
        match done {
            Ok(Ok(outcome)) => match &*outcome {
                Some(Ok(prepared)) => Ok(Arc::clone(prepared)),
                Some(Err(error)) => Err(error.clone().into()),
                None => Err(broke_off(located)),
            },
            Ok(Err(_)) => Err(broke_off(located)),
            Err(_) => Err(Error::new(
                ErrorKind::Image,
                format!(
                    "`{}` was not compiled within {COMPILE_BUDGET:?}",
                    located.path.display()
                ),
            )
            .with_hint(
                "it takes long, or what came before it does: compile it beforehand with \
                 `prx-runtime wasm compile`",
            )),
        }
    }

    fn join_or_begin(
        self: &Arc<Self>,
        state: &mut State<E::Module>,
        located: &Located,
        stamp: Stamp,
    ) -> Result<watch::Receiver<Option<Outcome<E::Module>>>> {
        let id = (located.clone(), stamp);
        // A sender that is gone without an outcome belongs to a job that panicked.
        if let Some(outcome) = state.under_way.get(&id)
            && outcome.has_changed().is_ok()
        {
            return Ok(outcome.clone());
        }
        let (done, outcome) = watch::channel(None);
        let modules = Arc::clone(self);
        compile::start({
            let id = id.clone();
            move || {
                let result = modules.prepare(&id.0).map_err(SharedError::from);
                modules.lock().under_way.remove(&id);
                // Whoever waited may have gone.
                let _ = done.send(Some(result));
            }
        })?;
        state.under_way.insert(id, outcome.clone());
        Ok(outcome)
    }

    /// Reads, checks, compiles and loads a module. Blocks.
    fn prepare(&self, located: &Located) -> Result<Arc<Prepared<E::Module>>> {
        let path = self.lookup.resolve(located)?;
        let source = source::read(&path)?;
        let kind = ModuleKind::of(&source.bytes, &path)?;
        let key = Key::new(self.engine.name(), &self.fingerprint, kind, &source.bytes);
        let loaded = self.lock().loaded(&key);
        // Kept until what was made is known, so that whoever comes next finds it.
        let mut turn = None;
        let prepared = match loaded {
            Some(prepared) => prepared,
            None => {
                let facts = inspect(&source.bytes, kind, &path)?;
                facts.require_within(self.max_memory, &path)?;
                self.make(&source.bytes, kind, key, facts, &path, &mut turn)
                    .map_err(|error| in_file(&path, error))?
            }
        };
        self.lock().remember(
            located.clone(),
            source.stamp,
            source.settled,
            Arc::clone(&prepared),
        );
        drop(turn);
        Ok(prepared)
    }

    /// Loads a module, compiled before or now: that takes a turn.
    fn make(
        &self,
        bytes: &[u8],
        kind: ModuleKind,
        key: Key,
        facts: Facts,
        path: &Path,
        turn: &mut Option<compile::Turn>,
    ) -> Result<Arc<Prepared<E::Module>>> {
        let mut compiled_in = None;
        let module = match self.load_cached(kind, &key)? {
            Some(module) => module,
            None => {
                *turn = Some(compile::Turn::wait());
                // It may have been made meanwhile: under another name, or by another process.
                if let Some(prepared) = self.lock().loaded(&key) {
                    return Ok(prepared);
                }
                match self.load_cached(kind, &key)? {
                    Some(module) => module,
                    None => {
                        let (module, duration) = self.compile(bytes, kind, &key)?;
                        compiled_in = Some(duration);
                        module
                    }
                }
            }
        };
        Ok(Arc::new(Prepared {
            module,
            kind,
            facts,
            entry: self.cache.as_ref().map(|cache| cache.path(&key)),
            compiled_in,
            path: path.to_owned(),
            key,
        }))
    }

    /// Compiles a module, keeps that, and loads it.
    fn compile(&self, bytes: &[u8], kind: ModuleKind, key: &Key) -> Result<(E::Module, Duration)> {
        let begun = Instant::now();
        let artifact = self.engine.compile(bytes, kind)?;
        let compiled_in = begun.elapsed();
        tracing::info!(size = bytes.len(), ?compiled_in, "compiled a module");
        if let Some(cache) = &self.cache {
            cache.put(key, &artifact);
            // Mapped from the file, it shares its memory with other processes.
            if let Some(module) = self.load_cached(kind, key)? {
                return Ok((module, compiled_in));
            }
        }
        // SAFETY: `compile` of this very engine made it a moment ago, and nobody else has it.
        let module = unsafe { self.engine.load(Artifact::Bytes(&artifact), kind) };
        module
            .map(|module| (module, compiled_in))
            .map_err(|error| match error {
                LoadError::Module(error) => error,
                // It was compiled a moment ago, so what is wrong with it is the module's own.
                LoadError::Artifact(problem) => Error::new(
                    ErrorKind::Image,
                    format!("the engine has no room for such a module: {problem}"),
                ),
            })
    }

    fn load_cached(&self, kind: ModuleKind, key: &Key) -> Result<Option<E::Module>> {
        let Some(cache) = &self.cache else {
            return Ok(None);
        };
        let Some((file, len)) = cache.get(key) else {
            return Ok(None);
        };
        // SAFETY: the key holds the engine's fingerprint, the checksum over key and artifact was
        // found right a moment ago, and the file lies in a directory that only this user can
        // change, where files are only ever replaced by renaming.
        match unsafe { self.engine.load(Artifact::File { file, len }, kind) } {
            Ok(module) => Ok(Some(module)),
            Err(LoadError::Module(error)) => Err(error),
            Err(LoadError::Artifact(problem)) => {
                cache.discard(key, &problem);
                Ok(None)
            }
        }
    }

    /// A panic while the lock is held leaves maps that are at worst an entry short.
    fn lock(&self) -> MutexGuard<'_, State<E::Module>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M> State<M> {
    /// What is known of a file that has not changed.
    fn fresh(&mut self, located: &Located, stamp: &Stamp) -> Option<Arc<Prepared<M>>> {
        let known = self.known.get_mut(located)?;
        if !known.settled || known.stamp != *stamp {
            return None;
        }
        self.uses += 1;
        known.last_use = self.uses;
        Some(Arc::clone(&known.prepared))
    }

    /// A module with this content, from whatever file.
    fn loaded(&self, key: &Key) -> Option<Arc<Prepared<M>>> {
        let mut known = self.known.values();
        known
            .find(|known| known.prepared.key == *key)
            .map(|known| Arc::clone(&known.prepared))
    }

    fn remember(
        &mut self,
        located: Located,
        stamp: Stamp,
        settled: bool,
        prepared: Arc<Prepared<M>>,
    ) {
        self.uses += 1;
        let last_use = self.uses;
        self.known.insert(
            located,
            Known {
                stamp,
                settled,
                prepared,
                last_use,
            },
        );
        if self.known.len() > MAX_LOADED {
            let oldest = self.known.iter().min_by_key(|(_, known)| known.last_use);
            if let Some(oldest) = oldest.map(|(located, _)| located.clone()) {
                self.known.remove(&oldest);
            }
        }
    }
}

/// The engine knows bytes; people know files.
fn in_file(path: &Path, error: Error) -> Error {
    let hint = error.hint().map(str::to_owned);
    let wrapped = Error::new(error.kind(), format!("`{}` cannot be used", path.display()))
        .with_source(Error::from(SharedError::from(error).without_hint()));
    match hint {
        Some(hint) => wrapped.with_hint(hint),
        None => wrapped,
    }
}

fn broke_off(located: &Located) -> Error {
    Error::new(
        ErrorKind::Engine,
        format!("compiling `{}` broke off", located.path.display()),
    )
    .with_hint("the engine's compiler panicked; what it said is on this process's stderr")
}
