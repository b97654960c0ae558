//! From a plan to a running container.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::ContainerCreateBody;
use prx_runtime_core::backend::{Backend, Details, Running};
use prx_runtime_core::config::{Config, DockerConfig, DockerNetwork};
use prx_runtime_core::{
    Capabilities, EnvironmentRules, Error, ErrorKind, Exposure, Invocation, Isolation,
    IsolationLevel, Plan, Probe, Result, StdinSource, Stdio,
};

use crate::body::{Blueprint, Filter, container_name};
use crate::container::Container;
use crate::engine::{Answer, Budgets, Client, Engine};
use crate::facts::Facts;
use crate::image::{Image, Images};
use crate::init::{Init, is_gvisor};
use crate::look::Look;
use crate::pump::pump;
use crate::reaper::Reaper;
use crate::reference::Reference;
use crate::running::{Command, DockerRunning};
use crate::seccomp::ProfileFile;
use crate::socket::{Candidates, Endpoint};
use crate::sweep::{PruneReport, Scope, sweep};
use crate::transport::Streams;
use crate::verify::{Verdict, Verifier};
use crate::workspace::{Policy, Workspace};
use crate::{error, probe, seccomp};

/// How long the first start may wait for the sweep of what dead hosts left.
const SWEEP: Duration = Duration::from_secs(5);
/// How long the end of an adapter waits for containers that are still to be removed.
const LAST_REMOVALS: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(crate) struct DockerBackend {
    config: Arc<DockerConfig>,
    environment: EnvironmentRules,
    engine: Engine,
    policy: Policy,
    image: Reference,
    tool_images: BTreeMap<String, Reference>,
    images: Images,
    verifier: Verifier,
    reaper: Reaper,
    /// What was learnt of each engine that was used.
    facts: Mutex<HashMap<Endpoint, Arc<Facts>>>,
    swept: AtomicBool,
    without_set_id: String,
}

impl DockerBackend {
    pub(crate) fn new(config: &Config, budgets: Budgets) -> Result<Self> {
        let docker = &config.runtime.docker;
        if docker.pool > 0 {
            return Err(Error::new(
                ErrorKind::InvalidConfig,
                format!(
                    "runtime.docker.pool = {}: this build starts no containers in advance",
                    docker.pool
                ),
            )
            .with_hint("set it to 0"));
        }
        let candidates = Candidates::new(docker.socket.as_deref())?;
        let tool_images = docker.tool_images.iter().map(|(tool, image)| {
            let key = format!("runtime.docker.tool_images.{tool}");
            Ok((tool.clone(), Reference::parse(image, &key)?))
        });
        Ok(Self {
            environment: EnvironmentRules::new(&config.runtime.env_whitelist, &docker.env)?
                .without_host_paths(),
            policy: Policy::new(docker, &candidates)?,
            image: Reference::parse(&docker.image, "runtime.docker.image")?,
            tool_images: tool_images.collect::<Result<_>>()?,
            images: Images::new(docker.auto_pull, docker.pull_timeout()),
            verifier: Verifier::default(),
            reaper: Reaper::default(),
            facts: Mutex::default(),
            swept: AtomicBool::new(false),
            without_set_id: seccomp::without_set_id(),
            engine: Engine {
                candidates,
                budgets,
            },
            config: Arc::new(docker.clone()),
        })
    }

    /// The engine is up, enforces what is configured, and has the image or gets it.
    pub(crate) async fn validate(&self) -> Result<()> {
        let client = self.engine.connect().await?;
        self.facts(&client).await?.enforce(&self.config)?;
        self.images.get(&client, &self.image).await?;
        Ok(())
    }

    pub(crate) async fn image_obtainable(&self) -> Result<()> {
        let client = self.engine.connect().await?;
        self.images.is_obtainable(&client, &self.image).await
    }

    pub(crate) async fn sweep(&self, scope: Scope) -> Result<PruneReport> {
        sweep(&self.engine.connect().await?, scope).await
    }

