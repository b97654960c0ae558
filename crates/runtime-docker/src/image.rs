//! Images: what one says about its containers, and how a missing one is got.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bollard::errors::Error as EngineError;
use bollard::models::ImageInspect;
use prx_runtime_core::{Error, ErrorKind, Result, is_loader_variable};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use crate::credentials;
use crate::engine::Client;
use crate::error::{Failure, one_line};
use crate::paths::plain;
use crate::reference::Reference;

/// The PATH that engines give to an image that sets none.
const DEFAULT_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// An image that the engine has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Image {
    /// The engine's id of its content: what was looked at is what runs.
    pub(crate) id: String,
    /// The name that was asked for.
    pub(crate) name: String,
    /// Where its programs are searched.
    pub(crate) path: String,
    /// Variables it sets that would make a loader or an interpreter run code.
    pub(crate) loader_variables: Vec<String>,
    /// Where it would have anonymous volumes.
    pub(crate) volumes: Vec<String>,
}

impl Image {
    /// An image that no engine was asked about.
    pub(crate) fn unseen(reference: &Reference) -> Self {
        Self::from_inspect(reference, ImageInspect::default())
    }

    pub(crate) fn from_inspect(reference: &Reference, inspected: ImageInspect) -> Self {
        let config = inspected.config.unwrap_or_default();
        let variables = config.env.unwrap_or_default();
        let named = |variable: &str| {
            variable
                .split_once('=')
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
        };
        let variables: Vec<_> = variables
            .iter()
            .filter_map(|variable| named(variable))
            .collect();
        let path = variables
            .iter()
            .rfind(|(name, _)| name == "PATH")
            .map(|(_, path)| path.clone());
        Self {
            id: inspected
                .id
                .unwrap_or_else(|| reference.as_str().to_owned()),
            name: reference.as_str().to_owned(),
            path: path
                .filter(|path| !path.is_empty())
                .unwrap_or_else(|| DEFAULT_PATH.to_owned()),
            loader_variables: variables
                .into_iter()
                .map(|(name, _)| name)
                .filter(|name| is_loader_variable(name))
                .collect(),
            volumes: config.volumes.unwrap_or_default(),
        }
    }

    /// The places of its volumes, as the engine reads them: absolute and plain.
    pub(crate) fn volume_places(&self) -> impl Iterator<Item = PathBuf> {
        self.volumes
            .iter()
            .map(|volume| plain(&Path::new("/").join(volume)))
            .filter(|volume| volume != Path::new("/"))
    }

    /// That nothing of it would be mounted below the place of the workspace: the engine makes such
    /// places, as root, in the directory of the host, and hides what lies there from the command.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Image`], with the volume.
    pub(crate) fn leaves_alone(&self, workspace: &str) -> Result<()> {
        let workspace = plain(Path::new(workspace));
        let below = self
            .volume_places()
            .find(|volume| *volume != workspace && volume.starts_with(&workspace));
        let Some(volume) = below else { return Ok(()) };
        Err(Error::new(
            ErrorKind::Image,
            format!(
                "the image `{}` has a volume at `{}`, below the place of the workspace: the engine \
                 would make a directory for it in the workspace, as root",
                self.name,
                volume.display()
            ),
        )
        .with_hint(
            "set runtime.docker.workspace_mount_path to another place, or choose an image without \
             that volume",
        ))
    }
}

/// How images are got.
#[derive(Debug)]
pub(crate) struct Images {
    auto_pull: bool,
    budget: Duration,
    flights: Mutex<HashMap<Reference, Weak<Flight>>>,
}

impl Images {
    pub(crate) fn new(auto_pull: bool, budget: Duration) -> Self {
        Self {
            auto_pull,
            budget,
            flights: Mutex::default(),
        }
    }

    /// The image of that name; pulls it where it is missing and may be pulled.
    ///
    /// Any number of callers that miss the same image share one pull, which ends when the last of
    /// them is gone. It has a budget of its own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Image`] where it cannot be had.
    pub(crate) async fn get(&self, client: &Client, reference: &Reference) -> Result<Image> {
        match client.image(reference.as_str()).await {
            Ok(inspected) => return Ok(Image::from_inspect(reference, inspected)),
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => {
                return Err(failure.while_trying_to("look at the image", client.endpoint()));
            }
        }
        if !self.auto_pull || reference.registry().is_empty() {
            let why = if self.auto_pull {
                "an id cannot be pulled"
            } else {
                "runtime.docker.auto_pull is off"
            };
            return Err(Error::new(
                ErrorKind::Image,
                format!(
                    "the engine does not have the image `{}`, and {why}",
                    reference.as_str()
                ),
            )
            .with_hint(format!("docker pull {}", reference.as_str())));
        }
        self.pulled(client, reference).await?;
        match client.image(reference.as_str()).await {
            Ok(inspected) => Ok(Image::from_inspect(reference, inspected)),
            Err(failure) => {
                Err(failure.while_trying_to("look at the image it pulled", client.endpoint()))
            }
        }
    }

