//! Control groups, of both versions, where this process may make some.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use prx_runtime_core::{ExecutionId, Owner, OwnerState};

const PREFIX: &str = "prx-";
/// How often the removal of a group is tried whose processes the kernel is still taking apart.
const REMOVALS: u32 = 50;
const PAUSE: Duration = Duration::from_millis(2);

/// A group below which groups can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Parent {
    directory: PathBuf,
    version: Version,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    V1,
    V2,
}

/// Where the controllers are that limits need.
#[derive(Debug, Default)]
pub(crate) struct Cgroups {
    memory: Option<Parent>,
    pids: Option<Parent>,
}

impl Cgroups {
    /// Looks for places and tries them. Removes what dead hosts left there.
    pub(crate) fn find() -> Self {
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
        let find = |controller: &str| {
            candidates(&mounts, &own, controller)
                .into_iter()
                .find(|parent| parent.works(controller))
        };
        let found = Self {
            memory: find("memory"),
            pids: find("pids"),
        };
        for parent in [&found.memory, &found.pids].into_iter().flatten() {
            parent.sweep();
        }
        found
    }

    pub(crate) fn limits_memory(&self) -> bool {
        self.memory.is_some()
    }

    pub(crate) fn limits_processes(&self) -> bool {
        self.pids.is_some()
    }

    /// A group for one execution.
    pub(crate) fn create(
        &self,
        id: ExecutionId,
        memory: Option<u64>,
        processes: Option<u64>,
    ) -> io::Result<Group> {
        let name = format!("{PREFIX}{}-{id}", Owner::current());
        let mut group = Group {
            directories: Vec::new(),
            members: Vec::new(),
            events: None,
        };
        if let (Some(bytes), Some(parent)) = (memory, &self.memory) {
            let directory = group.make(parent, &name)?;
            let bytes = bytes.to_string();
            match parent.version {
                Version::V1 => {
                    fs::write(directory.join("memory.limit_in_bytes"), &bytes)?;
                    // Memory and swap together; kernels without swap accounting have no such file.
                    write_if_there(&directory.join("memory.memsw.limit_in_bytes"), &bytes)?;
                    group.events = Some(directory.join("memory.oom_control"));
                }
                Version::V2 => {
                    fs::write(directory.join("memory.max"), &bytes)?;
                    write_if_there(&directory.join("memory.swap.max"), "0")?;
                    group.events = Some(directory.join("memory.events"));
                }
            }
        }
        if let (Some(count), Some(parent)) = (processes, &self.pids) {
            let directory = group.make(parent, &name)?;
            fs::write(directory.join("pids.max"), count.to_string())?;
        }
        Ok(group)
    }
}

/// A group of one execution, in each hierarchy concerned. Dropping it removes it.
#[derive(Debug)]
pub(crate) struct Group {
    directories: Vec<PathBuf>,
    members: Vec<File>,
    events: Option<PathBuf>,
}

impl Group {
    /// Makes the group's directory below `parent`, unless it is there for the other controller.
    fn make(&mut self, parent: &Parent, name: &str) -> io::Result<PathBuf> {
        let directory = parent.directory.join(name);
        if !self.directories.contains(&directory) {
            fs::create_dir(&directory)?;
            self.directories.push(directory.clone());
            let members = directory.join("cgroup.procs");
            self.members
                .push(OpenOptions::new().write(true).open(members)?);
        }
        Ok(directory)
    }

    /// The files into which a process writes `0` to join.
    pub(crate) fn members(&self) -> io::Result<Vec<std::os::fd::OwnedFd>> {
        self.members
            .iter()
            .map(|file| Ok(file.try_clone()?.into()))
            .collect()
    }

    /// Whether the kernel ended a process of the group for want of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        self.events
            .as_ref()
            .and_then(|events| fs::read_to_string(events).ok())
            .is_some_and(|events| {
                events.lines().any(|line| {
                    line.strip_prefix("oom_kill ")
                        .is_some_and(|count| count.trim().parse::<u64>().is_ok_and(|n| n > 0))
                })
            })
    }
}

