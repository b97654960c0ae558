//! Where there is no confiner: elsewhere than on Linux.

use std::io;
use std::sync::Arc;

use prx_runtime_core::Isolation;
use prx_runtime_core::backend::Exit;

use crate::tree::Leader;

/// What no command comes with.
#[derive(Debug)]
pub(crate) enum Confinement {}

impl Confinement {
    pub(crate) fn isolation(&self) -> Arc<Isolation> {
        match *self {}
    }

    pub(crate) fn is_alone(&self) -> bool {
        match *self {}
    }

    pub(crate) async fn exited(&mut self, _: &Leader) -> io::Result<Exit> {
        match *self {}
    }
}
