//! The file system: what may be written, read, and not seen.

use std::os::unix::fs::{MetadataExt, symlink};
use std::path::PathBuf;

use libtest_mimic::Failed;
use prx_runtime_core::config::SandboxKind;
use prx_runtime_core::{ErrorKind, Exposure};

use crate::stage::{Stage, check, path, told};
use crate::{Entry, caller};

pub(crate) const TRIALS: &[Entry] = &[
    (
        "the_workspace_is_writable_and_what_is_around_it_not",
        workspace_and_around,
    ),
    ("writable_paths_are_writable", writable_paths),
    (
        "readonly_paths_are_not_writable_inside_writable_ones",
        readonly_inside_writable,
    ),
    ("hidden_paths_are_not_readable", hidden_paths),
    ("dots_lead_nowhere", dots),
    ("links_lead_nowhere", links),
    ("hard_links_lead_nowhere", hard_links),
    ("the_root_of_a_process_leads_nowhere", process_root),
    ("a_bind_of_a_bind_leads_nowhere", bind_of_a_bind),
    (
        "metadata_outside_stays_or_is_said_to_be_open",
        metadata_outside,
    ),
    ("a_planted_link_in_place_of_a_rule_is_refused", planted_rule),
    (
        "a_planted_link_in_place_of_the_workspace_is_refused",
        planted_workspace,
    ),
    ("a_link_that_gains_nothing_is_followed", harmless_link),
    ("the_whole_system_is_no_workspace", root_workspace),
    ("no_device_can_be_made_or_opened", devices),
];

fn workspace_and_around(stage: &Stage) -> Result<(), Failed> {
    stage.allows("echo text > file && mkdir -p a/b && mv file a/b && rm -r a")?;
    stage.outside_file("victim", "before")?;
    stage.denies("echo after > ../made")?;
    std::fs::remove_file(stage.outside().join("made"))?;
    stage.denies("echo before > ../victim")?;
    stage.denies("touch ../gone && rm ../gone")?;
    for line in [
        "rm ../victim",
        "mv ../victim ../moved",
        "truncate -s 0 ../victim",
        "ln -s x ../l",
    ] {
        stage.refuses(line)?;
    }
    let text = std::fs::read_to_string(stage.outside().join("victim"))?;
    check!(text == "before\n", "{text:?}");
    Ok(())
}

fn writable_paths(stage: &Stage) -> Result<(), Failed> {
    let shared = stage.outside().join("shared");
    std::fs::create_dir(&shared)?;
    let stage = with_rules(stage, &[("w", shared)]);
    stage.allows("echo text > ../shared/file")?;
    stage.refuses("echo text > ../file")?;
    Ok(())
}

fn readonly_inside_writable(stage: &Stage) -> Result<(), Failed> {
    let kept = stage.workspace().join("kept");
    std::fs::create_dir(&kept)?;
    std::fs::write(kept.join("file"), "text")?;
    stage.bare("echo more >> kept/file")?;
    let stage = with_rules(stage, &[("r", kept)]);
    stage.allows("cat kept/file")?;
    for line in [
        "echo text > kept/file",
        "rm kept/file",
        "echo text > kept/new",
        "mv kept other",
    ] {
        stage.refuses(line)?;
    }
    Ok(())
}

fn hidden_paths(stage: &Stage) -> Result<(), Failed> {
    let file = stage.outside_file("secrets/key", "the key")?;
    let directory = stage.outside().join("secrets");
    let single = stage.outside_file("single", "the key")?;
    let inner = stage.workspace().join(".env");
    std::fs::write(&inner, "the key")?;
    let line = |path: &PathBuf| format!("cat {}", path.display());
    let rules = [
        ("h", directory.clone()),
        ("h", single.clone()),
        ("h", inner.clone()),
    ];
    let stage = with_rules(stage, &rules);
    for path in [&file, &single, &inner] {
        stage.conceals(&line(path), "the key")?;
    }
    stage.refuses(&format!("ls {} | grep key", directory.display()))?;
    stage.refuses(&format!("echo x > {}/new", directory.display()))?;
    Ok(())
}

fn dots(stage: &Stage) -> Result<(), Failed> {
    stage.denies("echo x > ./../workspace/../escaped && rm ../escaped")?;
    Ok(())
}

fn links(stage: &Stage) -> Result<(), Failed> {
    stage.outside_file("target", "before")?;
    stage.denies("ln -sf ../target link && echo after > link")?;
    stage.denies("ln -sfn .. up && echo after > up/new")?;
    Ok(())
}

fn hard_links(stage: &Stage) -> Result<(), Failed> {
    stage.outside_file("target", "before")?;
    stage.denies("rm -f link; ln ../target link && echo after > link")?;
    let text = std::fs::read_to_string(stage.outside().join("target"))?;
    // The control run wrote it.
    check!(text == "after\n", "{text:?}");
    Ok(())
}

fn process_root(stage: &Stage) -> Result<(), Failed> {
    let outside = stage.outside().display().to_string();
    stage.denies(&format!("echo x > /proc/self/root{outside}/new"))?;
    stage.denies(&format!(
        "echo x > /proc/self/cwd/../new2 && test -e {outside}/new2"
    ))?;
    Ok(())
}