    async fn facts(&self, client: &Client) -> Result<Arc<Facts>> {
        let known = || self.facts.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known().get(client.endpoint()).cloned();
        match found {
            Some(facts) => Ok(facts),
            None => {
                let facts = Arc::new(Facts::ask(client).await?);
                known().insert(client.endpoint().clone(), Arc::clone(&facts));
                Ok(facts)
            }
        }
    }

    /// Once, before the first container: what dead hosts left.
    async fn sweep_once(&self, client: &Client) {
        if self.swept.swap(true, Ordering::Relaxed) {
            return;
        }
        match tokio::time::timeout(SWEEP, sweep(client, Scope::Leftovers)).await {
            Ok(Ok(report)) if report.removed.is_empty() => {}
            Ok(Ok(report)) => {
                let removed = report.removed.len();
                tracing::warn!(removed, "removed containers that a dead host had left");
            }
            Ok(Err(error)) => tracing::warn!(%error, "containers of dead hosts may be left"),
            Err(_) => tracing::warn!("the sweep of containers of dead hosts was too slow"),
        }
    }

    /// The image for a tool, else for a program, else the common one.
    fn reference(&self, plan: &Plan) -> &Reference {
        let program = match &plan.invocation {
            Invocation::Program { program, .. } => Path::new(program).file_name(),
            Invocation::Shell { .. } => None,
        };
        let program = program.and_then(|program| program.to_str());
        plan.tool
            .as_deref()
            .into_iter()
            .chain(program)
            .find_map(|name| self.tool_images.get(name))
            .unwrap_or(&self.image)
    }

    /// What is mounted: the working directory, if anything is.
    fn workspace(&self, plan: &Plan) -> Result<Option<Workspace>> {
        if self.config.mount_workspace {
            return self.policy.admit(&plan.working_dir).map(Some);
        }
        if plan.working_dir_requested {
            return Err(Error::new(
                ErrorKind::WorkingDirectory,
                format!(
                    "the working directory `{}` is not in the container: runtime.docker.mount_workspace is off",
                    plan.working_dir.display()
                ),
            )
            .with_hint("turn it on, or name no working directory"));
        }
        Ok(None)
    }

    fn user(&self, workspace: Option<&Workspace>) -> String {
        if self.config.user != "auto" {
            return self.config.user.clone();
        }
        let (user, group) = match workspace {
            Some(workspace) => workspace.owner(),
            None => (
                rustix::process::geteuid().as_raw(),
                rustix::process::getegid().as_raw(),
            ),
        };
        format!("{user}:{group}")
    }

