//! `cargo xtask fuzz`: the fuzz targets, for a bounded time.
//!
//! The targets are laid out as cargo-fuzz likes it, and `cargo +nightly fuzz run` works. It is not
//! needed: libFuzzer asks for instrumented code only, which the pinned compiler can make, while
//! what nightly adds (the sanitizers) looks for faults that safe code does not have. So this task
//! builds the targets itself and needs nothing but a C++ compiler, for libFuzzer.

use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::process::Cmd;
use crate::workspace::Workspace;

/// Where the targets are: a workspace of its own, so that nobody builds libFuzzer unasked.
const DIR: &str = "crates/runtime-core/fuzz";

/// Every target, as in the manifest there.
const TARGETS: &[&str] = &["config", "capture"];

/// What makes the code report to libFuzzer which way it went.
const INSTRUMENTED: &[&str] = &[
    "--cfg=fuzzing",
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Ccodegen-units=1",
    "-Cdebug-assertions=on",
    "-Coverflow-checks=on",
];

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// How long each target runs.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only this target; without it, all.
    target: Option<String>,
}

pub(crate) fn run(workspace: &Workspace, args: &Args) -> Result<()> {
    let targets: Vec<&str> = match &args.target {
        None => TARGETS.to_vec(),
        Some(name) => {
            let Some(target) = TARGETS.iter().find(|target| *target == name) else {
                bail!("no fuzz target `{name}`; there are: {}", TARGETS.join(", "));
            };
            vec![target]
        }
    };

    let dir = workspace.root().join(DIR);
    let host = host(workspace)?;
    let built = workspace.target_dir().join("fuzz");
    let mut cargo = Cmd::cargo(&dir)
        .env("RUSTFLAGS", INSTRUMENTED.join(" "))
        // With a target named, build scripts and macros stay free of instruments.
        .args(["build", "--release", "--target", &host])
        .arg("--target-dir")
        .arg(&built);
    for target in &targets {
        cargo = cargo.args(["--bin", target]);
    }
    cargo
        .run()
        .context("the fuzz targets do not build; libFuzzer needs a C++ compiler")?;

    for target in targets {
        let corpus = dir.join("corpus").join(target);
        let artifacts = dir.join("artifacts").join(target);
        for made in [&corpus, &artifacts] {
            std::fs::create_dir_all(made)
                .with_context(|| format!("{} cannot be made", made.display()))?;
        }
        let mut fuzzer = Cmd::new(built.join(&host).join("release").join(target), &dir)
            .arg(format!("-max_total_time={}", args.seconds))
            .args(["-timeout=10", "-print_final_stats=1"])
            .arg(format!(
                "-artifact_prefix={}{}",
                artifacts.display(),
                std::path::MAIN_SEPARATOR
            ))
            .arg(&corpus);
        let seeds = dir.join("seeds").join(target);
        if seeds.is_dir() {
            fuzzer = fuzzer.arg(seeds);
        }
        fuzzer.run().with_context(|| {
            format!(
                "`{target}` found an input, kept below {}",
                relative(&artifacts, workspace)
            )
        })?;
    }
    Ok(())
}

/// The triple this compiler builds for by itself.
fn host(workspace: &Workspace) -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let version = Cmd::new(rustc, workspace.root())
        .arg("-vV")
        .quiet()
        .read()?;
    version
        .lines()
        .find_map(|line| line.strip_prefix("host: "))
        .map(str::to_owned)
        .context("rustc does not say for what it builds")
}

fn relative(path: &Path, workspace: &Workspace) -> String {
    path.strip_prefix(workspace.root())
        .unwrap_or(path)
        .display()
        .to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_targets_are_those_of_the_manifest() {
        let manifest = crate::workspace::root().join(DIR).join("Cargo.toml");
        let manifest: toml::Table = std::fs::read_to_string(manifest).unwrap().parse().unwrap();
        let mut named: Vec<_> = manifest["bin"]
            .as_array()
            .unwrap()
            .iter()
            .map(|bin| bin["name"].as_str().unwrap())
            .collect();
        named.sort_unstable();
        let mut targets = TARGETS.to_vec();
        targets.sort_unstable();
        assert_eq!(named, targets);
    }
}
