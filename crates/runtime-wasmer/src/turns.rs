//! What makes guest code ask, every so often, whether it is to end.
//!
//! Each loop and each function takes one from a counter. When that is used up, the guest asks for
//! no more memory than it has, which calls the host ([`MemoryLimiter`](crate::limiter)). The answer
//! is yes, unless the guest is to end: then it is no, and the guest traps.

use wasmer::sys::wasmparser::{BlockType, Operator};
use wasmer::sys::{FunctionMiddleware, MiddlewareError, MiddlewareReaderState, ModuleMiddleware};
use wasmer::{GlobalInit, GlobalType, Mutability, Type};
use wasmer::{LocalFunctionIndex, ModuleInfo};

/// How many turns a guest takes before it asks: well below a millisecond.
const TURNS: i32 = 1 << 16;

/// The change to one module.
#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// The global that counts.
    counter: std::sync::OnceLock<u32>,
}

impl ModuleMiddleware for Turns {
    fn generate_function_middleware<'a>(
        &self,
        _function: LocalFunctionIndex,
    ) -> Box<dyn FunctionMiddleware<'a> + 'a> {
        Box::new(Function {
            counter: self.counter.get().copied(),
            entered: false,
        })
    }

    fn transform_module_info(&self, module: &mut ModuleInfo) -> Result<(), MiddlewareError> {
        if module.memories.is_empty() {
            return Err(MiddlewareError::new(
                "turns",
                "a module without a memory is not run",
            ));
        }
        let counter = module
            .globals
            .push(GlobalType::new(Type::I32, Mutability::Var));
        module.global_initializers.push(GlobalInit::I32Const(TURNS));
        self.counter
            .set(counter.as_u32())
            .map_err(|_| MiddlewareError::new("turns", "two modules were changed as one"))
    }
}

#[derive(Debug)]
struct Function {
    counter: Option<u32>,
    entered: bool,
}

impl<'a> FunctionMiddleware<'a> for Function {
    fn feed(
        &mut self,
        operator: Operator<'a>,
        state: &mut MiddlewareReaderState<'a>,
    ) -> Result<(), MiddlewareError> {
        let counter = self
            .counter
            .ok_or_else(|| MiddlewareError::new("turns", "the module has no counter"))?;
        if !self.entered {
            self.entered = true;
            state.extend(&turn(counter));
        }
        let is_loop = matches!(operator, Operator::Loop { .. });
        state.push_operator(operator);
        if is_loop {
            state.extend(&turn(counter));
        }
        Ok(())
    }
}

/// Takes one turn.
fn turn(counter: u32) -> [Operator<'static>; 17] {
    let global_index = counter;
    [
        Operator::GlobalGet { global_index },
        Operator::I32Const { value: 1 },
        Operator::I32Sub,
        Operator::GlobalSet { global_index },
        Operator::GlobalGet { global_index },
        Operator::I32Eqz,
        Operator::If {
            blockty: BlockType::Empty,
        },
        Operator::I32Const { value: TURNS },
        Operator::GlobalSet { global_index },
        Operator::I32Const { value: 0 },
        Operator::MemoryGrow { mem: 0 },
        Operator::I32Const { value: -1 },
        Operator::I32Eq,
        Operator::If {
            blockty: BlockType::Empty,
        },
        Operator::Unreachable,
        Operator::End,
        Operator::End,
    ]
}