    /// A filter of our own where the engine's lets root of the container make setuid files.
    fn filter(&self, user: &str, init: Init) -> Option<Filter<'_>> {
        if !is_root(user) {
            return None;
        }
        match init {
            Init::Tini => Some(Filter::Text(&self.without_set_id)),
            Init::Catatonit => ProfileFile::new(&self.without_set_id)
                .map_err(|error| tracing::warn!(%error, "no file for the filter of system calls"))
                .ok()
                .map(Filter::File),
        }
    }

    /// Creates the container, with the filter where the engine takes it.
    async fn create(
        &self,
        client: &Client,
        blueprint: Blueprint<'_>,
        filter: &mut Option<Filter<'_>>,
    ) -> Result<Answer<(Container, Vec<String>)>> {
        let name = || container_name(blueprint.plan.id);
        let body = blueprint.body(filter.as_ref())?;
        let created = Container::create(client, &self.reaper, name(), body).await;
        match (&created, &filter) {
            // An engine that does not see our files. What then is open, the output says.
            (Err(failure), Some(Filter::File(_))) if error::is_unread_profile(failure) => {
                *filter = None;
                let body = blueprint.body(None)?;
                Ok(Container::create(client, &self.reaper, name(), body).await)
            }
            _ => Ok(created),
        }
    }

    fn isolation(&self, facts: &Facts, verdict: Verdict, user: &str, filtered: bool) -> Isolation {
        let config = &*self.config;
        let mut isolation = Isolation::new(IsolationLevel::Container)
            .applied("container")
            .applied(format!("network {}", config.network))
            .applied("read-only root file system")
            .applied("no capabilities")
            .applied("no new privileges")
            .applied(format!("memory limit {}", config.memory_limit))
            .applied(format!("cpu limit {}", config.cpu_limit))
            .applied(format!("pids limit {}", config.pids_limit));
        if let Some(runtime) = &config.oci_runtime {
            isolation = isolation.applied(format!("oci runtime {runtime}"));
        }
        isolation = if facts.seccomp {
            isolation.applied("seccomp")
        } else {
            isolation.open(Exposure::SystemCalls)
        };
        if config.network != DockerNetwork::None {
            isolation = isolation.open(Exposure::Network);
        }
        if config.network == DockerNetwork::Host {
            // Sockets in the abstract namespace belong to the network.
            isolation = isolation.open(Exposure::UnixSockets);
        }
        let filtered = filtered && !is_gvisor(config.oci_runtime.as_deref());
        if is_root(user) && !filtered {
            isolation = isolation
                .not_enforced("root in the container may make setuid files in the workspace");
        }
        if verdict == Verdict::Unknown {
            isolation = isolation.not_enforced(
                "whether the workspace is mounted where it should be could not be checked",
            );
        }
        isolation
    }

    /// Creates, attaches and starts. What was made is gone when it fails.
    async fn launch(&self, plan: Plan, stdio: Stdio) -> Result<DockerRunning> {
        let workspace = self.workspace(&plan)?;
        let client = self.engine.connect().await?;
        let facts = self.facts(&client).await?;
        facts.enforce(&self.config)?;
        self.reaper.retry();
        self.sweep_once(&client).await;
        let image = self.images.get(&client, self.reference(&plan)).await?;

        let stdin = !matches!(stdio.stdin, StdinSource::Empty);
        let user = self.user(workspace.as_ref());
        let blueprint = Blueprint {
            config: &self.config,
            plan: &plan,
            image: &image,
            workspace: workspace.as_ref(),
            user: &user,
            init: facts.init,
            stdin,
        };
        let look = Look {
            client: &client,
            reaper: &self.reaper,
            config: &self.config,
            image: &image,
            init: facts.init,
        };
        let mut filter = self.filter(&user, facts.init);
        // The check needs no longer than the creation beside it.
        let (created, verdict) = tokio::join!(
            self.create(&client, blueprint, &mut filter),
            self.verifier.verify(look, workspace.as_ref()),
        );
        let (mut container, warnings) = match (created?, &verdict) {
            (Ok(created), _) => created,
            // It says more than the engine's own words.
            (Err(_), Err(_)) => return Err(verdict.err().unwrap_or_else(unreachable_error)),
            (Err(failure), Ok(_)) => {
                return Err(error::create(failure, client.endpoint(), &image.name));
            }
        };
        let command = Command {
            program: match plan.invocation {
                Invocation::Program { program, .. } => program,
                Invocation::Shell { .. } => self.config.shell.clone(),
            },
            directory: self.config.workspace_mount_path.clone(),
            source: workspace
                .as_ref()
                .map(|workspace| workspace.source().to_owned()),
            image,
            config: Arc::clone(&self.config),
            init: facts.init,
        };
        let started = async {
            let verdict = verdict?;
            accept(&warnings)?;
            let pumps = self
                .start(&container, stdio, stdin, workspace.as_ref(), &command)
                .await?;
            Ok((verdict, pumps))
        };
        match started.await {
            Ok((verdict, pumps)) => {
                if !self.config.auto_remove {
                    container.keep();
                }
                let isolation = self.isolation(&facts, verdict, &user, filter.is_some());
                let isolation = Arc::new(isolation);
                Ok(DockerRunning::new(container, pumps, command, isolation))
            }
            Err(error) => {
                container.remove().await;
                Err(error)
            }
        }
    }

    async fn start(
        &self,
        container: &Container,
        stdio: Stdio,
        stdin: bool,
        workspace: Option<&Workspace>,
        command: &Command,
    ) -> Result<(crate::pump::Input, crate::pump::Output)> {
        let client = container.client();
        let endpoint = client.endpoint();
        let unchanged = || workspace.map_or(Ok(()), Workspace::unchanged);
        unchanged()?;
        // Before the start, or the first output of a short command would be lost.
        let attach = async |streams| {
            let attached = client.attach(container.id(), streams).await;
            attached.map_err(|failure| failure.while_trying_to("attach to the container", endpoint))
        };
        let attached = match (command.init, stdin) {
            (_, false) => (attach(Streams::Output).await?, None),
            (Init::Tini, true) => (attach(Streams::Both).await?, None),
            // Once nobody reads stdin any more, Podman lets go of the whole connection.
            (Init::Catatonit, true) => (
                attach(Streams::Output).await?,
                Some(attach(Streams::Input).await?),
            ),
        };
        let pumps = pump(attached, stdio.stdin, stdio.stdout, stdio.stderr);
        client.start(container.id()).await.map_err(|failure| {
            error::start(failure, endpoint, &command.program, &command.image.path)
        })?;
        // The engine resolved the path between the two looks.
        unchanged()?;
        Ok(pumps)
    }
}

