//! How wasmtime is configured.

use wasmtime::{
    Config, InstanceAllocationStrategy, OptLevel, PoolingAllocationConfig, WasmBacktraceDetails,
};

/// The stack that WebAssembly code may use, in bytes. Interpreters recurse; CPython needs more
/// than wasmtime's default of 512 KiB.
const WASM_STACK: usize = 2 << 20;
/// The stack of a guest with what the host's own functions need on top.
const FIBER_STACK: usize = WASM_STACK + (1 << 20);
/// How much of a stack is cleared rather than given back to the system after a guest, in bytes.
const STACK_KEPT: usize = 32 << 10;
/// As many frames as anyone will read.
const BACKTRACE_FRAMES: usize = 64;

/// What a guest may consist of. A component is made of several modules, often with a memory each.
const MEMORIES_EACH: u32 = 8;
const TABLES_EACH: u32 = 16;
const INSTANCES_EACH: u32 = 32;
/// Per guest on average; a single one may have more, as above.
const MEMORIES_AVERAGE: u32 = 2;
const TABLES_AVERAGE: u32 = 4;
const INSTANCES_AVERAGE: u32 = 8;
/// Functions in a table: the largest programs in use have some ten thousand.
const TABLE_ELEMENTS: usize = 200_000;

/// What every store of this engine is made for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes {
    /// How many guests there may be at once.
    pub(crate) guests: u32,
    /// The largest memory limit of any guest, in bytes.
    pub(crate) max_memory: u64,
}

/// The configuration with places reserved for all guests, which makes starting one cheap.
pub(crate) fn pooling(sizes: Sizes) -> Config {
    let guests = sizes.guests;
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(guests)
        .total_core_instances(guests.saturating_mul(INSTANCES_AVERAGE).max(INSTANCES_EACH))
        .total_memories(guests.saturating_mul(MEMORIES_AVERAGE).max(MEMORIES_EACH))
        .total_tables(guests.saturating_mul(TABLES_AVERAGE).max(TABLES_EACH))
        .total_stacks(guests)
        .max_memories_per_module(MEMORIES_EACH)
        .max_memories_per_component(MEMORIES_EACH)
        .max_tables_per_module(TABLES_EACH)
        .max_tables_per_component(TABLES_EACH)
        .max_core_instances_per_component(INSTANCES_EACH)
        .table_elements(TABLE_ELEMENTS)
        .max_memory_size(usize::try_from(sizes.max_memory).unwrap_or(usize::MAX))
        .async_stack_keep_resident(STACK_KEPT);
    let mut config = on_demand();
    config.allocation_strategy(InstanceAllocationStrategy::Pooling(pool));
    config
}

/// The configuration with everything reserved when it is needed, for hosts where the address
/// space is limited.
pub(crate) fn on_demand() -> Config {
    let mut config = Config::new();
    config
        .epoch_interruption(true)
        .max_wasm_stack(WASM_STACK)
        .async_stack_size(FIBER_STACK)
        // No guest finds another one's stack, and the memory of a deep one is given back.
        .async_stack_zeroing(true)
        .cranelift_opt_level(OptLevel::Speed)
        .wasm_backtrace_max_frames(std::num::NonZeroUsize::new(BACKTRACE_FRAMES))
        .wasm_backtrace_details(WasmBacktraceDetails::Disable)
        // Nothing here is asked for by name in a debugger or a profiler.
        .native_unwind_info(cfg!(windows));
    config
}
