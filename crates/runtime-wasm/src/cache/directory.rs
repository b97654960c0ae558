//! The directory of the cache: private, bounded, and changed only by renaming whole files into it.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use prx_runtime_core::Result;
use prx_runtime_core::config::WasmConfig;

use super::{Key, entry};

const EXTENSION: &str = "cwasm";
/// The start of the name of a file that is being written.
const UNFINISHED: &str = ".unfinished-";
/// After this time whoever was writing a file is gone.
const ABANDONED: Duration = Duration::from_secs(3600);

/// The cache of compiled modules.
#[derive(Debug)]
pub(crate) struct DiskCache {
    directory: PathBuf,
    /// That directory and those above it.
    above: Vec<Identity>,
    /// In bytes, over all entries.
    max_size: u64,
}

/// What is the same for all names of one directory.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

impl DiskCache {
    /// The cache that `config` asks for. `None` where it asks for none, and where there is no
    /// directory that is this user's alone; the log says why.
    ///
    /// # Errors
    ///
    /// The configured path cannot be expanded.
    pub(crate) fn open(config: &WasmConfig) -> Result<Option<Self>> {
        let max_size = config.cache_size.0;
        if max_size == 0 {
            return Ok(None);
        }
        let directory = match &config.cache_path {
            Some(path) => path.expand()?,
            None => match default_directory() {
                Some(directory) => directory,
                None => {
                    tracing::info!("compiled modules are not kept: there is no home directory");
                    return Ok(None);
                }
            },
        };
        Ok(
            match make_private(&directory).and_then(|()| settle(&directory)) {
                Ok((directory, above)) => Some(Self {
                    directory,
                    above,
                    max_size,
                }),
                Err(problem) => {
                    tracing::warn!(
                        directory = %directory.display(),
                        problem,
                        "compiled modules are not kept"
                    );
                    None
                }
            },
        )
    }

    /// Where the entries are.
    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Whether whoever may write below `directory` can write entries, which are executed as they
    /// are.
    pub(crate) fn lies_in(&self, directory: &Path) -> bool {
        identity(directory).is_ok_and(|identity| self.above.contains(&identity))
    }

    /// The file of a key, whether it is there or not.
    pub(crate) fn path(&self, key: &Key) -> PathBuf {
        self.directory.join(format!("{key}.{EXTENSION}"))
    }

    /// The artifact of a key: the open file, and how much of it is the artifact. A damaged entry is
    /// removed.
    pub(crate) fn get(&self, key: &Key) -> Option<(File, u64)> {
        let path = self.path(key);
        let mut file = match open_own(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return None,
            Err(error) => {
                self.discard(key, &error.to_string());
                return None;
            }
        };
        match entry::verify(&mut file, key) {
            Ok(len) => {
                // The time of the last use; nothing depends on it but which entry goes first.
                let _ = file.set_modified(SystemTime::now());
                Some((file, len))
            }
            Err(problem) => {
                self.discard(key, &problem);
                None
            }
        }
    }

    /// Removes the entry of a key, because of `problem`.
    pub(crate) fn discard(&self, key: &Key, problem: &str) {
        let path = self.path(key);
        tracing::warn!(entry = %path.display(), problem, "compiling again: a cached module is unusable");
        let _ = fs::remove_file(path);
    }

    /// Keeps an artifact. A failure is logged and has no other consequence.
    pub(crate) fn put(&self, key: &Key, artifact: &[u8]) {
        if artifact.len() as u64 > self.max_size {
            tracing::info!(
                size = artifact.len(),
                "a compiled module is not kept: it alone exceeds runtime.wasm.cache_size"
            );
            return;
        }
        if let Err(error) = self.try_put(key, artifact) {
            tracing::warn!(%error, "a compiled module could not be kept");
        }
    }