/// The numbers of open files.
pub(crate) fn numbers(files: &[std::os::fd::OwnedFd]) -> Vec<RawFd> {
    files.iter().map(AsRawFd::as_raw_fd).collect()
}

impl Drop for Group {
    fn drop(&mut self) {
        self.members.clear();
        for directory in &self.directories {
            if let Err(error) = remove(directory) {
                tracing::warn!(%error, group = %directory.display(), "a cgroup stays behind");
            }
        }
    }
}

fn remove(directory: &Path) -> io::Result<()> {
    let mut tries = 0;
    loop {
        match fs::remove_dir(directory) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            Err(_) if tries < REMOVALS => {
                tries += 1;
                std::thread::sleep(PAUSE);
            }
            result => return result,
        }
    }
}

impl Parent {
    /// Whether a group can be made here that has the controller and can be joined.
    fn works(&self, controller: &str) -> bool {
        let probe = self.directory.join(probe_name());
        if fs::create_dir(&probe).is_err() {
            return false;
        }
        let limit = match (controller, self.version) {
            ("memory", Version::V1) => "memory.limit_in_bytes",
            ("memory", Version::V2) => "memory.max",
            _ => "pids.max",
        };
        let open = |file: &Path| OpenOptions::new().write(true).open(file).is_ok();
        let mut works = open(&probe.join(limit)) && open(&probe.join("cgroup.procs"));
        if self.version == Version::V2 {
            // Whoever moves a process must be allowed to in what both groups have in common.
            works &= open(&self.directory.join("cgroup.procs"));
        }
        let _ = remove(&probe);
        works
    }

