//! A Podman for one scenario.

use std::path::Path;

use prx_runtime_core::config::Config;

use crate::images::BUSYBOX;
use crate::podman::{Podman, is_installed};

impl Podman {
    /// One with the common image. `None`, with the reason printed, where there is none.
    pub(crate) fn for_test(hidden: Option<&Path>) -> Option<Self> {
        let reason = if !is_installed() {
            "there is no podman here"
        } else if !rustix::process::geteuid().is_root() {
            "a podman of our own needs root"
        } else {
            let podman = Self::start(hidden).unwrap();
            podman.make(&BUSYBOX).unwrap();
            return Some(podman);
        };
        prx_fixtures::skip("podman", reason);
        None
    }

    pub(crate) fn config(&self) -> Config {
        let mut config = Config::default();
        config.runtime.docker.image = BUSYBOX.name.to_owned();
        config.runtime.docker.socket = Some(self.address());
        config
    }
}
