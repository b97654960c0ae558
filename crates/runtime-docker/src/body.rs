//! From plan to container: plain data, without asking anybody.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountBindOptions,
    MountBindOptionsPropagationEnum, MountType, ResourcesUlimits,
};
use prx_runtime_core::config::DockerConfig;
use prx_runtime_core::{Environment, Error, ErrorKind, ExecutionId, Invocation, Plan, Result};

use crate::image::Image;
use crate::init::Init;
use crate::labels::labels;
use crate::paths::plain;
use crate::seccomp::ProfileFile;
use crate::workspace::Workspace;

/// The one place besides the workspace where a command can write.
const SCRATCH: &str = "/tmp";

/// What a container is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blueprint<'a> {
    pub(crate) config: &'a DockerConfig,
    pub(crate) plan: &'a Plan,
    pub(crate) image: &'a Image,
    /// What is mounted; `None` where nothing is.
    pub(crate) workspace: Option<&'a Workspace>,
    pub(crate) user: &'a str,
    pub(crate) init: Init,
    /// Whether stdin is anything but at its end.
    pub(crate) stdin: bool,
}

/// A seccomp profile instead of the engine's own.
#[derive(Debug)]
pub(crate) enum Filter<'a> {
    /// As JSON in the request.
    Text(&'a str),
    /// As a file that the engine reads.
    File(ProfileFile),
}

impl Filter<'_> {
    fn option(&self) -> String {
        match self {
            Self::Text(profile) => format!("seccomp={profile}"),
            Self::File(file) => format!("seccomp={}", file.path()),
        }
    }
}

impl Blueprint<'_> {
    /// The request that creates the container.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for a variable that is not UTF-8, which the engine needs.
    pub(crate) fn body(&self, filter: Option<&Filter<'_>>) -> Result<ContainerCreateBody> {
        let config = self.config;
        let kept = !config.auto_remove;
        Ok(ContainerCreateBody {
            image: Some(self.image.id.clone()),
            user: Some(self.user.to_owned()),
            // The image's own entrypoint, command, directory and health check have no say.
            entrypoint: Some(self.command_line()),
            cmd: Some(Vec::new()),
            working_dir: Some(config.workspace_mount_path.clone()),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..Default::default()
            }),
            env: Some(environment(&self.plan.environment, self.image, self.init)?),
            labels: Some(labels(Some(self.plan), kept)),
            tty: Some(false),
            attach_stdin: Some(self.stdin),
            attach_stdout: Some(true),
            attach_stderr: Some(true),
            open_stdin: Some(self.stdin),
            // End of file for us is end of file for the command.
            stdin_once: Some(self.stdin),
            host_config: Some(HostConfig {
                tmpfs: Some(self.tmpfs()),
                init: Some(true),
                runtime: config.oci_runtime.clone(),
                network_mode: Some(config.network.as_str().to_owned()),
                security_opt: Some(security_options(filter)),
                ..self.host()?
            }),
            ..Default::default()
        })
    }

    /// The program with its arguments, or the shell with the line, beneath an init that passes
    /// signals on to the whole process group.
    fn command_line(&self) -> Vec<String> {
        let mut words: Vec<String> = self
            .init
            .prefix(self.config.oci_runtime.as_deref())
            .iter()
            .map(|&word| word.to_owned())
            .collect();
        match &self.plan.invocation {
            Invocation::Program { program, args } => {
                words.push(program.clone());
                words.extend(args.iter().cloned());
            }
            Invocation::Shell { line } => {
                words.extend([self.config.shell.clone(), "-c".to_owned(), line.clone()]);
            }
        }
        words
    }

    /// Its confinement, and the workspace.
    fn host(&self) -> Result<HostConfig> {
        let host = confined(self.config, self.init);
        match self.workspace {
            Some(workspace) => {
                let target = &self.config.workspace_mount_path;
                with_mount(host, self.init, (workspace.source(), target), false)
            }
            None => Ok(host),
        }
    }

    /// Memory where an image would write to the engine's disk: `/tmp`, the places of its volumes,
    /// and the workspace where no directory is mounted there.
    fn tmpfs(&self) -> HashMap<String, String> {
        let options = format!(
            "rw,exec,nosuid,nodev,mode=1777,size={}",
            self.config.tmpfs_size.as_u64()
        );
        let workspace = plain(Path::new(&self.config.workspace_mount_path));
        let mut places: BTreeSet<PathBuf> = self.image.volume_places().collect();
        places.insert(SCRATCH.into());
        if self.workspace.is_some() {
            places.remove(&workspace);
        } else {
            places.insert(workspace);
        }
        places
            .into_iter()
            // They came as text.
            .filter_map(|place| place.into_os_string().into_string().ok())
            .map(|place| (place, options.clone()))
            .collect()
    }
}

