//! Whether a path led to one and the same directory all the time, and not only whenever it was
//! looked at: who may rename in a parent directory can exchange a directory for a link and back,
//! between two looks, just when the engine resolves the path.
//!
//! The kernel is asked to tell of each directory of the path when it is moved, from before the path
//! is judged until it has been mounted. Directories are told apart by what they are, not by name:
//! one that is not moved cannot come to stand for another.

use std::collections::HashMap;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

/// Watches the directories of paths. Clones share one queue of the kernel.
#[derive(Debug, Clone, Default)]
pub(crate) struct Watcher(Arc<Mutex<Option<Queue>>>);

/// That of this process, while anybody has it: users have few queues.
static SHARED: Mutex<Weak<Mutex<Option<Queue>>>> = Mutex::new(Weak::new());

#[derive(Debug)]
struct Queue {
    kernel: OwnedFd,
    /// What is watched, by the kernel's number for it.
    watched: HashMap<i32, Watched>,
}

#[derive(Debug, Default)]
struct Watched {
    /// How many watches need it.
    users: usize,
    /// How often it was moved.
    moves: u64,
}

/// Every directory of one path, from the moment this was made. Dropping it ends the watch.
#[derive(Debug)]
pub(crate) struct Watch {
    watcher: Watcher,
    /// The kernel's number of each, and how often it had been moved.
    directories: Vec<(i32, u64)>,
}

impl Watcher {
    /// The one that all have who ask here at the same time.
    pub(crate) fn shared() -> Self {
        let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(queue) = shared.upgrade() {
            return Self(queue);
        }
        let fresh = Self::default();
        *shared = Arc::downgrade(&fresh.0);
        fresh
    }

    /// Watches every directory of `path`, which is absolute and has no links in it.
    ///
    /// # Errors
    ///
    /// Those of the kernel: a directory that the caller may not read, or too many watches.
    pub(crate) fn watch(&self, path: &Path) -> rustix::io::Result<Watch> {
        // Made first: where the rest fails, it is dropped after the lock.
        let mut watch = Watch {
            watcher: self.clone(),
            directories: Vec::new(),
        };
        let mut guard = self.lock();
        let queue = match &mut *guard {
            Some(queue) => queue,
            none => none.insert(Queue::open()?),
        };
        queue.read();
        // From the top: a directory is found through those that are watched already.
        let mut directories: Vec<_> = path.ancestors().collect();
        directories.reverse();
        // Nobody moves the root.
        for directory in directories.into_iter().skip(1) {
            watch.directories.push(queue.add(directory)?);
        }
        Ok(watch)
    }

    /// A panic while the lock is held leaves counts that are still counts.
    fn lock(&self) -> MutexGuard<'_, Option<Queue>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Queue {
    fn open() -> rustix::io::Result<Self> {
        Ok(Self {
            kernel: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            watched: HashMap::new(),
        })
    }

    fn add(&mut self, directory: &Path) -> rustix::io::Result<(i32, u64)> {
        let flags = WatchFlags::MOVE_SELF | WatchFlags::DONT_FOLLOW | WatchFlags::ONLYDIR;
        let number = inotify::add_watch(&self.kernel, directory, flags)?;
        let watched = self.watched.entry(number).or_default();
        watched.users += 1;
        Ok((number, watched.moves))
    }

    /// Takes what the kernel has told so far.
    fn read(&mut self) {
        let mut buffer = [MaybeUninit::uninit(); 4096];
        let mut events = inotify::Reader::new(&self.kernel, &mut buffer);
        loop {
            match events.next() {
                // Something was lost: anything may have been moved.
                Ok(event) if event.events().contains(ReadFlags::QUEUE_OVERFLOW) => {
                    self.watched.values_mut().for_each(Watched::moved);
                }
                // Moved, unmounted or gone.
                Ok(event) => {
                    if let Some(watched) = self.watched.get_mut(&event.wd()) {
                        watched.moved();
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return,
                Err(_) => {
                    self.watched.values_mut().for_each(Watched::moved);
                    return;
                }
            }
        }
    }

    fn release(&mut self, number: i32) {
        let Some(watched) = self.watched.get_mut(&number) else {
            return;
        };
        watched.users -= 1;
        if watched.users == 0 {
            self.watched.remove(&number);
            // A directory that is gone took its watch along.
            let _ = inotify::remove_watch(&self.kernel, number);
        }
    }
}

impl Watched {
    fn moved(&mut self) {
        self.moves += 1;
    }
}

impl Watch {
    /// Whether none of the directories was moved since.
    pub(crate) fn is_still(&self) -> bool {
        let mut guard = self.watcher.lock();
        let Some(queue) = guard.as_mut() else {
            return false;
        };
        queue.read();
        self.directories.iter().all(|(number, moves)| {
            queue
                .watched
                .get(number)
                .is_some_and(|watched| watched.moves == *moves)
        })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let mut guard = self.watcher.lock();
        if let Some(queue) = guard.as_mut() {
            for (number, _) in &self.directories {
                queue.release(*number);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_is_moved_and_comes_back_was_moved() {
        let dir = tempfile::tempdir().unwrap();
        let top = fs::canonicalize(dir.path()).unwrap();
        let (parent, other) = (top.join("parent"), top.join("other"));
        let path = parent.join("work");
        fs::create_dir_all(&path).unwrap();
        let watcher = Watcher::default();
        let there_and_back = |from: &Path| {
            fs::rename(from, &other).unwrap();
            fs::rename(&other, from).unwrap();
        };
        for moved in [&parent, &path] {
            let watch = watcher.watch(&path).unwrap();
            // What happens in the directories is nothing.
            fs::write(path.join("file"), "").unwrap();
            fs::create_dir(top.join("new")).unwrap();
            fs::remove_dir(top.join("new")).unwrap();
            assert!(watch.is_still());
            there_and_back(moved);
            assert!(!watch.is_still(), "{}", moved.display());
            // What was before does not count.
            let later = watcher.watch(&path).unwrap();
            assert!(later.is_still() && !watch.is_still());
            drop(watch);
            assert!(later.is_still());
            there_and_back(moved);
            assert!(!later.is_still());
        }
        let left = watcher.lock().as_ref().map(|queue| queue.watched.len());
        assert_eq!(left, Some(0), "no watch is left");
    }

    #[test]
    fn all_who_watch_share_one_queue() {
        let (one, other) = (Watcher::shared(), Watcher::shared());
        assert!(Arc::ptr_eq(&one.0, &other.0));
    }

    #[test]
    fn a_link_is_not_watched() {
        let dir = tempfile::tempdir().unwrap();
        let link = dir.path().join("link");
        std::os::unix::fs::symlink("/etc", &link).unwrap();
        assert!(Watcher::default().watch(&link).is_err());
    }
}
