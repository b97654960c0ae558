//! The memory of one guest, over everything it can grow.

use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use wasmer::sys::vm::{
    ExpectedValue, LinearMemory, ThreadConditions, Trap, VMConfig, VMMemory, VMMemoryDefinition,
    VMTable, VMTableDefinition, WaiterError,
};
use wasmer::sys::{BaseTunables, Tunables};
use wasmer::{MemoryError, MemoryStyle, MemoryType, Pages, TableStyle, TableType};

use crate::stop::Stop;

/// How much of the host's memory an element of a table takes, in bytes.
const ELEMENT: u64 = 16;
/// By how many elements a table may grow, at most, that says no maximum of its own.
const GROWTH: u64 = 64 << 10;
/// The part of a guest's memory that one such table may grow to.
const SHARE: u64 = 16;
/// The stack that WebAssembly code may use, in bytes. Interpreters recurse; CPython needs more
/// than wasmer's default of 1 MiB.
const WASM_STACK: usize = 2 << 20;
/// The size of a page of memory, in bytes.
const PAGE: u64 = 64 << 10;
/// How long an atomic wait keeps wasmer from hearing that the guest is to end. There is nobody to
/// notify the guest's only thread, so that waiting is all it does.
const ATOMIC_WAIT: Duration = Duration::from_millis(5);
/// What an atomic wait answers when its time is over.
const TIMED_OUT: u32 = 2;

/// Counts the memory of a guest and refuses more than its limit. Clones count together.
#[derive(Debug, Clone)]
pub(crate) struct MemoryLimiter(Arc<Account>);

struct Account {
    /// In bytes.
    limit: u64,
    used: AtomicU64,
    refused: AtomicBool,
    vm: VMConfig,
    stop: Arc<Stop>,
}

impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Account")
            .field("limit", &self.limit)
            .field("used", &self.used)
            .finish_non_exhaustive()
    }
}

impl MemoryLimiter {
    pub(crate) fn new(limit: u64, stop: Arc<Stop>) -> Self {
        Self(Arc::new(Account {
            limit,
            used: AtomicU64::new(0),
            refused: AtomicBool::new(false),
            vm: VMConfig {
                wasm_stack_size: Some(WASM_STACK),
            },
            stop,
        }))
    }

    /// Whether the guest was ever refused memory because of its limit.
    pub(crate) fn refused(&self) -> bool {
        self.0.refused.load(Ordering::SeqCst)
    }

    /// Takes `bytes` of what is left.
    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|used| *used <= self.0.limit);
        let taken = self
            .0
            .used
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, fits)
            .is_ok();
        if !taken {
            self.0.refused.store(true, Ordering::SeqCst);
        }
        taken
    }

    fn give_back(&self, bytes: u64) {
        self.0.used.fetch_sub(bytes, Ordering::SeqCst);
    }

    fn take_memory(&self, ty: &MemoryType) -> Result<(), MemoryError> {
        let bytes = u64::try_from(ty.minimum.bytes().0).unwrap_or(u64::MAX);
        if self.take(bytes) {
            Ok(())
        } else {
            Err(no_room())
        }
    }

    /// A table grows beyond anyone's control, so all that it may grow to is set aside when it is
    /// made.
    fn take_table(&self, ty: &TableType) -> Result<TableType, String> {
        let growth = GROWTH.min(self.0.limit / SHARE / ELEMENT);
        let most = ty
            .minimum
            .saturating_add(u32::try_from(growth).unwrap_or(u32::MAX));
        let most = ty.maximum.map_or(most, |maximum| maximum.min(most));
        if !self.take(u64::from(most).saturating_mul(ELEMENT)) {
            return Err("there is no room for it in the memory of the guest".to_owned());
        }
        let mut ty = *ty;
        ty.maximum = Some(most);
        Ok(ty)
    }

    fn limited(&self, inner: VMMemory) -> VMMemory {
        let memory: Box<dyn LinearMemory + Send + Sync> = Box::new(LimitedMemory {
            inner,
            limiter: self.clone(),
        });
        VMMemory::from_custom(memory)
    }
}

fn no_room() -> MemoryError {
    MemoryError::Generic("there is no room for it in the memory of the guest".to_owned())
}

impl Tunables for MemoryLimiter {
    fn memory_style(&self, memory: &MemoryType) -> MemoryStyle {
        BaseTunables::new().memory_style(memory)
    }

    fn table_style(&self, table: &TableType) -> TableStyle {
        BaseTunables::new().table_style(table)
    }

    fn create_host_memory(
        &self,
        ty: &MemoryType,
        style: &MemoryStyle,
    ) -> Result<VMMemory, MemoryError> {
        self.take_memory(ty)?;
        VMMemory::new(ty, style).map(|memory| self.limited(memory))
    }

    unsafe fn create_vm_memory(
        &self,
        ty: &MemoryType,
        style: &MemoryStyle,
        location: NonNull<VMMemoryDefinition>,
    ) -> Result<VMMemory, MemoryError> {
        self.take_memory(ty)?;
        // SAFETY: the caller's promise is the one that this function asks for.
        let memory = unsafe { VMMemory::from_definition(ty, style, location) };
        memory.map(|memory| self.limited(memory))
    }