/// Whether a user of a container is root there.
fn is_root(user: &str) -> bool {
    let name = user.split(':').next().unwrap_or(user);
    name == "root" || name.parse() == Ok(0_u32)
}

fn unreachable_error() -> Error {
    Error::new(ErrorKind::Engine, "the container could not be created")
}

/// The request that creates a container, as JSON without the values of variables.
fn describe_body(mut body: ContainerCreateBody) -> String {
    for variable in body.env.iter_mut().flatten() {
        if let Some((name, _)) = variable.split_once('=') {
            *variable = format!("{name}=<hidden>");
        }
    }
    serde_json::to_string(&body).unwrap_or_else(|error| error.to_string())
}

/// An engine that drops a limit says so, and goes on.
fn accept(warnings: &[String]) -> Result<()> {
    let dropped = |warning: &&String| {
        ["discarded", "not support", "ignored"]
            .iter()
            .any(|word| warning.contains(word))
    };
    match warnings.iter().find(dropped) {
        Some(warning) => Err(Error::new(
            ErrorKind::Refused,
            format!(
                "the engine does not enforce what is configured: {}",
                error::one_line(warning)
            ),
        )
        .with_hint("`docker info` lists what the kernel of the engine's machine lacks")),
        None => Ok(()),
    }
}

#[async_trait]
impl Backend for DockerBackend {
    fn name(&self) -> &str {
        "docker"
    }

    fn capabilities(&self) -> Capabilities {
        let mut capabilities = Capabilities::all();
        capabilities.host_programs = false;
        // The kernel ends them along with PID 1.
        capabilities.counts_leftovers = false;
        // The init reports death by signal n as code 128 + n.
        capabilities.exact_exit = false;
        capabilities
    }

    fn environment(&self) -> &EnvironmentRules {
        &self.environment
    }

    /// Asks no engine: image and init are taken to be what is configured and what Docker has.
    fn describe(&self, plan: &Plan) -> Result<Details> {
        let workspace = self.workspace(plan)?;
        let image = Image::unseen(self.reference(plan));
        let user = self.user(workspace.as_ref());
        let body = Blueprint {
            config: &self.config,
            plan,
            image: &image,
            workspace: workspace.as_ref(),
            user: &user,
            init: Init::Tini,
            stdin: false,
        }
        .body(self.filter(&user, Init::Tini).as_ref())?;
        let argv = body.entrypoint.clone().unwrap_or_default();
        let facts = Facts::expected();
        Ok(Details {
            argv,
            isolation: Arc::new(self.isolation(&facts, Verdict::Verified, &user, true)),
            more: BTreeMap::from([
                ("image", image.name.clone()),
                ("user", user),
                ("container", describe_body(body)),
            ]),
        })
    }

    async fn probe(&self) -> Probe {
        probe::probe(&self.engine).await
    }

    async fn start(&self, plan: Plan, stdio: Stdio) -> Result<Box<dyn Running>> {
        Ok(Box::new(self.launch(plan, stdio).await?))
    }
}

impl Drop for DockerBackend {
    /// The process may end right after its adapter: containers of dropped executions go first.
    fn drop(&mut self) {
        self.reaper.wait(LAST_REMOVALS);
    }
}
