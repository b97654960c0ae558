//! A directory of the host that a guest may use, for engines that bring no confined file system of
//! their own.
//!
//! Every path is resolved beneath the directory as it was opened, by the system itself where it can
//! (`openat2` on Linux): no `..`, no absolute path and no symbolic link leads out of it, also while
//! another process changes what lies beneath. What is only to be read is refused here, whatever the
//! engine thinks.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, Metadata, OpenOptions};
use prx_runtime_core::{Error, ErrorKind, Result};

use crate::Preopen;

/// A granted directory, opened.
#[derive(Debug)]
pub struct GrantedDirectory {
    directory: Dir,
    writable: bool,
}

/// How a file is opened, in the terms of [`std::fs::OpenOptions`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct OpenHow {
    /// For reading.
    pub read: bool,
    /// For writing.
    pub write: bool,
    /// For writing at its end.
    pub append: bool,
    /// Cut to nothing.
    pub truncate: bool,
    /// Made if it is not there.
    pub create: bool,
    /// Made, and refused if it is there.
    pub create_new: bool,
}

impl OpenHow {
    fn changes(self) -> bool {
        self.write || self.append || self.truncate || self.create || self.create_new
    }
}

/// What is known of something in a directory. Times are nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub struct Entry {
    pub kind: EntryKind,
    pub len: u64,
    pub accessed: u64,
    pub modified: u64,
    pub created: u64,
}

/// What something in a directory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum EntryKind {
    Directory,
    File,
    SymbolicLink,
    CharacterDevice,
    BlockDevice,
    Fifo,
    Socket,
    Unknown,
}

impl GrantedDirectory {
    /// Opens a directory that is granted.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Refused`] if it cannot be opened.
    pub fn open(preopen: &Preopen) -> Result<Self> {
        let directory = Dir::open_ambient_dir(&preopen.host, ambient_authority());
        let directory = directory.map_err(|error| {
            Error::new(
                ErrorKind::Refused,
                format!(
                    "the directory `{}`, which is granted as `{}`, cannot be opened",
                    preopen.host.display(),
                    preopen.guest
                ),
            )
            .with_source(error)
            .with_hint("make it, or take it off runtime.wasm.capabilities")
        })?;
        Ok(Self {
            directory,
            writable: preopen.writable,
        })
    }

    /// Whether the guest may change anything in it.
    pub fn is_writable(&self) -> bool {
        self.writable
    }

    /// Opens a file. Nothing waits for the other end of a FIFO.
    ///
    /// # Errors
    ///
    /// Those of the system; `PermissionDenied` for what leads out, and for changes to what is only
    /// to be read. So for everything here.
    pub fn open_file(&self, path: &Path, how: OpenHow) -> io::Result<File> {
        if how.changes() {
            self.require_writable()?;
        }
        let mut options = OpenOptions::new();
        options
            .read(how.read)
            .write(how.write)
            .append(how.append)
            .truncate(how.truncate)
            .create(how.create)
            .create_new(how.create_new);
        #[cfg(unix)]
        {
            use cap_std::fs::OpenOptionsExt as _;
            let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
            options.custom_flags(flags.bits().cast_signed());
        }
        self.directory
            .open_with(beneath(path), &options)
            .map(cap_std::fs::File::into_std)
    }

    /// What `path` is, links followed.
    #[expect(clippy::missing_errors_doc, reason = "see open_file; so below")]
    pub fn metadata(&self, path: &Path) -> io::Result<Entry> {
        self.directory
            .metadata(beneath(path))
            .map(|metadata| Entry::of(&metadata))
    }

    /// What `path` itself is.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn symlink_metadata(&self, path: &Path) -> io::Result<Entry> {
        self.directory
            .symlink_metadata(beneath(path))
            .map(|metadata| Entry::of(&metadata))
    }

    /// What is in the directory `path`, by name.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn list(&self, path: &Path) -> io::Result<Vec<(OsString, io::Result<Entry>)>> {
        let entries = self.directory.read_dir(beneath(path))?;
        entries
            .map(|entry| {
                let entry = entry?;
                let metadata = entry.metadata().map(|metadata| Entry::of(&metadata));
                Ok((entry.file_name(), metadata))
            })
            .collect()
    }

    /// Where the symbolic link `path` leads. Links to absolute paths lead nowhere.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn read_link(&self, path: &Path) -> io::Result<PathBuf> {
        self.directory.read_link(beneath(path))
    }

    /// Makes a directory.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn create_directory(&self, path: &Path) -> io::Result<()> {
        self.require_writable()?;
        self.directory.create_dir(beneath(path))
    }

    /// Removes an empty directory.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn remove_directory(&self, path: &Path) -> io::Result<()> {
        self.require_writable()?;
        self.directory.remove_dir(beneath(path))
    }

    /// Removes anything but a directory.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.require_writable()?;
        self.directory.remove_file(beneath(path))
    }

    /// Moves `from` to `to` of `other`, both of which may be changed.
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn rename(&self, from: &Path, other: &Self, to: &Path) -> io::Result<()> {
        self.require_writable()?;
        other.require_writable()?;
        self.directory
            .rename(beneath(from), &other.directory, beneath(to))
    }

    /// Makes the symbolic link `path`, which leads to `target`; never to an absolute one.
    #[cfg(unix)]
    #[expect(clippy::missing_errors_doc, reason = "see open_file")]
    pub fn symbolic_link(&self, target: &Path, path: &Path) -> io::Result<()> {
        self.require_writable()?;
        self.directory.symlink(target, beneath(path))
    }

    fn require_writable(&self) -> io::Result<()> {
        if self.writable {
            Ok(())
        } else {
            Err(io::ErrorKind::PermissionDenied.into())
        }
    }
}