    fn create_host_table(&self, ty: &TableType, style: &TableStyle) -> Result<VMTable, String> {
        VMTable::new(&self.take_table(ty)?, style)
    }

    unsafe fn create_vm_table(
        &self,
        ty: &TableType,
        style: &TableStyle,
        location: NonNull<VMTableDefinition>,
    ) -> Result<VMTable, String> {
        let ty = self.take_table(ty)?;
        // SAFETY: as above.
        unsafe { VMTable::from_definition(&ty, style, location) }
    }

    fn vmconfig(&self) -> &VMConfig {
        &self.0.vm
    }
}

/// A memory that asks before it grows.
#[derive(Debug)]
struct LimitedMemory {
    inner: VMMemory,
    limiter: MemoryLimiter,
}

impl LinearMemory for LimitedMemory {
    fn ty(&self) -> MemoryType {
        self.inner.ty()
    }

    fn size(&self) -> Pages {
        self.inner.size()
    }

    fn style(&self) -> MemoryStyle {
        self.inner.style()
    }

    /// Growing by nothing is how a guest asks whether it may go on, see [`turns`](crate::turns).
    fn grow(&mut self, delta: Pages) -> Result<Pages, MemoryError> {
        if self.limiter.0.stop.is_stopped() {
            return Err(no_room());
        }
        if delta.0 == 0 {
            return Ok(self.size());
        }
        let bytes = u64::try_from(delta.bytes().0).unwrap_or(u64::MAX);
        // Beyond what the module itself declares, growth fails whatever the limit is.
        let after = u64::from(self.size().0) + u64::from(delta.0);
        let own_maximum = self
            .ty()
            .maximum
            .is_some_and(|maximum| after > u64::from(maximum.0));
        if !own_maximum && !self.limiter.take(bytes) {
            return Err(no_room());
        }
        let grown = self.inner.grow(delta);
        if grown.is_err() && !own_maximum {
            self.limiter.give_back(bytes);
        }
        grown
    }

    fn grow_at_least(&mut self, min_size: u64) -> Result<(), MemoryError> {
        let now = u64::try_from(self.size().bytes().0).unwrap_or(u64::MAX);
        let more = min_size.saturating_sub(now).div_ceil(PAGE);
        match u32::try_from(more) {
            Ok(0) => Ok(()),
            Ok(more) => self.grow(Pages(more)).map(|_| ()),
            Err(_) => Err(no_room()),
        }
    }

    fn reset(&mut self) -> Result<(), MemoryError> {
        self.inner.reset()
    }

    fn vmmemory(&self) -> NonNull<VMMemoryDefinition> {
        self.inner.vmmemory()
    }

    fn try_clone(&self) -> Result<Box<dyn LinearMemory + Send + Sync>, MemoryError> {
        let inner = self.inner.try_clone()?;
        Ok(Box::new(Self {
            inner,
            limiter: self.limiter.clone(),
        }))
    }

    unsafe fn initialize_with_data(&self, start: usize, data: &[u8]) -> Result<(), Trap> {
        // SAFETY: the caller's promise is the one that this function asks for.
        unsafe { self.inner.initialize_with_data(start, data) }
    }

    /// A copy would not count.
    fn copy(&self) -> Result<Box<dyn LinearMemory + Send + Sync>, MemoryError> {
        Err(MemoryError::UnsupportedOperation {
            message: "the memory of a guest is not copied".to_owned(),
        })
    }

    unsafe fn do_wait(
        &mut self,
        dst: u32,
        expected: ExpectedValue,
        timeout: Option<Duration>,
    ) -> Result<u32, WaiterError> {
        let until = timeout.map(|timeout| Instant::now().checked_add(timeout));
        loop {
            let left = match until {
                Some(Some(until)) => until.saturating_duration_since(Instant::now()),
                _ => Duration::MAX,
            };
            // SAFETY: as above.
            let outcome = unsafe {
                self.inner
                    .do_wait(dst, same(&expected), Some(left.min(ATOMIC_WAIT)))
            };
            if !matches!(outcome, Ok(TIMED_OUT)) || left <= ATOMIC_WAIT {
                return outcome;
            }
            if self.limiter.0.stop.is_stopped() {
                return Err(WaiterError::AtomicsDisabled);
            }
        }
    }

    fn do_notify(&mut self, dst: u32, count: u32) -> u32 {
        self.inner.do_notify(dst, count)
    }

    fn thread_conditions(&self) -> Option<&ThreadConditions> {
        self.inner.thread_conditions()
    }
}

/// What wasmer can neither copy nor clone.
fn same(expected: &ExpectedValue) -> ExpectedValue {
    match expected {
        ExpectedValue::None => ExpectedValue::None,
        ExpectedValue::U32(value) => ExpectedValue::U32(*value),
        ExpectedValue::U64(value) => ExpectedValue::U64(*value),
    }
}
