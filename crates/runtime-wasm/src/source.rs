//! Reading a module's file: whole, from one moment, and from nothing but a regular file.

use std::fs::{File, Metadata, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::time::{Duration, SystemTime};

use prx_runtime_core::{Error, ErrorKind, Result};

use crate::error::{unreadable, unusable};
use crate::kind::MAGIC;

/// As much of a file as it takes to see what it is, in bytes.
const LOOK: u64 = 64 << 10;

/// A module larger than this is none.
const MAX_SIZE: u64 = 1 << 30;

/// How often a file that changes under our eyes is read again.
const ATTEMPTS: u32 = 5;

/// Clocks of file systems advance in steps, the coarsest in common use being 10 ms: two writes
/// within one step leave the same times.
const CLOCK_STEP: Duration = Duration::from_millis(50);

/// What tells one state of a file from another without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Stamp {
    len: u64,
    modified: Option<SystemTime>,
    #[cfg(unix)]
    inode: (u64, u64),
    #[cfg(unix)]
    changed: (i64, i64),
}

impl Stamp {
    /// The state of `path`, links followed.
    pub(crate) fn of(path: &Path) -> std::io::Result<Self> {
        std::fs::metadata(path).map(|metadata| Self::from(&metadata))
    }

    /// Whether any later change will show. Not so right after a change: another one may leave the
    /// same times.
    pub(crate) fn is_settled(&self) -> bool {
        let Ok(now) = SystemTime::UNIX_EPOCH.elapsed() else {
            return false;
        };
        #[cfg(unix)]
        let last = {
            let seconds = u64::try_from(self.changed.0).unwrap_or(0);
            Duration::new(seconds, u32::try_from(self.changed.1).unwrap_or(0))
        };
        #[cfg(not(unix))]
        let last = self
            .modified
            .and_then(|time| time.duration_since(SystemTime::UNIX_EPOCH).ok())
            .unwrap_or(now);
        now.checked_sub(last).is_some_and(|age| age > CLOCK_STEP)
    }
}

impl From<&Metadata> for Stamp {
    fn from(metadata: &Metadata) -> Self {
        #[cfg(unix)]
        use std::os::unix::fs::MetadataExt as _;
        Self {
            len: metadata.len(),
            modified: metadata.modified().ok(),
            #[cfg(unix)]
            inode: (metadata.dev(), metadata.ino()),
            #[cfg(unix)]
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

/// A file's content and the state it was read in.
#[derive(Debug)]
pub(crate) struct Source {
    pub(crate) bytes: Vec<u8>,
    pub(crate) stamp: Stamp,
    /// Whether the stamp stood for this content alone already when the content was read.
    pub(crate) settled: bool,
}

/// Reads the module at `path`.
///
/// # Errors
///
/// The file cannot be read; it is a directory, a pipe or a device; it is too large; it keeps
/// changing.
pub(crate) fn read(path: &Path) -> Result<Source> {
    for _ in 0..ATTEMPTS {
        let mut file = open(path).map_err(|error| unreadable(path, error))?;
        let stamp_of = |file: &File| file.metadata().map_err(|error| unreadable(path, error));
        let metadata = stamp_of(&file)?;
        check_type(&metadata, path)?;
        let stamp = Stamp::from(&metadata);
        let settled = stamp.is_settled();
        let mut bytes = Vec::new();
        // What is no module is looked at, so that its error can say what it is, and not held.
        read_some(&mut file, LOOK, &mut bytes).map_err(|error| unreadable(path, error))?;
        let whole = bytes.starts_with(MAGIC);
        if whole {
            // One byte more tells a file that grows, and it may grow to anything.
            let rest = (metadata.len() + 1).saturating_sub(LOOK);
            read_some(&mut file, rest, &mut bytes).map_err(|error| unreadable(path, error))?;
        }
        let unchanged = Stamp::from(&stamp_of(&file)?) == stamp;
        if unchanged && (!whole || bytes.len() as u64 == metadata.len()) {
            return Ok(Source {
                bytes,
                stamp,
                settled,
            });
        }
    }
    Err(unusable(path, "changes while it is read")
        .with_hint("write the module to another name and rename it into place"))
}

fn read_some(file: &mut File, most: u64, bytes: &mut Vec<u8>) -> std::io::Result<usize> {
    file.by_ref().take(most).read_to_end(bytes)
}

/// Opens without waiting: the open of a pipe blocks until there is a writer.
fn open(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOCTTY;
        options.custom_flags(flags.bits().cast_signed());
    }
    options.open(path)
}

fn check_type(metadata: &Metadata, path: &Path) -> Result<()> {
    let shown = path.display();
    if metadata.is_dir() {
        return Err(Error::new(
            ErrorKind::NotExecutable,
            format!("`{shown}` is a directory, not a module"),
        ));
    }
    if !metadata.is_file() {
        return Err(Error::new(
            ErrorKind::NotExecutable,
            format!("`{shown}` is no regular file, and only such can be a module"),
        ));
    }
    if metadata.len() > MAX_SIZE {
        return Err(unusable(
            path,
            &format!(
                "has {} bytes, more than the {MAX_SIZE} that a module may have",
                metadata.len()
            ),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn what_is_no_module_is_not_held_whole() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(b"not a module").unwrap();
        file.as_file().set_len(MAX_SIZE).unwrap();
        let source = read(file.path()).unwrap();
        assert_eq!(source.bytes.len() as u64, LOOK);
    }

    #[test]
    fn a_module_is() {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(MAGIC).unwrap();
        for length in [4, LOOK - 1, LOOK, LOOK + 1, 3 * LOOK] {
            file.as_file().set_len(length).unwrap();
            assert_eq!(read(file.path()).unwrap().bytes.len() as u64, length);
        }
    }
}
