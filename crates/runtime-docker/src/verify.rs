//! That the engine sees what we see: the caller's own directory, and an image that does not send
//! its mount elsewhere.
//!
//! Both are told from a container that is made and never started. The engine looks at the source of
//! a bind mount, so a file of random name in the workspace is found or not; Podman makes sources
//! that it misses, and is told to execute that file instead, which it refuses in one way where the
//! file is and in another where it is not. And the engine makes the working directory of the
//! container in the image's file system, so the place where that appears tells where the path
//! really leads.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use prx_runtime_core::{Error, ErrorKind, ExecutionId, Result};
use rustix::fs::{AtFlags, Mode, OFlags};
use tokio::sync::OnceCell;

use crate::error::{self, is_foreign_path};
use crate::init::Init;
use crate::look::{Look, NeverStarted};
use crate::workspace::{Identity, Workspace};

/// Where what marks a workspace would be mounted.
const MARK_TARGET: &str = "/.prx-mark";
/// How many answers are remembered.
const REMEMBERED: usize = 1024;

/// What was found out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is as it should be.
    Verified,
    /// It cannot be told: the workspace takes no file of ours, or the engine does not say.
    Unknown,
}

/// What an answer is about: an address, an image, and a directory by path and identity.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Subject {
    endpoint: String,
    image: String,
    workspace: Option<(String, Identity)>,
}

/// Answers, each found out once.
#[derive(Debug, Default)]
pub(crate) struct Verifier {
    answers: Mutex<HashMap<Subject, Arc<OnceCell<Verdict>>>>,
}

impl Verifier {
    /// Finds out, or remembers.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] for an engine that sees another directory, [`ErrorKind::Image`] for
    /// an image that sends the workspace elsewhere.
    pub(crate) async fn verify(
        &self,
        look: Look<'_>,
        workspace: Option<&Workspace>,
    ) -> Result<Verdict> {
        let subject = Subject {
            endpoint: look.client.endpoint().to_string(),
            image: look.image.id.clone(),
            workspace: workspace
                .map(|workspace| (workspace.source().to_owned(), workspace.identity())),
        };
        let answer = {
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            if answers.len() >= REMEMBERED {
                answers.clear();
            }
            Arc::clone(answers.entry(subject).or_default())
        };
        let verdict = answer.get_or_try_init(|| find_out(look, workspace)).await?;
        Ok(*verdict)
    }
}

async fn find_out(look: Look<'_>, workspace: Option<&Workspace>) -> Result<Verdict> {
    let (endpoint, image) = (look.client.endpoint(), look.image);
    let name = format!("prx-mark-{}", ExecutionId::random()?);
    let mark = workspace.map(|workspace| Mark::place(workspace, &name));
    let marked = match mark {
        Some(Err(error)) => {
            tracing::debug!(%error, "the workspace takes no mark");
            return Ok(Verdict::Unknown);
        }
        Some(Ok(mark)) => Some(mark),
        None => None,
    };
    let directory = workspace.map_or("", Workspace::source);
    let file = format!("{directory}/{name}");
    let program = format!("{MARK_TARGET}/{name}");
    let place = look.config.workspace_mount_path.trim_end_matches('/');
    let what = NeverStarted {
        source: workspace.map(|_| match look.init {
            Init::Tini => (file.as_str(), MARK_TARGET),
            Init::Catatonit => (directory, MARK_TARGET),
        }),
        directory: &format!("{place}/{name}"),
        program: &program,
    };
    let made = look.make(name.clone(), what).await?;
    drop(marked);
    let foreign = || {
        Error::new(
            ErrorKind::Refused,
            format!(
                "the engine at {endpoint} sees another file system: what is in the working directory `{directory}` is not there for it"
            ),
        )
        .with_hint(error::FOREIGN_PATH_HINT)
    };
    let mut made = match made {
        Ok(made) => made,
        Err(failure) => {
            let said = failure.refusal().map_or("", |(_, message)| message);
            return Err(if is_foreign_path(said) {
                foreign()
            } else {
                error::create(failure, endpoint, &image.name)
            });
        }
    };
    let changes = look.client.changes(made.container.id()).await;
    made.container.remove().await;
    let changes = changes.map_err(|failure| {
        failure.while_trying_to("compare a container with its image", endpoint)
    })?;
    match look.init {
        Init::Catatonit if workspace.is_some() => match made.finds_program() {
            Some(true) => {}
            Some(false) => return Err(foreign()),
            None => {
                let prepared = made.prepared;
                tracing::debug!(?prepared, "whether the mark is seen cannot be told");
                return Ok(Verdict::Unknown);
            }
        },
        _ => {}
    }
    let suffix = format!("/{name}");
    let mut made = changes
        .iter()
        .filter_map(|change| change.path.strip_suffix(&suffix));
    match made.next() {
        Some(found) if found == place => Ok(Verdict::Verified),
        Some(found) => Err(Error::new(
            ErrorKind::Image,
            format!(
                "in the image `{}` the path `{place}` leads to `{}`: the workspace would be mounted there",
                image.name,
                if found.is_empty() { "/" } else { found },
            ),
        )
        .with_hint("set runtime.docker.workspace_mount_path to a path that is no link in the image")),
        None => Ok(Verdict::Unknown),
    }
}

/// An empty file in a workspace, there for a moment.
struct Mark<'a> {
    workspace: &'a Workspace,
    name: &'a str,
}

impl<'a> Mark<'a> {
    fn place(workspace: &'a Workspace, name: &'a str) -> rustix::io::Result<Self> {
        let flags =
            OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        rustix::fs::openat(workspace.handle(), name, flags, Mode::RUSR)?;
        Ok(Self { workspace, name })
    }
}

impl Drop for Mark<'_> {
    fn drop(&mut self) {
        if let Err(error) =
            rustix::fs::unlinkat(self.workspace.handle(), self.name, AtFlags::empty())
        {
            tracing::warn!(name = self.name, %error, "the mark in the workspace could not be removed");
        }
    }
}
