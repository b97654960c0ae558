//! The command on a container engine: which image, and what is left afterwards.

use std::path::{Path, PathBuf};

use crate::images::{BUSYBOX, TestImage, WILFUL, docker};
use crate::registry::Registry;
use crate::stage::{outcome, prx, start, until};

/// Whether an engine answers. Says why the test is skipped where none does.
fn engine() -> bool {
    let answer = docker(&["version"]);
    if let Err(reason) = &answer {
        prx_fixtures::skip("docker", reason);
    }
    answer.is_ok()
}

fn image(image: &TestImage) -> &'static str {
    image.make().unwrap()
}

/// A configuration with these lines in `[runtime.docker]`.
fn configuration(dir: &Path, lines: &str) -> PathBuf {
    let text = format!(
        "[runtime]\nbackend = \"docker\"\n[runtime.docker]\nimage = \"{}\"\n{lines}\n",
        image(&BUSYBOX)
    );
    let file = dir.join("config.toml");
    std::fs::write(&file, text).unwrap();
    file
}

/// `prx-runtime run` by that configuration, in that directory, with these arguments.
fn run_by(config: &Path, workdir: &Path, args: &[&str]) -> std::process::Command {
    let mut command = prx(["run"]);
    command.arg("--config").arg(config);
    command.arg("--workdir").arg(workdir).args(args);
    command
}

fn is_there(container: &str) -> bool {
    docker(&["inspect", container]).is_ok()
}

#[test]
fn the_image_is_that_of_the_tool() {
    if !engine() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let lines = format!(
        "[runtime.docker.tool_images]\nspecial = {:?}",
        image(&WILFUL)
    );
    let config = configuration(dir.path(), &lines);
    for (tool, expected) in [
        (["--tool", "special"].as_slice(), "kept\n"),
        (&["--tool", "other"], "\n"),
        (&[], "\n"),
    ] {
        let mut command = run_by(&config, dir.path(), tool);
        let outcome = outcome(command.args(["--", "echo $IMAGE_VARIABLE"]));
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        assert_eq!(outcome.stdout, expected, "{tool:?}");
    }
}

#[test]
fn prune_removes_what_was_kept_and_nothing_of_the_living() {
    if !engine() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let config = configuration(dir.path(), "auto_remove = false");
    let kept = outcome(&mut run_by(
        &config,
        dir.path(),
        &["--", "echo out; exit 3"],
    ));
    assert_eq!((kept.code, kept.stdout.as_str()), (Some(3), "out\n"));
    let id = kept
        .stderr
        .strip_prefix("prx-runtime: kept ")
        .unwrap_or_else(|| panic!("it says what it kept: {kept:?}"))
        .trim();
    assert!(is_there(id));

    let workdir = tempfile::tempdir().unwrap();
    let mut living = start(&mut run_by(&config, workdir.path(), &["--", "sleep 300"]));
    let volume = format!("volume={}", workdir.path().display());
    let of_the_living = || docker(&["ps", "-q", "--no-trunc", "--filter", &volume]).unwrap();
    until("the living host has a container", || {
        !of_the_living().is_empty()
    });
    let theirs = of_the_living();
    // What other hosts here left counts as well.
    let prune = || {
        let mut command = prx(["prune"]);
        let pruned = outcome(command.arg("--config").arg(&config));
        assert_eq!(pruned.code, Some(0), "{pruned:?}");
        assert!(
            pruned.stdout.contains(" containers of dead hosts"),
            "{pruned:?}"
        );
    };
    prune();
    assert!(!is_there(id), "the owner of {id} is dead");
    assert_eq!(of_the_living(), theirs);
    assert!(living.try_wait().unwrap().is_none());

    living.kill().unwrap();
    living.wait().unwrap();
    prune();
    assert!(!is_there(&theirs), "the owner of {theirs} is dead");
}

#[test]
fn a_plan_pulls_nothing() {
    if !engine() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let Some(registry) = Registry::start(dir.path(), false) else {
        return;
    };
    registry.push("planned");
    let image = registry.name("planned");
    let is_pulled = || docker(&["image", "inspect", &image]).is_ok();
    let config = dir.path().join("config.toml");
    let text = format!(
        "[runtime.docker]\nimage = \"{image}\"\n[tools.custom.tool]\ntype = \"docker\"\n\
         command = \"true\"\nimage = \"{image}\"\n"
    );
    std::fs::write(&config, text).unwrap();
    for words in [
        ["plan", "--backend", "docker", "--", "true"].as_slice(),
        &["plan", "--backend", "auto", "--", "true"],
        &["run", "--backend", "docker", "--dry-run", "--", "true"],
        &["tools", "run", "--dry-run", "tool"],
    ] {
        let mut command = prx(["--config", config.to_str().unwrap()]);
        let planned = outcome(command.args(words));
        assert_eq!(planned.code, Some(0), "{planned:?}");
        assert!(planned.stdout.contains(&image), "{planned:?}");
        assert!(!is_pulled(), "{words:?}");
    }
    let mut command = prx(["--config", config.to_str().unwrap()]);
    let ran = outcome(command.args(["run", "--backend", "docker", "--", "true"]));
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(is_pulled());
    docker(&["rmi", &image]).unwrap();
}

/// The host itself in a container whose engine lets it make no namespace: what confines without one
/// confines all the same, and the host lives.
#[cfg(feature = "sandbox")]
#[test]
fn a_host_in_a_container_confines_by_landlock() {
    if !engine() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let config = dir.path().join("config.toml");
    std::fs::write(&config, "[security.sandbox]\nbackend = \"landlock\"\n").unwrap();
    let args = ["--backend", "native", "--", "echo confined; : > /outside"];
    let mut here = run_by(&config, dir.path(), &args);
    let here = outcome(&mut here);
    if here.code == Some(125) {
        println!("skipped: there is no landlock here: {}", here.stderr);
        return;
    }
    let program = format!("{}:/prx:ro", crate::stage::PRX);
    let work = format!("{}:/job", dir.path().display());
    let mut line = vec![
        "run",
        "--rm",
        "--network",
        "none",
        "-v",
        &program,
        "-v",
        &work,
    ];
    // What a dynamic program needs, where distributions keep it.
    let libraries: Vec<_> = ["/lib", "/lib64", "/usr"]
        .into_iter()
        .filter(|directory| Path::new(directory).exists())
        .map(|directory| format!("{directory}:{directory}:ro"))
        .collect();
    for mount in &libraries {
        line.extend(["-v", mount]);
    }
    line.extend(["-w", "/job", image(&BUSYBOX), "/prx", "run"]);
    line.extend(["--config", "/job/config.toml"]);
    let confined = docker(&[&line, &args[..]].concat());
    // The last word of the line is refused, and so it fails after it has spoken.
    let refused = confined.unwrap_err();
    assert!(refused.contains("/outside"), "{refused}");
    let args = ["--backend", "native", "--", "echo confined"];
    assert_eq!(docker(&[&line, &args[..]].concat()).unwrap(), "confined");
}
