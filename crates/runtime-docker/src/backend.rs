//! From a plan to a running container.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use bollard::models::ContainerCreateBody;
use prx_runtime_core::backend::{Backend, Details, Running};
use prx_runtime_core::config::{Config, DockerConfig};
use prx_runtime_core::{
    Capabilities, EnvironmentRules, Error, ErrorKind, Invocation, Plan, Probe, Result, StdinSource,
    Stdio,
};

use crate::body::{Blueprint, Filter, container_name};
use crate::container::Container;
use crate::engine::{Answer, Budgets, Client, Engine};
use crate::exec_failure::Search;
use crate::facts::Facts;
use crate::held::Held;
use crate::image::{Image, Images};
use crate::init::Init;
use crate::look::Look;
use crate::pump::pump;
use crate::reaper::Reaper;
use crate::reference::Reference;
use crate::running::{Command, DockerRunning};
use crate::seccomp::ProfileFile;
use crate::socket::{Candidates, Endpoint};
use crate::sweep::{FirstSweep, PruneReport, Scope, sweep};
use crate::transport::Streams;
use crate::user::User;
use crate::verify::{Verdict, Verifier};
use crate::workspace::{Policy, Workspace};
use crate::{error, probe, seccomp};

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
    first_sweep: FirstSweep,
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
            first_sweep: FirstSweep::default(),
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
        let image = self.images.get(&client, &self.image).await?;
        if self.config.mount_workspace {
            image.leaves_alone(&self.config.workspace_mount_path)?;
        }
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

    /// A filter of our own where the engine's lets root of the container make setuid files.
    fn filter(&self, user: &User, init: Init) -> Option<Filter<'_>> {
        if !user.is_root() {
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

    /// Creates, attaches and starts. What was made is gone when it fails.
    async fn launch(&self, plan: Plan, stdio: Stdio) -> Result<DockerRunning> {
        let workspace = self.workspace(&plan)?;
        let client = self.engine.connect().await?;
        let facts = self.facts(&client).await?;
        facts.enforce(&self.config)?;
        self.reaper.retry();
        self.first_sweep.pass(&client).await;
        let image = self.images.get(&client, self.reference(&plan)).await?;
        if workspace.is_some() {
            image.leaves_alone(&self.config.workspace_mount_path)?;
        }

        let stdin = !matches!(stdio.stdin, StdinSource::Empty);
        let user = User::choose(&self.config, workspace.as_ref(), facts.users);
        let blueprint = Blueprint {
            config: &self.config,
            plan: &plan,
            image: &image,
            workspace: workspace.as_ref(),
            user: &user.name,
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
        let command = self.command(plan, image, workspace.as_ref(), facts.init);
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
                let held = Held {
                    verdict,
                    user: &user,
                    filtered: filter.is_some(),
                    watched: workspace.as_ref().is_none_or(Workspace::is_watched),
                };
                let isolation = Arc::new(held.isolation(&self.config, &facts));
                Ok(DockerRunning::new(container, pumps, command, isolation))
            }
            Err(error) => {
                container.remove().await;
                Err(error)
            }
        }
    }

    /// What is run, and what of it lies in the workspace before the start.
    fn command(
        &self,
        plan: Plan,
        image: Image,
        workspace: Option<&Workspace>,
        init: Init,
    ) -> Command {
        let program = match plan.invocation {
            Invocation::Program { program, .. } => program,
            Invocation::Shell { .. } => self.config.shell.clone(),
        };
        let path = plan.environment.get("PATH").and_then(OsStr::to_str);
        let search = Search::new(
            &program,
            path.unwrap_or(&image.path),
            &self.config.workspace_mount_path,
            workspace.map(Workspace::source),
        );
        Command {
            program,
            search,
            image,
            config: Arc::clone(&self.config),
            init,
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
            let source = workspace.map(Workspace::source);
            let path = &command.search.path;
            error::start(failure, endpoint, &command.program, path, source)
        })?;
        // The engine resolved the path between the two looks.
        unchanged()?;
        Ok(pumps)
    }
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
        let facts = Facts::expected();
        let user = User::choose(&self.config, workspace.as_ref(), facts.users);
        let held = Held {
            verdict: Verdict::Verified,
            user: &user,
            filtered: true,
            watched: true,
        };
        let body = Blueprint {
            config: &self.config,
            plan,
            image: &image,
            workspace: workspace.as_ref(),
            user: &user.name,
            init: Init::Tini,
            stdin: false,
        }
        .body(self.filter(&user, Init::Tini).as_ref())?;
        let argv = body.entrypoint.clone().unwrap_or_default();
        Ok(Details {
            argv,
            isolation: Arc::new(held.isolation(&self.config, &facts)),
            more: BTreeMap::from([
                ("image", image.name.clone()),
                ("user", user.name),
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