fn bind_of_a_bind(stage: &Stage) -> Result<(), Failed> {
    const MARK: &str = "PRX_TRIAL_WITH_MOUNTS";
    // One that the command makes.
    let line = "mkdir -p m n && unshare -m sh -c \
                'mount --bind .. m && mount --bind m n && echo x > n/new' && rm ../new";
    if !rustix::process::getuid().is_root() {
        stage.refuses(line)?;
        return Ok(());
    }
    stage.denies(line)?;
    // One that is there already: in a process that has mounts of its own, not to disturb the host's.
    if std::env::var_os(MARK).is_none() {
        return caller::again_by(
            &["unshare", "--mount", "--propagation", "private"],
            &stage.name("files::a_bind_of_a_bind_leads_nowhere"),
            (MARK, stage.outside()),
        );
    }
    for (from, to) in [("one", "two"), ("two", "three")] {
        let (from, to) = (stage.outside().join(from), stage.outside().join(to));
        std::fs::create_dir_all(&from)?;
        std::fs::create_dir_all(&to)?;
        let mounted = caller::command("mount")
            .arg("--bind")
            .args([&from, &to])
            .status()?;
        check!(mounted.success(), "mount: {mounted}");
    }
    for directory in ["one", "two", "three"] {
        stage.denies(&format!("echo x > ../{directory}/new"))?;
        if stage.kind() != SandboxKind::Landlock {
            stage.denies(&format!("chmod 0700 ../{directory}"))?;
        }
    }
    let inner = with_rules(stage, &[("w", stage.outside().join("two"))]);
    inner.allows("echo y > ../two/new")?;
    // To landlock it is one directory, whatever the name.
    if stage.kind() != SandboxKind::Landlock {
        inner.refuses("echo x > ../one/new")?;
    }
    Ok(())
}

fn metadata_outside(stage: &Stage) -> Result<(), Failed> {
    let file = stage.outside_file("file", "text")?;
    let mode = std::fs::metadata(&file)?.mode();
    let output = stage.confined("chmod 0600 ../file && touch -d 2001-01-01 ../file")?;
    let changed = std::fs::metadata(&file)?.mode() != mode;
    let said = output.isolation.open.contains(&Exposure::FileMetadata);
    check!(
        changed == said,
        "changed: {changed}, said to be open: {said}"
    );
    check!(
        !changed || stage.kind() == SandboxKind::Landlock,
        "only landlock cannot"
    );
    Ok(())
}

fn planted_rule(stage: &Stage) -> Result<(), Failed> {
    let inner = stage.workspace().join("inner");
    std::fs::create_dir(&inner)?;
    for access in ["w", "r", "h"] {
        let staged = with_rules(&Stage::new(stage.kind())?, &[]);
        let inner = staged.workspace().join("inner");
        std::fs::create_dir(&inner)?;
        let staged = with_rules(&staged, &[(access, inner)]);
        staged.allows("true")?;
        // Between two runs the directory is gone and a link stands in its place.
        std::fs::remove_dir(staged.workspace().join("inner"))?;
        symlink("/etc", staged.workspace().join("inner"))?;
        match staged.try_confined("true") {
            Ok(output) => return Err(format!("{access}: {}", told(&output)).into()),
            Err(error) => {
                check!(error.kind() == ErrorKind::Refused, "{access}: {error}");
                check!(error.to_string().contains("inner"), "{error}");
            }
        }
    }
    Ok(())
}

fn planted_workspace(stage: &Stage) -> Result<(), Failed> {
    let open = stage.outside().to_owned();
    let stage = with_rules(stage, &[("w", open)]);
    stage
        .allows("cd .. && mv workspace elsewhere && ln -s /etc workspace")
        .or_else(|_| -> Result<String, Failed> {
            // The workspace is a mount point in there and cannot be moved; then another way.
            std::fs::rename(stage.workspace(), stage.outside().join("elsewhere"))?;
            symlink("/etc", stage.workspace())?;
            Ok(String::new())
        })?;
    match stage.try_confined("true") {
        Ok(output) => Err(told(&output).into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            Ok(())
        }
    }
}

fn harmless_link(stage: &Stage) -> Result<(), Failed> {
    let open = stage.outside().to_owned();
    std::fs::rename(stage.workspace(), stage.outside().join("real"))?;
    symlink("real", stage.workspace())?;
    let stage = with_rules(stage, &[("w", open)]);
    stage.allows("echo text > file && cat ../real/file")?;
    Ok(())
}

fn root_workspace(stage: &Stage) -> Result<(), Failed> {
    use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};
    let request = ExecutionRequest::shell("true").working_dir("/");
    match crate::stage::block_on(stage.runtime()?.run(request)) {
        Ok(output) => Err(told(&output).into()),
        Err(error) => {
            check!(error.kind() == ErrorKind::Refused, "{error}");
            Ok(())
        }
    }
}

fn devices(stage: &Stage) -> Result<(), Failed> {
    if rustix::process::getuid().is_root() {
        stage.denies("mknod device c 1 3 && rm device")?;
        // A node that was there before opens nothing either.
        let output = stage.bare("mknod memory c 1 1")?;
        check!(output.success(), "{}", told(&output));
        stage.refuses("head -c 1 memory")?;
    }
    stage.refuses("ls /dev | grep -E '^(sd|vd|nvme|mem|kmsg|kvm)'")?;
    Ok(())
}

/// The stage with rules beside those of the default: `w`, `r` or `h`, and a path.
pub(crate) fn with_rules(stage: &Stage, rules: &[(&str, PathBuf)]) -> Stage {
    let mut changed = stage.config.clone();
    for (access, at) in rules {
        let sandbox = &mut changed.security.sandbox;
        match *access {
            "w" => sandbox.writable_paths.push(path(at)),
            "r" => sandbox.readonly_paths.push(path(at)),
            _ => sandbox.hidden_paths.push(path(at)),
        }
    }
    stage.under(changed)
}
