//! A guest reads and writes while another process swaps a directory for a symbolic link that leads
//! out of what is granted.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use prx_fixtures::Guest;
use prx_runtime_core::config::Config;
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};
use rustix::fs::{CWD, RenameFlags, renameat_with};

use crate::driver::config_path;

/// What is inside of what is granted, and what is not.
const INSIDE: &str = "inside";
const OUTSIDE: &str = "outside";

/// A workspace in which `dir` is now a directory and now a link to one outside.
#[derive(Debug)]
pub struct Race {
    root: tempfile::TempDir,
}

/// What a race came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Raced {
    /// Reads and writes of the guest.
    pub tries: u64,
    /// Those that found the directory.
    pub inside: u64,
    /// Reads that found what is outside, and files of the guest that are outside.
    pub escaped: u64,
    /// How often the directory and the link were swapped.
    pub swaps: u64,
}

impl Race {
    /// Makes the directories.
    ///
    /// # Panics
    ///
    /// They cannot be made.
    pub fn new() -> Self {
        let root = tempfile::tempdir().expect("a temporary directory");
        let race = Self { root };
        for (directory, text) in [("workspace/dir", INSIDE), ("outside", OUTSIDE)] {
            let directory = race.path(directory);
            fs::create_dir_all(&directory).expect("a directory");
            fs::write(directory.join("file"), text).expect("a file");
        }
        symlink(race.path("outside"), race.path("workspace/other")).expect("a link");
        race
    }

    /// The configuration: the workspace is granted, for reading and writing.
    pub fn config(&self, mut config: Config) -> Config {
        let wasm = &mut config.runtime.wasm;
        wasm.timeout_secs = 300;
        wasm.module_path = config_path(&prx_fixtures::guests());
        wasm.capabilities.filesystem_read = Vec::new();
        wasm.capabilities.filesystem_write = vec!["/workspace".to_owned()];
        wasm.capabilities.env_vars = Vec::new();
        config.runtime.env_whitelist = Vec::new();
        config
    }

    /// Lets a guest read and write until `time` is over and it has tried at least `tries` times,
    /// while the directory is being swapped.
    ///
    /// # Panics
    ///
    /// The guest cannot be run.
    pub async fn run(&self, adapter: &dyn RuntimeAdapter, time: Duration, tries: u64) -> Raced {
        let over = Arc::new(AtomicBool::new(false));
        let swapper = thread::spawn({
            let over = Arc::clone(&over);
            let (directory, link) = (self.path("workspace/dir"), self.path("workspace/other"));
            move || swap(&directory, &link, &over)
        });
        let begun = Instant::now();
        let mut raced = Raced::default();
        while begun.elapsed() < time || raced.tries < tries {
            let request = ExecutionRequest::program(Guest::BOX.name())
                .args(["race", "dir", ROUNDS])
                .working_dir(self.path("workspace"))
                .timeout(Duration::from_secs(120));
            let output = adapter.run(request).await.expect("the guest runs");
            let text = output.stdout.to_text();
            let counts: Vec<u64> = text
                .split_whitespace()
                .filter_map(|count| count.parse().ok())
                .collect();
            let [tries, inside, outside] = counts[..] else {
                panic!("the guest said: {text}{}", output.stderr.to_text());
            };
            raced.tries += tries;
            raced.inside += inside;
            raced.escaped += outside;
        }
        over.store(true, Ordering::SeqCst);
        raced.swaps = swapper.join().expect("the swapper ends");
        let left = fs::read_dir(self.path("outside"))
            .expect("what is outside")
            .count();
        raced.escaped += left as u64 - 1;
        let untouched = fs::read_to_string(self.path("outside/file")).expect("the file outside");
        raced.escaped += u64::from(untouched != OUTSIDE);
        raced
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }
}

impl Default for Race {
    fn default() -> Self {
        Self::new()
    }
}

/// How often a guest reads and writes in one run.
const ROUNDS: &str = "2500";

/// Swaps two names until it is over, and says how often.
fn swap(directory: &Path, link: &Path, over: &AtomicBool) -> u64 {
    let mut swaps = 0;
    while !over.load(Ordering::SeqCst) {
        renameat_with(CWD, directory, CWD, link, RenameFlags::EXCHANGE).expect("they are swapped");
        swaps += 1;
        if swaps % 64 == 0 {
            // So that the guest finds each of the two states to be long enough to be caught in.
            thread::yield_now();
        }
    }
    swaps
}
