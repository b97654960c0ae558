//! What cargo says about the workspace.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use cargo_metadata::{Metadata, MetadataCommand};

/// A package of the workspace.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    /// The package's name.
    pub(crate) name: String,
    /// Its `Cargo.toml`.
    pub(crate) manifest: PathBuf,
    /// The names of its features.
    pub(crate) features: Vec<String>,
}

/// The workspace this task works on.
#[derive(Debug, Clone)]
pub(crate) struct Workspace {
    root: PathBuf,
    target_dir: PathBuf,
    members: Vec<Member>,
}

impl Workspace {
    /// Asks cargo; nothing is resolved or fetched.
    pub(crate) fn load() -> Result<Self> {
        let metadata = MetadataCommand::new()
            .manifest_path(root().join("Cargo.toml"))
            .no_deps()
            .exec()
            .context("the workspace cannot be read")?;
        Ok(Self::from_metadata(&metadata))
    }

    fn from_metadata(metadata: &Metadata) -> Self {
        let members = metadata
            .workspace_packages()
            .into_iter()
            .map(|package| Member {
                name: package.name.to_string(),
                manifest: package.manifest_path.clone().into_std_path_buf(),
                features: package.features.keys().cloned().collect(),
            })
            .collect();
        Self {
            root: metadata.workspace_root.clone().into_std_path_buf(),
            target_dir: metadata.target_directory.clone().into_std_path_buf(),
            members,
        }
    }

    /// The folder with the root manifest.
    pub(crate) fn root(&self) -> &Path {
        &self.root
    }

    /// Where cargo builds.
    pub(crate) fn target_dir(&self) -> &Path {
        &self.target_dir
    }

    /// Every package of the workspace, ordered by cargo.
    pub(crate) fn members(&self) -> &[Member] {
        &self.members
    }

    /// The package of that name.
    pub(crate) fn member(&self, name: &str) -> Option<&Member> {
        self.members.iter().find(|member| member.name == name)
    }
}

/// The root of the checkout xtask was built from.
pub(crate) fn root() -> PathBuf {
    let manifest_dir = Path::new(env!("CARGO_MANIFEST_DIR"));
    manifest_dir.parent().unwrap_or(manifest_dir).to_owned()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A workspace of these packages with these features.
    pub(crate) fn workspace_of(packages: &[(&str, &[&str])]) -> Workspace {
        Workspace {
            root: PathBuf::from("/checkout"),
            target_dir: PathBuf::from("/checkout/target"),
            members: packages
                .iter()
                .map(|(name, features)| Member {
                    name: (*name).to_owned(),
                    manifest: PathBuf::from(format!("/checkout/crates/{name}/Cargo.toml")),
                    features: features.iter().map(|&feature| feature.to_owned()).collect(),
                })
                .collect(),
        }
    }

    #[test]
    fn the_workspace_holds_xtask() {
        let workspace = Workspace::load().unwrap();
        assert!(workspace.member("xtask").is_some());
    }
}
