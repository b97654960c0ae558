//! Containers that are never started: made for what the engine says about them.
//!
//! Docker looks at the source of a mount and makes the working directory when a container is
//! created. Podman does so when it prepares one for its start, and then looks for the program, too.

use std::path::Path;

use bollard::models::{ContainerCreateBody, HostConfig};
use prx_runtime_core::Result;
use prx_runtime_core::config::DockerConfig;

use crate::body::{confined, with_mount};
use crate::container::Container;
use crate::engine::{Answer, Client};
use crate::image::Image;
use crate::init::Init;
use crate::labels::labels;
use crate::reaper::Reaper;

/// Where it is looked, and with what.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look<'a> {
    pub(crate) client: &'a Client,
    pub(crate) reaper: &'a Reaper,
    pub(crate) config: &'a DockerConfig,
    pub(crate) image: &'a Image,
    pub(crate) init: Init,
}

/// What such a container is to look at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NeverStarted<'a> {
    /// What the engine looks for: a path of its own, and where that is mounted.
    pub(crate) source: Option<(&'a str, &'a str)>,
    /// What it makes in the image's file system.
    pub(crate) directory: &'a str,
    /// What it would execute.
    pub(crate) program: &'a str,
}

/// A container that was made for it.
#[derive(Debug)]
pub(crate) struct Made {
    pub(crate) container: Container,
    /// What Podman said when it was told to prepare it. Nothing on Docker.
    pub(crate) prepared: Answer<()>,
}

impl Look<'_> {
    /// Makes one that `what` describes. It is for the caller to remove.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`](prx_runtime_core::ErrorKind::Refused) for a path that cannot be said.
    pub(crate) async fn make(self, name: String, what: NeverStarted<'_>) -> Result<Answer<Made>> {
        let body = self.body(what)?;
        let container = match Container::create(self.client, self.reaper, name, body).await {
            Ok((container, _)) => container,
            Err(failure) => return Ok(Err(failure)),
        };
        let prepared = match self.init {
            Init::Tini => Ok(()),
            Init::Catatonit => self.client.initialize(container.id()).await,
        };
        Ok(Ok(Made {
            container,
            prepared,
        }))
    }

    fn body(&self, what: NeverStarted<'_>) -> Result<ContainerCreateBody> {
        let Self {
            config,
            image,
            init,
            ..
        } = *self;
        let NeverStarted {
            source,
            directory,
            program,
        } = what;
        let host = confined(config, init);
        let host = match source {
            Some(mount) => with_mount(host, init, mount, true)?,
            None => host,
        };
        Ok(ContainerCreateBody {
            image: Some(image.id.clone()),
            // Who may look everywhere.
            user: Some("0:0".to_owned()),
            entrypoint: Some(vec![program.to_owned()]),
            cmd: Some(Vec::new()),
            working_dir: Some(directory.to_owned()),
            labels: Some(labels(None, false)),
            host_config: Some(HostConfig {
                // Or the image's volumes would be made on the engine's disk.
                tmpfs: Some(
                    image
                        .volume_places()
                        .filter(|volume| !Path::new(directory).starts_with(volume))
                        .filter_map(|volume| volume.into_os_string().into_string().ok())
                        .map(|volume| (volume, String::new()))
                        .collect(),
                ),
                network_mode: Some("none".to_owned()),
                ..host
            }),
            ..Default::default()
        })
    }
}

impl Made {
    /// Whether the program is there, as Podman said when it prepared the start. `None` where it
    /// said something else.
    pub(crate) fn finds_program(&self) -> Option<bool> {
        let message = match &self.prepared {
            Ok(()) => return Some(true),
            Err(failure) => failure.refusal()?.1.to_ascii_lowercase(),
        };
        let says = |words: &[&str]| words.iter().any(|words| message.contains(words));
        if says(&["permission denied", "is a directory"]) {
            Some(true)
        } else if says(&["no such file or directory", "not found"]) {
            Some(false)
        } else {
            None
        }
    }
}