    /// Ends and removes the groups of hosts that are provably dead.
    fn sweep(&self) {
        let Ok(entries) = fs::read_dir(&self.directory) else {
            return;
        };
        for entry in entries.flatten() {
            let name = entry.file_name();
            let owner = name.to_str().and_then(owner_of);
            if owner.is_some_and(|owner| owner.state() == OwnerState::Dead) {
                // Its processes, if any, are ended by the sweep of processes.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }
}

/// The name of a group that is tried. No two are alike: other runtimes of this host may be trying at
/// the same time, and each removes its own.
fn probe_name() -> String {
    static TRIED: AtomicU64 = AtomicU64::new(0);
    let number = TRIED.fetch_add(1, Ordering::Relaxed);
    format!("{PREFIX}{}-probe{number}", Owner::current())
}

/// Whose group it is that has such a name.
fn owner_of(name: &str) -> Option<Owner> {
    let (owner, _) = name.strip_prefix(PREFIX)?.rsplit_once('-')?;
    owner.parse().ok()
}

/// The places where a group with `controller` might be made, the best first.
fn candidates(mounts: &str, own: &str, controller: &str) -> Vec<Parent> {
    let mut found = Vec::new();
    for line in mounts.lines() {
        let Some((mount, rest)) = line.split_once(" - ") else {
            continue;
        };
        let mut fields = mount.split(' ').skip(3);
        let (Some(root), Some(point)) = (fields.next(), fields.next()) else {
            continue;
        };
        let mut rest = rest.split(' ');
        let (kind, options) = (rest.next().unwrap_or(""), rest.nth(1).unwrap_or(""));
        let version = match kind {
            "cgroup" if options.split(',').any(|option| option == controller) => Version::V1,
            "cgroup2" => Version::V2,
            _ => continue,
        };
        let path = own.lines().find_map(|line| {
            let mut fields = line.splitn(3, ':').skip(1);
            let (controllers, path) = (fields.next()?, fields.next()?);
            let same = match version {
                Version::V1 => controllers.split(',').any(|name| name == controller),
                Version::V2 => controllers.is_empty(),
            };
            same.then_some(path)
        });
        // A mount may show only a part of the hierarchy.
        let Some(inner) = path.and_then(|path| {
            if root == "/" {
                Some(path)
            } else {
                path.strip_prefix(root)
            }
        }) else {
            continue;
        };
        let directory = Path::new(point).join(inner.trim_start_matches('/'));
        match version {
            Version::V1 => found.push(Parent { directory, version }),
            Version::V2 => {
                // A group with processes has no groups with controllers below it, so ours stand
                // beside the one that we are in; only the root has both.
                let top = directory == Path::new(point);
                let place = if top {
                    Some(directory.as_path())
                } else {
                    directory.parent()
                };
                let Some(place) = place else { continue };
                let controllers =
                    fs::read_to_string(place.join("cgroup.subtree_control")).unwrap_or_default();
                if controllers
                    .split_ascii_whitespace()
                    .any(|name| name == controller)
                {
                    found.push(Parent {
                        directory: place.to_owned(),
                        version,
                    });
                }
            }
        }
    }
    found
}

fn write_if_there(file: &Path, text: &str) -> io::Result<()> {
    match fs::write(file, text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_at_the_same_time_finds_the_same() {
        let alone = Cgroups::find();
        let look = || {
            let found = Cgroups::find();
            (found.limits_memory(), found.limits_processes())
        };
        std::thread::scope(|scope| {
            let lookers: Vec<_> = (0..8).map(|_| scope.spawn(look)).collect();
            for looker in lookers {
                let expected = (alone.limits_memory(), alone.limits_processes());
                assert_eq!(looker.join().unwrap(), expected);
            }
        });
    }

    #[test]
    fn groups_that_are_tried_have_names_of_their_own_and_an_owner() {
        let names = [probe_name(), probe_name()];
        assert_ne!(names[0], names[1]);
        for name in names {
            assert_eq!(owner_of(&name), Some(Owner::current()), "{name}");
        }
        assert_eq!(owner_of("session-1.scope"), None);
    }

    #[test]
    fn the_own_group_is_found_below_the_mount() {
        let mounts = "30 1 0:30 / /cg/memory rw - cgroup cgroup rw,memory\n\
            31 1 0:31 /outer /cg/pids rw - cgroup cgroup rw,pids\n";
        let own = "4:memory:/a/b\n5:pids:/outer/c\n0::/\n";
        let at = |controller| candidates(mounts, own, controller);
        let parent = |path: &str| Parent {
            directory: path.into(),
            version: Version::V1,
        };
        assert_eq!(at("memory"), [parent("/cg/memory/a/b")]);
        assert_eq!(at("pids"), [parent("/cg/pids/c")]);
        assert_eq!(at("cpu"), []);
    }

    #[test]
    fn groups_of_the_second_version_stand_where_the_controller_is_passed_on() {
        let mount = tempfile::tempdir().unwrap();
        let top = mount.path();
        fs::create_dir_all(top.join("user/session")).unwrap();
        fs::write(top.join("cgroup.subtree_control"), "cpu memory pids\n").unwrap();
        fs::write(top.join("user/cgroup.subtree_control"), "pids\n").unwrap();
        let mounts = format!("30 1 0:30 / {} rw - cgroup2 cgroup2 rw\n", top.display());
        let at = |own: &str, controller| {
            let found = candidates(&mounts, own, controller).into_iter();
            found.map(|parent| parent.directory).collect::<Vec<_>>()
        };
        // Beside the own group, whose processes keep it from having controllers below.
        assert_eq!(at("0::/user/session\n", "pids"), [top.join("user")]);
        assert!(at("0::/user/session\n", "memory").is_empty());
        assert_eq!(at("0::/user\n", "memory"), [top]);
        // Only the root of all has both processes and controllers.
        assert_eq!(at("0::/\n", "memory"), [top]);
    }
}