    /// Whether the image is here or its registry has it. Changes nothing.
    pub(crate) async fn is_obtainable(&self, client: &Client, reference: &Reference) -> Result<()> {
        match client.image(reference.as_str()).await {
            Ok(_) => return Ok(()),
            Err(failure) if failure.is_not_found() => {}
            Err(failure) => {
                return Err(failure.while_trying_to("look at the image", client.endpoint()));
            }
        }
        let missing = |why: String| {
            Error::new(
                ErrorKind::Image,
                format!("the image `{}` is not here, and {why}", reference.as_str()),
            )
            .with_hint(format!("docker pull {}", reference.as_str()))
        };
        if !self.auto_pull || reference.registry().is_empty() {
            return Err(missing(
                "runtime.docker.auto_pull does not get it".to_owned(),
            ));
        }
        let access = credentials::access(reference.registry())?;
        match client
            .image_in_registry(reference.as_str(), access.credentials)
            .await
        {
            Ok(()) => Ok(()),
            Err(failure) => {
                let why = match failure.refusal() {
                    Some((_, message)) => one_line(message),
                    None => "its registry does not answer".to_owned(),
                };
                Err(missing(format!("the engine cannot pull it: {why}")))
            }
        }
    }

    async fn pulled(&self, client: &Client, reference: &Reference) -> Result<()> {
        let flight = self.join(client, reference);
        let mut outcome = flight.outcome.clone();
        let outcome = outcome
            .wait_for(Option::is_some)
            .await
            .ok()
            .and_then(|outcome| outcome.clone());
        match outcome {
            Some(Ok(())) => Ok(()),
            Some(Err(problem)) => Err(problem.into_error()),
            None => Err(Error::new(
                ErrorKind::Image,
                format!(
                    "the pull of `{}` was given up: its runtime is shutting down",
                    reference.as_str()
                ),
            )),
        }
    }

    fn join(&self, client: &Client, reference: &Reference) -> Arc<Flight> {
        let mut flights = self.flights.lock().unwrap_or_else(PoisonError::into_inner);
        let known = flights.get(reference).and_then(Weak::upgrade);
        if let Some(flight) = known.filter(|flight| flight.outcome.borrow().is_none()) {
            return flight;
        }
        let (done, outcome) = watch::channel(None);
        let (client, pulled, budget) = (client.clone(), reference.clone(), self.budget);
        let task = async move {
            let result = match tokio::time::timeout(budget, pull_missing(&client, &pulled)).await {
                Ok(result) => result,
                Err(_) => Err(Problem {
                    message: format!(
                        "the image `{}` was not pulled within {budget:?}",
                        pulled.as_str()
                    ),
                    hint: Some(
                        "raise runtime.docker.pull_timeout_secs, or pull it beforehand".to_owned(),
                    ),
                }),
            };
            // Nobody is there to hear it where all have gone.
            let _ = done.send(Some(result));
        };
        let flight = Arc::new(Flight {
            outcome,
            task: tokio::spawn(task.in_current_span()),
        });
        flights.retain(|_, flight| flight.strong_count() > 0);
        flights.insert(reference.clone(), Arc::downgrade(&flight));
        flight
    }
}

/// A pull that is under way. Ends when nobody waits for it any more.
#[derive(Debug)]
struct Flight {
    outcome: watch::Receiver<Option<Result<(), Problem>>>,
    task: JoinHandle<()>,
}