    fn try_put(&self, key: &Key, artifact: &[u8]) -> io::Result<()> {
        // Made for the owner alone.
        let mut file = tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.directory)?;
        entry::write(&mut file, key, artifact)?;
        file.persist(self.path(key)).map_err(|error| error.error)?;
        self.shrink(&self.path(key))
    }

    /// Removes what was used longest ago until the rest is small enough. What is mapped somewhere
    /// stays there.
    fn shrink(&self, newest: &Path) -> io::Result<()> {
        let mut entries = Vec::new();
        let mut total = 0;
        for found in fs::read_dir(&self.directory)? {
            let found = found?;
            let Ok(metadata) = found.metadata() else {
                continue;
            };
            let used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
            let path = found.path();
            if path
                .extension()
                .is_some_and(|extension| extension == EXTENSION)
            {
                total += metadata.len();
                entries.push((used, metadata.len(), path));
            } else if found.file_name().to_string_lossy().starts_with(UNFINISHED)
                && used.elapsed().is_ok_and(|age| age > ABANDONED)
            {
                let _ = fs::remove_file(path);
            }
        }
        entries.sort();
        for (_, size, path) in entries {
            if total <= self.max_size {
                break;
            }
            if path != newest && fs::remove_file(&path).is_ok() {
                total -= size;
            }
        }
        Ok(())
    }
}

/// The cache directory of the user, as the platform has it.
fn default_directory() -> Option<PathBuf> {
    let absolute = |name: &str| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    let base = if cfg!(windows) {
        absolute("LOCALAPPDATA")
    } else if cfg!(target_os = "macos") {
        absolute("HOME").map(|home| home.join("Library/Caches"))
    } else {
        absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
    };
    base.map(|base| base.join("prx-runtime").join("wasm"))
}

/// The directory by a name without links, whoever may change those, and all that it lies in.
fn settle(directory: &Path) -> Result<(PathBuf, Vec<Identity>), String> {
    let settled = fs::canonicalize(directory).map_err(|error| error.to_string())?;
    // A link may have been exchanged since.
    make_private(&settled)?;
    let above = || -> io::Result<Vec<_>> {
        let mut above: Vec<_> = settled
            .ancestors()
            .map(identity)
            .collect::<io::Result<_>>()?;
        // Who may exchange a link decides where the next process looks.
        for holder in holders_of_links(directory)? {
            for directory in fs::canonicalize(holder)?.ancestors() {
                above.push(identity(directory)?);
            }
        }
        Ok(above)
    };
    let above = above().map_err(|error| error.to_string())?;
    Ok((settled, above))
}

/// The directories in which the links lie that `path` leads through.
fn holders_of_links(path: &Path) -> io::Result<Vec<PathBuf>> {
    let mut holders = Vec::new();
    let mut ways = vec![std::path::absolute(path)?];
    while let Some(way) = ways.pop() {
        for step in way.ancestors() {
            let Some(holder) = step.parent() else {
                continue;
            };
            // The kernel follows no more.
            if fs::symlink_metadata(step)?.is_symlink() && holders.len() < 40 {
                holders.push(holder.to_owned());
                ways.push(holder.join(fs::read_link(step)?));
            }
        }
    }
    Ok(holders)
}

#[cfg(unix)]
fn identity(directory: &Path) -> io::Result<Identity> {
    use std::os::unix::fs::MetadataExt as _;

    fs::metadata(directory).map(|metadata| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
fn identity(directory: &Path) -> io::Result<Identity> {
    fs::canonicalize(directory)
}

#[cfg(unix)]
fn make_private(directory: &Path) -> Result<(), String> {
    use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};

    if let Some(parent) = directory.parent() {
        fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    }
    match fs::DirBuilder::new().mode(0o700).create(directory) {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error.to_string()),
        _ => {}
    }
    let metadata = fs::symlink_metadata(directory).map_err(|error| error.to_string())?;
    if !metadata.is_dir() {
        return Err("it is no directory".to_owned());
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("it belongs to another user".to_owned());
    }
    if metadata.mode() & 0o077 != 0 {
        return Err(format!(
            "others may use it (mode {:o}); make it 700",
            metadata.mode() & 0o777
        ));
    }
    Ok(())
}

/// Where a user's directories are private by their place, as on Windows.
#[cfg(not(unix))]
fn make_private(directory: &Path) -> Result<(), String> {
    fs::create_dir_all(directory).map_err(|error| error.to_string())
}

/// Opens a file that this user wrote, and no link.
fn open_own(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
        options.custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    let metadata = file.metadata()?;
    #[cfg(unix)]
    let own = {
        use std::os::unix::fs::MetadataExt as _;
        metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o022 == 0
    };
    #[cfg(not(unix))]
    let own = true;
    if metadata.is_file() && own {
        Ok(file)
    } else {
        Err(io::Error::other("it is no regular file of this user's own"))
    }
}