fn security_options(filter: Option<&Filter<'_>>) -> Vec<String> {
    let mut options = vec!["no-new-privileges".to_owned()];
    options.extend(filter.map(Filter::option));
    options
}

/// What confines every container of ours, whatever it is for.
pub(crate) fn confined(config: &DockerConfig, init: Init) -> HostConfig {
    let memory = i64::try_from(config.memory_limit.as_u64()).unwrap_or(i64::MAX);
    HostConfig {
        memory: Some(memory),
        // Memory and swap together: no swap.
        memory_swap: Some(memory),
        nano_cpus: Some(config.cpu_limit.nano_cpus()),
        pids_limit: Some(config.pids_limit.into()),
        ulimits: Some(ulimits(init)),
        readonly_rootfs: Some(true),
        privileged: Some(false),
        cap_drop: Some(vec!["ALL".to_owned()]),
        // The default driver writes every byte of output to the engine's disk.
        log_config: Some(HostConfigLogConfig {
            typ: Some("none".to_owned()),
            config: None,
        }),
        // We read how it ended before we remove it.
        auto_remove: Some(false),
        ..Default::default()
    }
}

fn ulimits(init: Init) -> Vec<ResourcesUlimits> {
    // A core file would land in the workspace, or on the engine's disk.
    [("core", 0)]
        .into_iter()
        .chain(init.limits_to_name())
        .map(|(name, limit)| ResourcesUlimits {
            name: Some(name.to_owned()),
            soft: Some(limit),
            hard: Some(limit),
        })
        .collect()
}

/// A directory of the engine's machine at a place in the container. Docker takes any path; Podman
/// splits the one form at colons and the other at commas, and unquotes it.
pub(crate) fn with_mount(
    host: HostConfig,
    init: Init,
    (source, target): (&str, &str),
    read_only: bool,
) -> Result<HostConfig> {
    let has = |marks: &[char]| source.contains(marks) || target.contains(marks);
    match init {
        Init::Catatonit if !has(&[':']) => {
            let mode = if read_only { "ro" } else { "rw" };
            Ok(HostConfig {
                binds: Some(vec![format!("{source}:{target}:{mode},rprivate")]),
                ..host
            })
        }
        Init::Catatonit if has(&[',', '"', '\'', '\n', '\r']) => Err(Error::new(
            ErrorKind::Refused,
            format!("Podman cannot be told to mount `{source}` at `{target}`"),
        )
        .with_hint("it takes no path with a colon and a comma, a quote or a line break in it")),
        _ => Ok(HostConfig {
            mounts: Some(vec![bind(source, target, read_only)]),
            ..host
        }),
    }
}

fn bind(source: &str, target: &str, read_only: bool) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.to_owned()),
        target: Some(target.to_owned()),
        read_only: Some(read_only),
        bind_options: Some(MountBindOptions {
            propagation: Some(MountBindOptionsPropagationEnum::RPRIVATE),
            ..Default::default()
        }),
        ..Default::default()
    }
}