impl Drop for Flight {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Why a pull failed, for all who wait for it.
#[derive(Debug, Clone)]
struct Problem {
    message: String,
    hint: Option<String>,
}

impl Problem {
    fn into_error(self) -> Error {
        let error = Error::new(ErrorKind::Image, self.message);
        match self.hint {
            Some(hint) => error.with_hint(hint),
            None => error,
        }
    }
}

/// How often progress is told.
const PROGRESS: Duration = Duration::from_secs(1);

/// Pulls what is still missing: a caller that was told so may be heard only after the pull of the
/// others has ended.
async fn pull_missing(client: &Client, reference: &Reference) -> Result<(), Problem> {
    if client.image(reference.as_str()).await.is_ok() {
        return Ok(());
    }
    pull(client, reference).await
}

async fn pull(client: &Client, reference: &Reference) -> Result<(), Problem> {
    let image = reference.as_str();
    let access = credentials::access(reference.registry()).map_err(|error| Problem {
        message: error.to_string(),
        hint: None,
    })?;
    tracing::info!(target: "prx_runtime::pull", image, "pulling the image");
    let started = Instant::now();
    let mut told = started;
    let mut layers = HashMap::new();
    let helper = access.helper.as_deref();
    let credentials = access.credentials.as_ref();
    let pulled = client.pull(reference.repository(), reference.version(), credentials);
    let mut progress = pulled
        .await
        .map_err(|failure| problem(image, failure, helper))?;
    while let Some(event) = progress
        .next()
        .await
        .map_err(|error| problem(image, error, helper))?
    {
        let detail = event.progress_detail.unwrap_or_default();
        // A hostile engine may name layers without end; a real image has a few dozen.
        if let (Some(layer), Some(current)) = (event.id, detail.current)
            && (layers.len() < 1000 || layers.contains_key(&layer))
        {
            layers.insert(layer, (current, detail.total.unwrap_or(0)));
        }
        if told.elapsed() >= PROGRESS {
            told = Instant::now();
            let sum = |pick: fn(&(i64, i64)) -> i64| {
                layers.values().map(pick).fold(0_i64, i64::saturating_add)
            };
            tracing::info!(
                target: "prx_runtime::pull",
                image,
                current_bytes = sum(|(current, _)| *current),
                total_bytes = sum(|(_, total)| *total),
                "pulling the image"
            );
        }
    }
    tracing::info!(
        target: "prx_runtime::pull",
        image,
        duration_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        "pulled the image"
    );
    Ok(())
}

fn problem(image: &str, failure: impl Into<Failure>, helper: Option<&str>) -> Problem {
    let said = match failure.into() {
        Failure::Engine(
            EngineError::DockerResponseServerError { message: said, .. }
            | EngineError::DockerStreamError { error: said },
        ) => one_line(&said),
        Failure::Engine(error) => {
            return Problem {
                message: format!("the pull of `{image}` broke off: {error}"),
                hint: None,
            };
        }
        Failure::Silent(after) => {
            return Problem {
                message: format!("the pull of `{image}` got no answer within {after:?}"),
                hint: None,
            };
        }
    };
    let denied = ["unauthorized", "denied", "no basic auth", "authentication"]
        .iter()
        .any(|word| said.contains(word));
    let hint = match helper {
        Some(helper) if denied => Some(format!(
            "the Docker configuration keeps the credentials in the helper `{helper}`, which is not run here: `docker pull {image}` beforehand"
        )),
        None if denied => {
            Some("`docker login` to the registry, or check the image's name".to_owned())
        }
        _ => Some("check the image's name, and that the engine reaches the registry".to_owned()),
    };
    Problem {
        message: format!("the image `{image}` cannot be pulled: {said}"),
        hint,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::scripted::{Answer, ScriptedEngine};

    #[tokio::test]
    async fn what_others_pulled_meanwhile_is_not_pulled_again() {
        let looked = Arc::new(AtomicBool::new(false));
        let engine = ScriptedEngine::start(move |request, _| {
            if !request.ends_with("/json") {
                Answer::ok("{}")
            } else if looked.swap(true, Ordering::Relaxed) {
                Answer::ok(r#"{"Id": "sha256:1"}"#)
            } else {
                Answer::refusal(404, "no such image")
            }
        });
        let images = Images::new(true, Duration::from_secs(60));
        let reference = Reference::parse("tool:1", "test").unwrap();
        let image = images.get(&engine.client().await, &reference).await;
        assert_eq!(image.unwrap().id, "sha256:1");
        assert_eq!(engine.count("POST"), 0);
    }

    #[test]
    fn a_volume_below_the_workspace_is_refused() {
        let image = |volumes: &[&str]| Image {
            id: "sha256:1".into(),
            name: "test".into(),
            path: "/bin".into(),
            loader_variables: Vec::new(),
            volumes: volumes.iter().map(|&volume| volume.into()).collect(),
        };
        let volumes = [
            "/data",
            "/workspace",
            "/workspace/",
            "/",
            "/workspaces",
            "/workspace/../x",
        ];
        image(&volumes).leaves_alone("/workspace").unwrap();
        for volume in [
            "/workspace/data",
            "//workspace//a/b/",
            "/x/../workspace/./a",
            "workspace/a",
        ] {
            let error = image(&["/data", volume])
                .leaves_alone("/workspace/")
                .unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Image, "{volume}");
            assert!(
                error.to_string().contains("workspace_mount_path"),
                "{error}"
            );
            image(&[volume]).leaves_alone("/elsewhere").unwrap();
        }
    }
}
