//! Keys and tokens, which nobody has to name to have them hidden.

use std::path::{Path, PathBuf};

use libtest_mimic::Failed;
use prx_runtime_core::{ErrorKind, ExecutionRequest, RuntimeAdapter};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stage::{Stage, check, told};
use crate::{Entry, caller};

pub(crate) const TRIALS: &[Entry] = &[
    ("at_home_they_are_hidden", at_home),
    (
        "at_the_home_of_the_account_they_are_hidden",
        at_home_of_the_account,
    ),
    (
        "without_descriptors_they_are_hidden_or_nothing_runs",
        short_of_descriptors,
    ),
];

/// What lies at a home.
const SECRETS: [&str; 7] = [
    ".ssh/id",
    ".aws/credentials",
    ".gnupg/key",
    ".kube/config",
    ".docker/config.json",
    ".netrc",
    ".config/gh/hosts.yml",
];

/// The home of this process, if it is one that a trial made for itself by that name.
fn own_home(name: &str) -> Option<PathBuf> {
    let home = PathBuf::from(std::env::var_os("HOME")?);
    home.ends_with(name).then_some(home)
}

/// Runs the trial again, by `way`, with a home of that name, which has nothing in it.
fn again_at_home(stage: &Stage, way: &[&str], trial: &str, name: &str) -> Result<(), Failed> {
    let home = stage.outside().join(name);
    std::fs::create_dir(&home)?;
    caller::again_by(way, &stage.name(trial), ("HOME", &home))
}

fn conceals_all(stage: &Stage, home: &Path) -> Result<(), Failed> {
    for secret in SECRETS {
        let file = home.join(secret);
        std::fs::create_dir_all(file.parent().unwrap_or(home))?;
        std::fs::write(&file, "the key")?;
        stage.conceals(&format!("cat {}", file.display()), "the key")?;
    }
    // What is beside them is not hidden.
    std::fs::write(home.join("plain"), "text")?;
    stage.allows(&format!("cat {}/plain", home.display()))?;
    Ok(())
}

fn at_home(stage: &Stage) -> Result<(), Failed> {
    // In a process that has a home of its own: the one of the caller may have no secrets.
    let Some(home) = own_home("trial-home") else {
        let trial = "secrets::at_home_they_are_hidden";
        return again_at_home(stage, &[], trial, "trial-home");
    };
    conceals_all(stage, &home)?;
    if rustix::process::getuid().is_root() {
        stage.conceals("cat /etc/shadow", "root:")?;
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a skip states its reason")]
fn at_home_of_the_account(stage: &Stage) -> Result<(), Failed> {
    // With a home made for the occasion, which takes mounts of its own and so root.
    let accounts = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let root = |line: &str| line.split(':').nth(2) == Some("0");
    let home = accounts
        .lines()
        .find(|line| root(line))
        .and_then(|line| line.split(':').nth(5))
        .map(PathBuf::from);
    let Some(home) = home.filter(|_| rustix::process::getuid().is_root()) else {
        return Ok(());
    };
    if home == Path::new("/") || stage.outside().starts_with(&home) {
        return Ok(());
    }
    if own_home("kept-home").is_none() {
        let separate = caller::command("unshare")
            .args(["--mount", "true"])
            .output()?;
        if !separate.status.success() {
            println!("skipped: root may have no mounts of its own here");
            return Ok(());
        }
        let trial = "secrets::at_the_home_of_the_account_they_are_hidden";
        let way = ["unshare", "--mount", "--propagation", "private"];
        return again_at_home(stage, &way, trial, "kept-home");
    }
    let mounted = caller::command("mount")
        .args(["-t", "tmpfs", "trial"])
        .arg(&home)
        .status()?;
    check!(mounted.success(), "mount: {mounted}");
    conceals_all(stage, &home)
}

fn short_of_descriptors(stage: &Stage) -> Result<(), Failed> {
    // In a process of its own: the limit holds for all of it.
    let Some(home) = own_home("poor-home") else {
        let trial = "secrets::without_descriptors_they_are_hidden_or_nothing_runs";
        return again_at_home(stage, &[], trial, "poor-home");
    };
    let file = home.join(".ssh/id");
    std::fs::create_dir(home.join(".ssh"))?;
    std::fs::write(&file, "the key")?;
    let line = format!("cat {}", file.display());
    let control = stage.bare(&line)?;
    check!(control.stdout.to_text() == "the key", "{}", told(&control));
    let runtime = stage.runtime()?;
    let executor = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let whole = getrlimit(Resource::Nofile);
    let open = u64::try_from(std::fs::read_dir("/proc/self/fd")?.count())?;
    let mut refusals = Vec::new();
    for spare in 0..64 {
        let poor = Rlimit {
            current: Some(open + spare),
            maximum: whole.maximum,
        };
        setrlimit(Resource::Nofile, poor)?;
        let request = ExecutionRequest::shell(&line).working_dir(stage.workspace());
        let result = executor.block_on(runtime.run(request));
        setrlimit(Resource::Nofile, whole)?;
        match result {
            Ok(output) => {
                let shown = output.stdout.to_text().contains("the key");
                check!(!shown, "with {spare} to spare: {}", told(&output));
            }
            Err(error) => refusals.push(error),
        }
    }
    let said = refusals.iter().any(|error| {
        error.kind() == ErrorKind::Exhausted && error.to_string().contains("a rule of its own")
    });
    check!(said, "{refusals:?}");
    stage.conceals(&line, "the key")
}
