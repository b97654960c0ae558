//! The granted directories, each where the guest sees it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use futures_util::future::{self, BoxFuture};
use prx_runtime_wasm::{Entry, EntryKind, GrantedDirectory, OpenHow};
use virtual_fs::{
    DirEntry, FileOpener, FileSystem, FileType, FsError, Metadata, OpenOptions, OpenOptionsConfig,
    ReadDir, VirtualFile,
};

use super::error;
use super::file::HostFile;

/// All that there is. Where nothing is granted there are the directories that lead to what is, and
/// they hold nothing else.
#[derive(Debug, Default)]
pub(super) struct Root(Vec<Mount>);

#[derive(Debug)]
struct Mount {
    at: PathBuf,
    directory: std::sync::Arc<GrantedDirectory>,
}

impl Root {
    pub(super) fn add(&mut self, at: &str, directory: GrantedDirectory) {
        self.0.push(Mount {
            at: plain(Path::new(at)),
            directory: directory.into(),
        });
    }

    /// The innermost grant that holds `path`, and where in it.
    fn find(&self, path: &Path) -> virtual_fs::Result<(&Mount, PathBuf)> {
        let path = plain(path);
        let mounts = self.0.iter().filter(|mount| path.starts_with(&mount.at));
        let mount = mounts.max_by_key(|mount| mount.at.components().count());
        let mount = mount.ok_or(FsError::EntryNotFound)?;
        let inner = path
            .strip_prefix(&mount.at)
            .unwrap_or(Path::new(""))
            .to_owned();
        Ok((mount, inner))
    }

    /// As [`find`](Self::find), for what is to be changed: the places of grants themselves stay.
    fn find_changeable(&self, path: &Path) -> virtual_fs::Result<(&Mount, PathBuf)> {
        match self.find(path) {
            Ok((_, inner)) if inner.as_os_str().is_empty() => Err(FsError::PermissionDenied),
            Err(_) => Err(FsError::PermissionDenied),
            found => found,
        }
    }

    /// Both, if they are of one grant or of two that may be changed.
    fn find_two(
        &self,
        from: &Path,
        to: &Path,
    ) -> virtual_fs::Result<[(&GrantedDirectory, PathBuf); 2]> {
        let (from, to) = (self.find_changeable(from)?, self.find_changeable(to)?);
        Ok([(&from.0.directory, from.1), (&to.0.directory, to.1)])
    }

    /// The names in a directory that only leads to grants.
    fn names(&self, path: &Path) -> BTreeSet<OsString> {
        let path = plain(path);
        let below = self
            .0
            .iter()
            .filter_map(|mount| mount.at.strip_prefix(&path).ok());
        below
            .filter_map(|rest| rest.components().next())
            .map(|name| name.as_os_str().to_owned())
            .collect()
    }

    /// A directory that only leads to grants.
    fn way(&self, path: &Path) -> virtual_fs::Result<Metadata> {
        if plain(path).as_os_str().is_empty() || !self.names(path).is_empty() {
            Ok(Metadata {
                ft: FileType::new_dir(),
                ..Metadata::default()
            })
        } else {
            Err(FsError::EntryNotFound)
        }
    }

    fn look(
        &self,
        path: &Path,
        look: impl Fn(&GrantedDirectory, &Path) -> std::io::Result<Entry>,
    ) -> virtual_fs::Result<Metadata> {
        match self.find(path) {
            Ok((mount, inner)) => look(&mount.directory, &inner).map(metadata).map_err(error),
            Err(_) => self.way(path),
        }
    }
}

/// The path without what means nothing in it. What climbs stays, and is refused by the directory.
fn plain(path: &Path) -> PathBuf {
    path.components()
        .filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir))
        .collect()
}

/// Whether `path` leads above where it starts.
pub(crate) fn climbs(path: &Path) -> bool {
    let mut depth = 0_usize;
    for part in path.components() {
        match part {
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return true,
        }
    }
    false
}