/// The guest's path as one beneath the directory. What is left in it that leads out is refused by
/// whoever resolves it.
fn beneath(path: &Path) -> &Path {
    let path = path.strip_prefix("/").unwrap_or(path);
    if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    }
}

impl Entry {
    fn of(metadata: &Metadata) -> Self {
        let nanoseconds = |time: io::Result<cap_std::time::SystemTime>| {
            time.ok()
                .and_then(|time| time.into_std().duration_since(std::time::UNIX_EPOCH).ok())
                .and_then(|since| u64::try_from(since.as_nanos()).ok())
                .unwrap_or_default()
        };
        Self {
            kind: EntryKind::of(metadata),
            len: metadata.len(),
            accessed: nanoseconds(metadata.accessed()),
            modified: nanoseconds(metadata.modified()),
            created: nanoseconds(metadata.created()),
        }
    }
}

impl EntryKind {
    fn of(metadata: &Metadata) -> Self {
        let ty = metadata.file_type();
        if ty.is_dir() {
            return Self::Directory;
        }
        if ty.is_file() {
            return Self::File;
        }
        if ty.is_symlink() {
            return Self::SymbolicLink;
        }
        #[cfg(unix)]
        {
            use cap_std::fs::FileTypeExt as _;
            if ty.is_char_device() {
                return Self::CharacterDevice;
            }
            if ty.is_block_device() {
                return Self::BlockDevice;
            }
            if ty.is_fifo() {
                return Self::Fifo;
            }
            if ty.is_socket() {
                return Self::Socket;
            }
        }
        Self::Unknown
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    const READ: OpenHow = OpenHow {
        read: true,
        write: false,
        append: false,
        truncate: false,
        create: false,
        create_new: false,
    };
    const WRITE: OpenHow = OpenHow {
        write: true,
        create: true,
        ..READ
    };

    /// A directory `in` with a file and links, beside a secret.
    fn tree(writable: bool) -> (tempfile::TempDir, GrantedDirectory) {
        let outer = tempfile::tempdir().unwrap();
        let inner = outer.path().join("in");
        fs::create_dir(&inner).unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        fs::write(inner.join("file"), "file").unwrap();
        symlink("file", inner.join("inside")).unwrap();
        symlink("../secret", inner.join("outside")).unwrap();
        symlink(outer.path().join("secret"), inner.join("absolute")).unwrap();
        let preopen = Preopen {
            host: inner,
            guest: "/in".to_owned(),
            writable,
        };
        let directory = GrantedDirectory::open(&preopen).unwrap();
        (outer, directory)
    }

    fn denied<T: std::fmt::Debug>(result: io::Result<T>) {
        assert_eq!(result.unwrap_err().kind(), io::ErrorKind::PermissionDenied);
    }

    #[test]
    fn nothing_leads_out() {
        let (_outer, directory) = tree(true);
        directory.open_file(Path::new("/inside"), READ).unwrap();
        for path in [
            "/outside",
            "/absolute",
            "/../secret",
            "../secret",
            "/x/../../secret",
        ] {
            let path = Path::new(path);
            for how in [READ, WRITE] {
                assert!(
                    directory.open_file(path, how).is_err(),
                    "{}",
                    path.display()
                );
            }
            assert!(directory.metadata(path).is_err(), "{}", path.display());
        }
        denied(directory.open_file(Path::new("/outside"), READ));
        denied(directory.symbolic_link(Path::new("/etc"), Path::new("/new")));
        denied(directory.rename(Path::new("/file"), &directory, Path::new("../file")));
        assert!(directory.read_link(Path::new("/absolute")).is_err());
    }

    #[test]
    fn what_is_only_to_be_read_stays_as_it_is() {
        let (outer, directory) = tree(false);
        let (file, new) = (Path::new("/file"), Path::new("/new"));
        directory.open_file(file, READ).unwrap();
        denied(directory.open_file(file, WRITE));
        denied(directory.open_file(
            file,
            OpenHow {
                append: true,
                ..READ
            },
        ));
        denied(directory.open_file(
            file,
            OpenHow {
                truncate: true,
                ..READ
            },
        ));
        denied(directory.open_file(
            new,
            OpenHow {
                create_new: true,
                ..READ
            },
        ));
        denied(directory.create_directory(new));
        denied(directory.remove_directory(new));
        denied(directory.remove_file(file));
        denied(directory.rename(file, &directory, new));
        denied(directory.symbolic_link(file, new));
        assert_eq!(fs::read_dir(outer.path().join("in")).unwrap().count(), 4);
    }

    #[test]
    fn a_fifo_without_another_end_does_not_wait() {
        let (outer, directory) = tree(true);
        let fifo = outer.path().join("in/fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
            0,
        )
        .unwrap();
        directory.open_file(Path::new("/fifo"), READ).unwrap();
        let listed = directory.list(Path::new("/")).unwrap();
        assert!(
            listed
                .iter()
                .any(|(_, entry)| entry.as_ref().unwrap().kind == EntryKind::Fifo)
        );
    }
}
