//! The backends: which crates hold each, and which feature turns it on.

use std::collections::BTreeSet;
use std::fmt;

use anyhow::{Result, bail};
use clap::{Args, ValueEnum};

use crate::workspace::{Member, Workspace};

/// A backend of the project. It exists once its crate is in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum)]
pub(crate) enum Backend {
    /// Local processes.
    Native,
    /// Confined local processes.
    Sandbox,
    /// Containers.
    Docker,
    /// WebAssembly by wasmtime.
    Wasmtime,
    /// WebAssembly by wasmer.
    Wasmer,
}

/// Features that stand for several backends at once.
const GROUP_FEATURES: &[&str] = &["default", "wasm-runtime"];

impl Backend {
    /// Every backend the project knows, in the order of the documentation.
    pub(crate) const ALL: &'static [Self] = &[
        Self::Native,
        Self::Sandbox,
        Self::Docker,
        Self::Wasmtime,
        Self::Wasmer,
    ];

    /// Its name: the `--backend` value, the feature, and the end of the crate's name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Sandbox => "sandbox",
            Self::Docker => "docker",
            Self::Wasmtime => "wasmtime",
            Self::Wasmer => "wasmer",
        }
    }

    /// The packages which only this backend (and a backend that shares them) needs.
    pub(crate) fn packages(self) -> &'static [&'static str] {
        match self {
            Self::Native => &["prx-runtime-native"],
            Self::Sandbox => &["prx-runtime-sandbox"],
            Self::Docker => &["prx-runtime-docker"],
            Self::Wasmtime => &["prx-runtime-wasmtime", "prx-runtime-wasm"],
            Self::Wasmer => &["prx-runtime-wasmer", "prx-runtime-wasm"],
        }
    }

    /// Whether its own crate is in the workspace.
    pub(crate) fn exists(self, workspace: &Workspace) -> bool {
        workspace.member(self.packages()[0]).is_some()
    }
}

impl fmt::Display for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The `--backend` argument of a task.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct BackendArgs {
    /// Only this backend (repeatable); without it, all that exist in the workspace.
    #[arg(long = "backend", value_name = "BACKEND")]
    pub(crate) backends: Vec<Backend>,
}

impl BackendArgs {
    /// What was asked for. Asking for what does not exist is an error.
    pub(crate) fn chosen(&self, workspace: &Workspace) -> Result<Vec<Backend>> {
        let existing: Vec<_> = existing(workspace);
        if self.backends.is_empty() {
            return Ok(existing);
        }
        for backend in &self.backends {
            if !existing.contains(backend) {
                bail!(
                    "the workspace has no backend `{backend}`; it has: {}",
                    comma_list(&existing)
                );
            }
        }
        let chosen: BTreeSet<_> = self.backends.iter().copied().collect();
        Ok(chosen.into_iter().collect())
    }
}

/// The backends whose crates are in the workspace.
pub(crate) fn existing(workspace: &Workspace) -> Vec<Backend> {
    Backend::ALL
        .iter()
        .copied()
        .filter(|backend| backend.exists(workspace))
        .collect()
}

/// The names, with commas between them.
pub(crate) fn comma_list(backends: &[Backend]) -> String {
    backends
        .iter()
        .map(|backend| backend.name())
        .collect::<Vec<_>>()
        .join(",")
}

/// The members a run for `chosen` concerns: all of them but the crates of other backends.
pub(crate) fn members<'a>(workspace: &'a Workspace, chosen: &[Backend]) -> Vec<&'a Member> {
    let mine: BTreeSet<_> = chosen
        .iter()
        .flat_map(|backend| backend.packages())
        .collect();
    let others: BTreeSet<_> = Backend::ALL
        .iter()
        .flat_map(|backend| backend.packages())
        .collect();
    workspace
        .members()
        .iter()
        .filter(|member| {
            let name = member.name.as_str();
            mine.contains(&name) || !others.contains(&name)
        })
        .collect()
}

/// The features to turn on for `members`, as `package/feature`: every one that is no backend, and
/// of the backends those chosen. Defaults stay on: what is tested is what people get, and more.
pub(crate) fn features(members: &[&Member], chosen: &[Backend]) -> Vec<String> {
    let mut features = Vec::new();
    for member in members {
        for feature in &member.features {
            let wanted = match Backend::ALL
                .iter()
                .find(|backend| backend.name() == feature)
            {
                Some(backend) => chosen.contains(backend),
                None => !GROUP_FEATURES.contains(&feature.as_str()),
            };
            if wanted {
                features.push(format!("{}/{feature}", member.name));
            }
        }
    }
    features
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::tests::workspace_of;

    fn sample() -> Workspace {
        workspace_of(&[
            ("prx-runtime-core", &["default", "schema"]),
            ("prx-runtime-native", &[]),
            ("prx-runtime-docker", &[]),
            (
                "prx-runtime",
                &["default", "native", "docker", "wasmtime", "wasm-runtime"],
            ),
        ])
    }

    #[test]
    fn a_backend_exists_when_its_crate_does() {
        assert_eq!(existing(&sample()), [Backend::Native, Backend::Docker]);
    }

    #[test]
    fn asking_for_a_missing_backend_is_an_error_that_lists_the_others() {
        let args = BackendArgs {
            backends: vec![Backend::Wasmer],
        };
        let error = args.chosen(&sample()).unwrap_err().to_string();
        assert!(
            error.contains("wasmer") && error.contains("native,docker"),
            "{error}"
        );
    }

    #[test]
    fn one_backend_leaves_the_crates_of_the_others_out() {
        let workspace = sample();
        let names: Vec<_> = members(&workspace, &[Backend::Native])
            .iter()
            .map(|member| member.name.as_str())
            .collect();
        assert_eq!(
            names,
            ["prx-runtime-core", "prx-runtime-native", "prx-runtime"]
        );
    }

    #[test]
    fn features_are_the_chosen_backends_and_all_that_is_no_backend() {
        let workspace = sample();
        let chosen = [Backend::Native];
        let members = members(&workspace, &chosen);
        assert_eq!(
            features(&members, &chosen),
            ["prx-runtime-core/schema", "prx-runtime/native"]
        );
    }
}
