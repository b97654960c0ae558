//! Tools by name: what `[tools.custom]` registers, and the skills in the module directory.

mod call;
mod discover;
mod registry;
mod state;
mod tool;

pub use call::ToolCall;
pub use registry::ToolRegistry;
pub use tool::{Tool, ToolOrigin};
