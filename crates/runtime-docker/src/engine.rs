//! The requests that are made of an engine: all of them are here.

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};
use bollard::Docker;
use bollard::auth::DockerCredentials;
use bollard::errors::Error as EngineError;
use bollard::models::{
    ContainerCreateBody, ContainerState, ContainerSummary, ContainerWaitResponse, FilesystemChange,
    ImageInspect, SystemInfo,
};
use bollard::query_parameters::{
    CreateContainerOptions, KillContainerOptions, ListContainersOptions, RemoveContainerOptions,
};
use http_body_util::BodyExt;
use hyper::header::{HeaderMap, HeaderValue};
use prx_runtime_core::{Error, ErrorKind, Result};
use serde::Deserialize;
use tokio::time::timeout;

use crate::error::Failure;
use crate::file::File;
use crate::listener::Listener;
use crate::progress::Progress;
use crate::socket::{Candidates, Endpoint};
use crate::transport::{ANSWER_LIMIT, Attached, Connector, HEAD_LIMIT, Streams};

/// How long an engine may take over a request.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Budgets {
    /// To accept a connection.
    pub(crate) connect: Duration,
    /// To answer a question.
    pub(crate) answer: Duration,
    /// To create, start or remove a container, with many others at the same time.
    pub(crate) work: Duration,
}

impl Default for Budgets {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(1),
            answer: Duration::from_secs(30),
            work: Duration::from_secs(120),
        }
    }
}

/// What an engine may answer to a wait, in bytes.
const WAIT_LIMIT: u64 = 64 << 10;
/// What an engine may report of one pull, in bytes.
const PULL_LIMIT: u64 = 64 << 20;

/// Where Podman has what Docker has not, as its oldest version with all that we need spells it.
const LIBPOD: &str = "/v4.0.0/libpod";
/// What Podman may say about a container that it cannot prepare, in bytes.
const ANSWER_TO_INITIALIZE: u64 = 64 << 10;

/// The client's own clock, which we do not use: each request has its budget here. In seconds.
const NO_TIMEOUT: u64 = 1 << 31;

/// Whom to ask: the first address that accepts a connection.
#[derive(Debug, Clone)]
pub(crate) struct Engine {
    pub(crate) candidates: Candidates,
    pub(crate) budgets: Budgets,
}

impl Engine {
    /// A client of the first engine that accepts a connection.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unavailable`], with every address that was tried and what came of it.
    pub(crate) async fn connect(&self) -> Result<Client> {
        let mut tried = Vec::new();
        let mut denied = false;
        for endpoint in &self.candidates.endpoints {
            let connector = Connector::new(endpoint.clone());
            match timeout(self.budgets.connect, connector.connect(0)).await {
                Ok(Ok(_)) => return Client::new(connector, self.budgets),
                Ok(Err(error)) => {
                    denied |= error.kind() == std::io::ErrorKind::PermissionDenied;
                    tried.push(format!("{endpoint}: {error}"));
                }
                Err(_) => tried.push(format!(
                    "{endpoint}: no connection within {:?}",
                    self.budgets.connect
                )),
            }
        }
        let source = self.candidates.source;
        let hint = if denied {
            "the user needs the right to use the socket: add them to the group that owns it"
                .to_owned()
        } else {
            format!(
                "start the engine, or name its socket (tried {source}): runtime.docker.socket or DOCKER_HOST"
            )
        };
        Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "no container engine accepts a connection; tried {}",
                tried.join("; ")
            ),
        )
        .with_hint(hint))
    }
}

/// What an engine says of itself.
#[derive(Debug, Clone, Default)]
pub(crate) struct Info {
    pub(crate) system: SystemInfo,
    pub(crate) podman: PodmanInfo,
}

/// What Podman alone says.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct PodmanInfo {
    pub(crate) rootless: bool,
}

/// One engine, by its address. Cheap to clone; holds no connection.
#[derive(Debug, Clone)]
pub(crate) struct Client {
    docker: Docker,
    connector: Connector,
    budgets: Budgets,
}

/// An answer, or why there is none.
pub(crate) type Answer<T> = std::result::Result<T, Failure>;