impl FileSystem for Root {
    fn readlink(&self, path: &Path) -> virtual_fs::Result<PathBuf> {
        let (mount, inner) = self.find(path)?;
        let target = mount.directory.read_link(&inner).map_err(error)?;
        // What leads from one grant to another would lead elsewhere on the host.
        if climbs(&inner.parent().unwrap_or(&inner).join(&target)) {
            return Err(FsError::PermissionDenied);
        }
        Ok(target)
    }

    fn read_dir(&self, path: &Path) -> virtual_fs::Result<ReadDir> {
        let Ok((mount, inner)) = self.find(path) else {
            self.way(path)?;
            let names = self.names(path).into_iter().map(|name| {
                let path = path.join(name);
                DirEntry {
                    metadata: self.symlink_metadata(&path),
                    path,
                }
            });
            return Ok(ReadDir::new(names.collect()));
        };
        let entries = mount.directory.list(&inner).map_err(error)?;
        let entries = entries.into_iter().map(|(name, entry)| DirEntry {
            path: path.join(name),
            metadata: entry.map(metadata).map_err(error),
        });
        Ok(ReadDir::new(entries.collect()))
    }

    fn create_dir(&self, path: &Path) -> virtual_fs::Result<()> {
        let (mount, inner) = self.find_changeable(path)?;
        mount.directory.create_directory(&inner).map_err(error)
    }

    fn create_symlink(&self, source: &Path, target: &Path) -> virtual_fs::Result<()> {
        let (mount, inner) = self.find_changeable(target)?;
        mount.directory.symbolic_link(source, &inner).map_err(error)
    }

    fn remove_dir(&self, path: &Path) -> virtual_fs::Result<()> {
        let (mount, inner) = self.find_changeable(path)?;
        mount.directory.remove_directory(&inner).map_err(error)
    }

    fn rename<'a>(&'a self, from: &'a Path, to: &'a Path) -> BoxFuture<'a, virtual_fs::Result<()>> {
        let renamed = self
            .find_two(from, to)
            .and_then(|[(from, source), (to, target)]| {
                from.rename(&source, to, &target).map_err(error)
            });
        Box::pin(future::ready(renamed))
    }

    fn metadata(&self, path: &Path) -> virtual_fs::Result<Metadata> {
        self.look(path, GrantedDirectory::metadata)
    }

    fn symlink_metadata(&self, path: &Path) -> virtual_fs::Result<Metadata> {
        self.look(path, GrantedDirectory::symlink_metadata)
    }

    fn remove_file(&self, path: &Path) -> virtual_fs::Result<()> {
        let (mount, inner) = self.find_changeable(path)?;
        mount.directory.remove_file(&inner).map_err(error)
    }

    fn new_open_options(&self) -> OpenOptions<'_> {
        OpenOptions::new(self)
    }
}

impl FileOpener for Root {
    fn open(
        &self,
        path: &Path,
        how: &OpenOptionsConfig,
    ) -> virtual_fs::Result<Box<dyn VirtualFile + Send + Sync>> {
        let (mount, inner) = self.find(path)?;
        let how = OpenHow {
            read: how.read,
            write: how.write,
            append: how.append,
            truncate: how.truncate,
            create: how.create,
            create_new: how.create_new,
        };
        let file = mount.directory.open_file(&inner, how).map_err(error)?;
        Ok(Box::new(HostFile::new(
            file,
            std::sync::Arc::clone(&mount.directory),
            inner,
        )))
    }
}

fn metadata(entry: Entry) -> Metadata {
    let kind = entry.kind;
    Metadata {
        ft: FileType {
            dir: kind == EntryKind::Directory,
            file: kind == EntryKind::File,
            symlink: kind == EntryKind::SymbolicLink,
            // wasmer has no name for what is unknown, and breaks off where it has none.
            char_device: matches!(kind, EntryKind::CharacterDevice | EntryKind::Unknown),
            block_device: kind == EntryKind::BlockDevice,
            socket: kind == EntryKind::Socket,
            fifo: kind == EntryKind::Fifo,
        },
        accessed: entry.accessed,
        created: entry.created,
        modified: entry.modified,
        len: entry.len,
    }
}
