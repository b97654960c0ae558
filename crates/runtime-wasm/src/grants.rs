//! From what is granted in the configuration to the directories of one guest.

use std::path::{Path, PathBuf};

use prx_runtime_core::config::{Grant, GrantHost};
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::Preopen;

/// The name under which the working directory is there a second time: what a guest names without
/// a leading slash is looked for in it.
const HERE: &str = ".";

/// The directories that a guest is granted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grants(Vec<Granted>);

#[derive(Debug, Clone)]
struct Granted {
    host: GrantHost,
    guest: String,
    writable: bool,
}

impl Granted {
    fn host_path(&self) -> Option<&PathBuf> {
        match &self.host {
            GrantHost::Path(path) => Some(path),
            _ => None,
        }
    }
}

impl Grants {
    /// Puts what may be read and what may be written together. Write implies read.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] where two directories would be seen at one place.
    pub(crate) fn new(read: Vec<Grant>, write: Vec<Grant>) -> Result<Self> {
        let mut all: Vec<Granted> = Vec::new();
        let writes = write.into_iter().map(|grant| (grant, true));
        let reads = read.into_iter().map(|grant| (grant, false));
        for (grant, writable) in writes.chain(reads) {
            match all.iter().find(|other| other.guest == grant.guest) {
                Some(other) if other.host == grant.host => {}
                Some(_) => {
                    return Err(Error::new(
                        ErrorKind::InvalidConfig,
                        format!(
                            "two directories are granted at `{}` of the guest",
                            grant.guest
                        ),
                    ));
                }
                None => all.push(Granted {
                    host: grant.host,
                    guest: grant.guest,
                    writable,
                }),
            }
        }
        Ok(Self(all))
    }

    /// The directories for an execution in `workspace`.
    pub(crate) fn preopens(&self, workspace: &Path) -> Vec<Preopen> {
        let mut preopens: Vec<Preopen> = self
            .0
            .iter()
            .map(|granted| Preopen {
                host: match &granted.host {
                    GrantHost::Path(path) => path.clone(),
                    _ => workspace.to_owned(),
                },
                guest: granted.guest.clone(),
                writable: granted.writable,
            })
            .collect();
        // Where the root is granted, that is where relative names are looked for: C libraries
        // cannot tell `.` from `/`.
        if let Some(granted) = self.workspace()
            && !self.0.iter().any(|other| other.guest == "/")
        {
            preopens.push(Preopen {
                host: workspace.to_owned(),
                guest: HERE.to_owned(),
                writable: granted.writable,
            });
        }
        preopens
    }

    /// Where the guest sees its working directory.
    pub(crate) fn working_dir(&self) -> Option<&str> {
        self.workspace().map(|granted| granted.guest.as_str())
    }

    fn workspace(&self) -> Option<&Granted> {
        self.0
            .iter()
            .find(|granted| granted.host == GrantHost::Workspace)
    }

    /// The directories of the host beside the working directory.
    pub(crate) fn host_paths(&self) -> impl Iterator<Item = &PathBuf> {
        self.0.iter().filter_map(Granted::host_path)
    }

    /// Those of them that may be written.
    pub(crate) fn writable_host_paths(&self) -> impl Iterator<Item = &PathBuf> {
        let writable = self.0.iter().filter(|granted| granted.writable);
        writable.filter_map(Granted::host_path)
    }

    /// Each grant in words.
    pub(crate) fn describe(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|granted| {
            let rights = if granted.writable {
                "read and write"
            } else {
                "read"
            };
            format!("{rights} {}", granted.guest)
        })
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn grants(read: &[&str], write: &[&str]) -> Result<Grants> {
        let parse = |texts: &[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Grants::new(parse(read), parse(write))
    }

    fn preopens(read: &[&str], write: &[&str]) -> Vec<(String, String, bool)> {
        grants(read, write)
            .unwrap()
            .preopens(Path::new("/w"))
            .into_iter()
            .map(|preopen| {
                (
                    preopen.host.display().to_string(),
                    preopen.guest,
                    preopen.writable,
                )
            })
            .collect()
    }

    fn entry(host: &str, guest: &str, writable: bool) -> (String, String, bool) {
        (host.to_owned(), guest.to_owned(), writable)
    }

    #[test]
    fn the_workspace_is_also_where_relative_names_are() {
        assert_eq!(
            preopens(&["/workspace"], &["/tmp"]),
            [
                entry("/tmp", "/tmp", true),
                entry("/w", "/workspace", false),
                entry("/w", ".", false)
            ]
        );
    }

    #[test]
    fn write_implies_read() {
        assert_eq!(
            preopens(&["/workspace", "/a::/b"], &["/workspace"]),
            [
                entry("/w", "/workspace", true),
                entry("/a", "/b", false),
                entry("/w", ".", true)
            ]
        );
    }

    #[test]
    fn a_granted_root_stands_for_itself() {
        assert_eq!(
            preopens(&["/workspace", "/a::/"], &[]),
            [entry("/w", "/workspace", false), entry("/a", "/", false)]
        );
    }

    #[test]
    fn no_place_stands_for_two_directories() {
        let error = grants(&["/a::/x"], &["/b::/x"]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidConfig);
        assert!(error.to_string().contains("`/x`"), "{error}");
    }
}