impl Client {
    fn new(connector: Connector, budgets: Budgets) -> Result<Self> {
        // The version is not sent: requests go without one, which is the engine's own.
        let docker = Docker::connect_with_custom_transport(
            connector.clone().into_transport(),
            Some("http://docker"),
            NO_TIMEOUT,
            bollard::API_DEFAULT_VERSION,
        )
        .map_err(|error| {
            Error::new(ErrorKind::Engine, "the client of the engine cannot be made")
                .with_source(error)
        })?;
        Ok(Self {
            docker,
            connector,
            budgets,
        })
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        self.connector.endpoint()
    }

    /// Who listens at its address, where that is a socket of this machine.
    pub(crate) async fn listener(&self) -> Option<Listener> {
        timeout(self.budgets.connect, self.connector.listener())
            .await
            .ok()
            .flatten()
    }

    async fn answer<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, EngineError>>,
    ) -> Answer<T> {
        within(self.budgets.answer, request).await
    }

    async fn work<T>(
        &self,
        request: impl Future<Output = std::result::Result<T, EngineError>>,
    ) -> Answer<T> {
        within(self.budgets.work, request).await
    }

    /// What the engine says of itself when it is only asked whether it is there: the one question
    /// that every engine answers at once. (Asked for its version, Podman asks the package manager
    /// about each of its parts.)
    pub(crate) async fn ping(&self) -> Answer<HeaderMap> {
        self.answer(self.connector.get("/_ping", HEAD_LIMIT))
            .await
            .map(|response| response.headers().clone())
    }

    pub(crate) async fn info(&self) -> Answer<Info> {
        self.answer(async {
            let response = self.connector.get("/info", ANSWER_LIMIT).await?;
            let text = response.into_body().collect().await?.to_bytes();
            Ok(Info {
                system: serde_json::from_slice(&text)?,
                podman: serde_json::from_slice(&text)?,
            })
        })
        .await
    }

    pub(crate) async fn image(&self, reference: &str) -> Answer<ImageInspect> {
        self.answer(self.docker.inspect_image(reference)).await
    }

    /// Whether the registry of `reference` has it, as the engine sees it.
    pub(crate) async fn image_in_registry(
        &self,
        reference: &str,
        credentials: Option<DockerCredentials>,
    ) -> Answer<()> {
        self.answer(self.docker.inspect_registry_image(reference, credentials))
            .await
            .map(drop)
    }

    /// Pulls an image; the progress ends when it is there.
    pub(crate) async fn pull(
        &self,
        repository: &str,
        version: &str,
        credentials: Option<&DockerCredentials>,
    ) -> Answer<Progress> {
        let auth = credentials.map(registry_auth).transpose()?;
        // Both were checked: nothing in them needs to be escaped.
        let target = format!("/images/create?fromImage={repository}&tag={version}");
        Ok(Progress::new(
            self.connector.post(&target, auth, PULL_LIMIT).await?,
        ))
    }

    /// Creates a container; its id and the engine's warnings.
    pub(crate) async fn create(
        &self,
        name: &str,
        body: ContainerCreateBody,
    ) -> Answer<(String, Vec<String>)> {
        let options = CreateContainerOptions {
            name: Some(name.to_owned()),
            ..Default::default()
        };
        let created = self
            .work(self.docker.create_container(Some(options), body))
            .await?;
        Ok((created.id, created.warnings))
    }

    /// Has Podman do all that it does before a start, without the start: mounts, the working
    /// directory, and the look for the program.
    pub(crate) async fn initialize(&self, container: &str) -> Answer<()> {
        let target = format!("{LIBPOD}/containers/{container}/init");
        self.work(self.connector.post(&target, None, ANSWER_TO_INITIALIZE))
            .await
            .map(drop)
    }

    pub(crate) async fn attach(&self, container: &str, streams: Streams) -> Answer<Attached> {
        self.answer(self.connector.attach(container, streams)).await
    }

    pub(crate) async fn start(&self, container: &str) -> Answer<()> {
        self.work(self.docker.start_container(container, None))
            .await
    }

    /// The exit code of a container, once it is not running any more. Waits as long as that takes.
    pub(crate) fn wait(&self, container: &str) -> impl Future<Output = Answer<i64>> + Send + use<> {
        let connector = self.connector.clone();
        let target = format!("/containers/{container}/wait?condition=not-running");
        async move {
            let body = connector.post(&target, None, WAIT_LIMIT).await?;
            let answer = body.collect().await.map_err(EngineError::from)?.to_bytes();
            let answer: ContainerWaitResponse =
                serde_json::from_slice(&answer).map_err(EngineError::from)?;
            match answer.error.and_then(|error| error.message) {
                Some(message) if !message.is_empty() => {
                    Err(EngineError::DockerStreamError { error: message }.into())
                }
                _ => Ok(answer.status_code),
            }
        }
    }

    pub(crate) async fn kill(&self, container: &str, signal: &str) -> Answer<()> {
        let options = KillContainerOptions {
            signal: signal.to_owned(),
        };
        self.work(self.docker.kill_container(container, Some(options)))
            .await
    }

    pub(crate) async fn state(&self, container: &str) -> Answer<ContainerState> {
        let inspected = self
            .answer(self.docker.inspect_container(container, None))
            .await?;
        Ok(inspected.state.unwrap_or_default())
    }

    /// What lies at a path of a container, which need not run: links on the way there are followed,
    /// one at its end is not. `None` where nothing is, and where there is no such container.
    pub(crate) async fn file(&self, container: &str, path: &str) -> Answer<Option<File>> {
        let target = format!("/containers/{container}/archive?path={}", escaped(path));
        match self.answer(self.connector.head(&target)).await {
            Ok(response) => {
                let told = response.headers().get("x-docker-container-path-stat");
                let told = told.and_then(|told| STANDARD.decode(told).ok());
                let file = serde_json::from_slice(&told.unwrap_or_default());
                Ok(Some(file.map_err(EngineError::from)?))
            }
            Err(failure) if failure.is_not_found() => Ok(None),
            Err(failure) => Err(failure),
        }
    }

    /// What a container's own layer has that its image has not.
    pub(crate) async fn changes(&self, container: &str) -> Answer<Vec<FilesystemChange>> {
        let changes = self.work(self.docker.container_changes(container)).await?;
        Ok(changes.unwrap_or_default())
    }

    /// Ends and removes a container with its anonymous volumes. One that is gone is no failure.
    pub(crate) async fn remove(&self, container: &str) -> Answer<Removal> {
        let options = RemoveContainerOptions {
            force: true,
            v: true,
            ..Default::default()
        };
        match self
            .work(self.docker.remove_container(container, Some(options)))
            .await
        {
            Ok(()) => Ok(Removal::Removed),
            Err(failure) if failure.is_not_found() => Ok(Removal::WasNotThere),
            // Somebody else removes it at this moment.
            Err(failure) if matches!(failure.refusal(), Some((409, _))) => Ok(Removal::Underway),
            Err(failure) => Err(failure),
        }
    }

    /// All containers with `label`, running or not.
    pub(crate) async fn list(&self, label: &str) -> Answer<Vec<ContainerSummary>> {
        let options = ListContainersOptions {
            all: true,
            filters: Some(HashMap::from([(
                "label".to_owned(),
                vec![label.to_owned()],
            )])),
            ..Default::default()
        };
        self.answer(self.docker.list_containers(Some(options)))
            .await
    }
}

/// A text as it stands in a query.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte));
            }
            byte => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

/// Credentials as the engine reads them: JSON in the URL-safe alphabet of base64.
fn registry_auth(credentials: &DockerCredentials) -> Result<HeaderValue, EngineError> {
    let text = URL_SAFE.encode(serde_json::to_string(credentials)?);
    let mut value = HeaderValue::from_str(&text).map_err(hyper::http::Error::from)?;
    value.set_sensitive(true);
    Ok(value)
}

/// What came of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    Removed,
    WasNotThere,
    Underway,
}

async fn within<T>(
    budget: Duration,
    request: impl Future<Output = std::result::Result<T, EngineError>>,
) -> Answer<T> {
    match timeout(budget, request).await {
        Ok(answer) => answer.map_err(Failure::from),
        Err(_) => Err(Failure::Silent(budget)),
    }
}
