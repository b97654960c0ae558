//! The files of a guest: the granted directories, and nothing else.
//!
//! wasmer's own file system of the host follows symbolic links out of a mount while another process
//! swaps directories for links, and knows no mount that is only to be read. So each granted
//! directory is one of ours here, and nothing else is there: no `/tmp`, no `/dev`, no root that could
//! be written to. wasmer's mount table holds them as one: across mounts it would copy what a guest
//! moves, also out of what may only be read.

mod file;
mod root;

use std::io;
use std::sync::Arc;

use prx_runtime_core::Result;
use prx_runtime_wasm::{GrantedDirectory, Preopen};
use virtual_fs::{FsError, MountFileSystem};

pub(crate) use root::climbs;

use root::Root;

/// The name of the working directory for names without a leading slash.
const HERE: &str = ".";

const ROOT: &str = "/";

/// Whether a directory of the guest is one in another.
fn is_nested(guest: &str) -> bool {
    guest.trim_matches('/').contains('/')
}

/// Everything that a guest can see of files.
#[derive(Debug)]
pub(crate) struct Mounted {
    pub(crate) root: MountFileSystem,
    pub(crate) preopens: Vec<Opened>,
}

/// A directory as the guest finds it opened.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Opened {
    /// Where it is in the mounts.
    pub(crate) path: String,
    /// What the guest is told that it is.
    pub(crate) name: String,
    pub(crate) writable: bool,
}

/// Opens and mounts the directories that are granted.
///
/// # Errors
///
/// One of them cannot be opened.
pub(crate) fn mount(preopens: &[Preopen], working_dir: Option<&str>) -> Result<Mounted> {
    let mut granted = Root::default();
    for preopen in preopens.iter().filter(|preopen| preopen.guest != HERE) {
        granted.add(&preopen.guest, GrantedDirectory::open(preopen)?);
    }
    let root = MountFileSystem::new();
    // It is empty, so there is room at its root.
    let _ = root.mount(ROOT, Arc::new(granted));
    let opened = |preopen: &Preopen| Opened {
        path: match working_dir {
            Some(directory) if preopen.guest == HERE => directory.to_owned(),
            _ => preopen.guest.clone(),
        },
        name: preopen.guest.clone(),
        writable: preopen.writable,
    };
    let mut opened: Vec<_> = preopens.iter().map(opened).collect();
    // wasmer looks for what links lead to from the root, and finds there what is opened at it.
    if preopens.iter().any(|preopen| is_nested(&preopen.guest))
        && !opened.iter().any(|other| other.path == ROOT)
    {
        opened.insert(
            0,
            Opened {
                path: ROOT.into(),
                name: ROOT.into(),
                writable: false,
            },
        );
    }
    Ok(Mounted {
        root,
        preopens: opened,
    })
}

/// The nearest that wasmer has. Never [`FsError::Unsupported`], on which it makes up links of its
/// own.
pub(super) fn error(error: io::Error) -> FsError {
    match error.kind() {
        io::ErrorKind::NotFound => FsError::EntryNotFound,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            FsError::PermissionDenied
        }
        io::ErrorKind::AlreadyExists => FsError::AlreadyExists,
        io::ErrorKind::NotADirectory => FsError::BaseNotDirectory,
        io::ErrorKind::DirectoryNotEmpty => FsError::DirectoryNotEmpty,
        io::ErrorKind::IsADirectory => FsError::NotAFile,
        io::ErrorKind::InvalidInput => FsError::InvalidInput,
        io::ErrorKind::Interrupted => FsError::Interrupted,
        io::ErrorKind::WouldBlock => FsError::WouldBlock,
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => FsError::WriteZero,
        _ => FsError::IOError,
    }
}