/// The variables of the plan, a home that can be written to, and nothing of the image that makes a
/// loader run code.
fn environment(environment: &Environment, image: &Image, init: Init) -> Result<Vec<String>> {
    let mut variables = Vec::new();
    for (name, value) in environment.iter() {
        let Some(value) = value.to_str() else {
            return Err(Error::new(
                ErrorKind::InvalidRequest,
                format!("the value of `{name}` is not UTF-8, which the engine needs"),
            ));
        };
        variables.push(format!("{name}={value}"));
    }
    if environment.get("HOME").is_none() {
        variables.push(format!("HOME={SCRATCH}"));
    }
    let unset = image
        .loader_variables
        .iter()
        .filter(|name| environment.get(name).is_none());
    variables.extend(unset.map(|name| init.unset(name)));
    Ok(variables)
}

/// The name of an execution's container, so that it can be found before the engine has told its id.
pub(crate) fn container_name(id: ExecutionId) -> String {
    format!("prx-{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    use prx_runtime_core::config::Config;
    use prx_runtime_core::{EnvironmentRules, ExecutionRequest};

    use crate::socket::Candidates;
    use crate::workspace::Policy;

    fn image() -> Image {
        Image {
            id: "sha256:1".into(),
            name: "test".into(),
            path: "/bin".into(),
            loader_variables: vec!["LD_PRELOAD".into()],
            volumes: vec![
                "/data".into(),
                "//data/x/..".into(),
                "/tmp/".into(),
                "/".into(),
            ],
        }
    }

    fn rules() -> EnvironmentRules {
        let literal = [("TOOL_HOME", "/opt/tool")];
        EnvironmentRules::new(["LANG"], literal)
            .unwrap()
            .without_host_paths()
    }

    fn body(
        config: &DockerConfig,
        request: ExecutionRequest,
        dir: Option<&Path>,
    ) -> ContainerCreateBody {
        let candidates = Candidates::new(Some("/nowhere.sock")).unwrap();
        let workspace = dir.map(|dir| {
            Policy::new(config, &candidates)
                .unwrap()
                .admit(dir)
                .unwrap()
        });
        let plan = Plan::prepare(&request, &rules()).unwrap();
        Blueprint {
            config,
            plan: &plan,
            image: &image(),
            workspace: workspace.as_ref(),
            user: "1000:1000",
            init: Init::Tini,
            stdin: false,
        }
        .body(None)
        .unwrap()
    }

    fn docker() -> DockerConfig {
        Config::default().runtime.docker
    }

    #[test]
    fn a_container_is_confined_by_default() {
        let dir = tempfile::tempdir().unwrap();
        let body = body(
            &docker(),
            ExecutionRequest::program("ls").arg("-la"),
            Some(dir.path()),
        );
        let host = body.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("none"));
        assert_eq!(host.readonly_rootfs, Some(true));
        assert_eq!(host.privileged, Some(false));
        assert_eq!(host.cap_drop, Some(vec!["ALL".into()]));
        assert_eq!(host.cap_add, None);
        assert_eq!(host.security_opt, Some(vec!["no-new-privileges".into()]));
        assert_eq!(host.memory, Some(256 << 20));
        assert_eq!(host.memory_swap, host.memory);
        assert_eq!(host.pids_limit, Some(100));
        assert_eq!(host.nano_cpus, Some(1_000_000_000));
        assert_eq!(host.init, Some(true));
        assert_eq!(host.auto_remove, Some(false));
        assert_eq!(host.log_config.unwrap().typ.as_deref(), Some("none"));
        assert_eq!(
            (host.devices, host.binds, host.volumes_from),
            (None, None, None)
        );
        assert_eq!(
            (host.pid_mode, host.ipc_mode, host.uts_mode),
            (None, None, None)
        );
        let mounts = host.mounts.unwrap();
        assert_eq!(mounts.len(), 1);
        assert_eq!(mounts[0].target.as_deref(), Some("/workspace"));
        assert_eq!(mounts[0].read_only, Some(false));
    }

    #[test]
    fn arguments_stay_arguments_and_lines_go_to_the_shell() {
        let init = ["/sbin/docker-init", "-s", "-g", "--"];
        let program = body(
            &docker(),
            ExecutionRequest::program("a b").arg("$x; y"),
            None,
        );
        assert_eq!(
            program.entrypoint.unwrap(),
            [&init[..], &["a b", "$x; y"]].concat()
        );
        assert_eq!(program.cmd, Some(Vec::new()));
        let shell = body(&docker(), ExecutionRequest::shell("echo $x | wc"), None);
        assert_eq!(
            shell.entrypoint.unwrap(),
            [&init[..], &["/bin/sh", "-c", "echo $x | wc"]].concat()
        );
    }

    #[test]
    fn the_images_loader_variables_are_unset_and_the_operators_pass() {
        let body = body(
            &docker(),
            ExecutionRequest::program("x").env("LANG", "C"),
            None,
        );
        assert_eq!(
            body.env.unwrap(),
            ["LANG=C", "TOOL_HOME=/opt/tool", "HOME=/tmp", "LD_PRELOAD"]
        );
    }

    #[test]
    fn no_place_of_the_image_is_on_the_engines_disk() {
        let tmpfs = body(&docker(), ExecutionRequest::program("x"), None)
            .host_config
            .unwrap()
            .tmpfs;
        let tmpfs = tmpfs.unwrap();
        let mut places: Vec<_> = tmpfs.keys().map(String::as_str).collect();
        places.sort_unstable();
        assert_eq!(places, ["/data", "/tmp", "/workspace"]);
        assert!(tmpfs["/tmp"].contains("size=67108864"), "{tmpfs:?}");
        assert!(tmpfs["/tmp"].contains("nosuid"), "{tmpfs:?}");
    }

    #[test]
    fn no_path_is_read_as_more_than_a_path() {
        let mount =
            |source: &str| with_mount(HostConfig::default(), Init::Catatonit, (source, "/w"), true);
        let host = mount("/a,target=/etc").unwrap();
        assert_eq!(host.binds.unwrap(), ["/a,target=/etc:/w:ro,rprivate"]);
        let host = mount("/a:/etc").unwrap();
        assert_eq!(host.binds, None);
        assert_eq!(host.mounts.unwrap()[0].source.as_deref(), Some("/a:/etc"));
        let error = mount("/a:b,target=/etc").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Refused);
    }

    #[test]
    fn what_is_configured_is_what_is_asked_for() {
        let config = Config::from_toml_str(
            "[runtime.docker]\nnetwork = \"bridge\"\nmemory_limit = \"1g\"\ncpu_limit = 0.5\npids_limit = 7\n\
             shell = \"/bin/bash\"\noci_runtime = \"crun\"\nworkspace_mount_path = \"/w\"\nauto_remove = false\n",
            "test",
        )
        .unwrap();
        let dir = tempfile::tempdir().unwrap();
        let body = body(
            &config.runtime.docker,
            ExecutionRequest::shell("x"),
            Some(dir.path()),
        );
        assert_eq!(body.working_dir.as_deref(), Some("/w"));
        assert!(body.entrypoint.unwrap().contains(&"/bin/bash".to_owned()));
        assert!(body.labels.unwrap().contains_key("prx-runtime.kept"));
        let host = body.host_config.unwrap();
        assert_eq!(host.network_mode.as_deref(), Some("bridge"));
        assert_eq!(host.memory, Some(1 << 30));
        assert_eq!(host.nano_cpus, Some(500_000_000));
        assert_eq!(host.pids_limit, Some(7));
        assert_eq!(host.runtime.as_deref(), Some("crun"));
        assert_eq!(host.mounts.unwrap()[0].target.as_deref(), Some("/w"));
    }
}
