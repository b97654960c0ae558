//! Paths of rules, walked by ourselves.
//!
//! A mount is made by a path, and a path is whatever its symbolic links say at that moment. Links
//! that the command could have planted are the command's words, not the operator's.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, openat, readlinkat, statat};

/// As many links as the kernel follows.
const MOST_LINKS: u32 = 40;

/// A path without links, and the file it led to when it was walked.
#[derive(Debug)]
pub(crate) struct Resolved {
    pub(crate) path: PathBuf,
    /// Opened with `O_PATH`: a name for the file that nobody can move to another one.
    pub(crate) file: OwnedFd,
    pub(crate) is_dir: bool,
    /// A link that led here lay in a directory that the command may write.
    pub(crate) through: Option<PathBuf>,
}

/// Walks `path`, which is absolute. `writable` says whether the command may write into a
/// directory.
pub(crate) fn resolve(path: &Path, writable: impl Fn(&Path) -> bool) -> io::Result<Resolved> {
    let mut todo: VecDeque<OsString> = components(path).collect();
    let mut here = PathBuf::from("/");
    let mut trail: Vec<OwnedFd> = Vec::new();
    let root = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let mut through = None;
    let mut links = 0;
    let mut is_dir = true;
    while let Some(name) = todo.pop_front() {
        if name == ".." {
            trail.pop();
            here.pop();
            is_dir = true;
            continue;
        }
        let directory = trail.last().unwrap_or(&root).as_fd();
        let file = openat(
            directory,
            &name,
            OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let kind = kind_of(&file)?;
        if kind == FileType::Symlink {
            links += 1;
            if links > MOST_LINKS {
                return Err(rustix::io::Errno::LOOP.into());
            }
            if writable(&here) {
                through.get_or_insert_with(|| here.join(&name));
            }
            let target = readlinkat(directory, &name, Vec::new())?;
            let target = PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()).to_owned());
            if target.is_absolute() {
                trail.clear();
                here = PathBuf::from("/");
            }
            for (index, part) in components(&target).enumerate() {
                todo.insert(index, part);
            }
            continue;
        }
        is_dir = kind == FileType::Directory;
        trail.push(file);
        here.push(name);
    }
    let file = trail.pop().unwrap_or(root);
    Ok(Resolved {
        path: here,
        file,
        is_dir,
        through,
    })
}

/// What an open file is.
pub(crate) fn kind_of(file: &OwnedFd) -> io::Result<FileType> {
    Ok(FileType::from_raw_mode(
        statat(file, "", AtFlags::EMPTY_PATH)?.st_mode,
    ))
}

fn components(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    path.components().filter_map(|part| match part {
        Component::Normal(name) => Some(name.to_owned()),
        Component::ParentDir => Some("..".into()),
        Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn links_are_followed_and_those_in_writable_directories_are_named() {
        let base = tempfile::tempdir().unwrap();
        let base = base.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("real/below")).unwrap();
        std::fs::create_dir(base.join("open")).unwrap();
        symlink("real", base.join("relative")).unwrap();
        symlink(base.join("real"), base.join("open/absolute")).unwrap();
        symlink("../open/absolute/below/..", base.join("real/twisted")).unwrap();
        symlink("loop", base.join("loop")).unwrap();
        let writable = |path: &Path| path.starts_with(base.join("open"));
        let at = |path: &str| resolve(&base.join(path), writable);

        let plain = at("relative/below").unwrap();
        assert_eq!((plain.path, plain.through), (base.join("real/below"), None));
        let planted = at("open/absolute/below").unwrap();
        assert_eq!(planted.path, base.join("real/below"));
        assert_eq!(planted.through, Some(base.join("open/absolute")));
        let twisted = at("real/twisted").unwrap();
        assert_eq!(twisted.path, base.join("real"));
        assert_eq!(twisted.through, Some(base.join("open/absolute")));
        assert_eq!(at("loop").unwrap_err().raw_os_error(), Some(libc::ELOOP));
        assert_eq!(at("nowhere").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
