//! `config`: write it, check it, show it.

use std::path::Path;
use std::process::Command;

use crate::stage::{outcome, prx};

fn config_in(directory: &Path, args: &[&str]) -> Command {
    let mut command = prx(["config"]);
    command.args(args).current_dir(directory);
    command
}

#[test]
fn what_init_writes_is_right_and_is_not_overwritten() {
    let directory = tempfile::tempdir().unwrap();
    let config = |args: &[&str]| outcome(&mut config_in(directory.path(), args));
    assert_eq!(config(&["init", "c.toml"]).code, Some(0));
    let checked = config(&["check", "c.toml"]);
    assert_eq!(
        (checked.code, checked.stdout.as_str()),
        (Some(0), "c.toml: ok\n")
    );

    let file = directory.path().join("c.toml");
    std::fs::write(&file, "# mine\n").unwrap();
    let refused = config(&["init", "c.toml"]);
    assert_eq!(refused.code, Some(125));
    assert_eq!(
        refused.stderr,
        "prx-runtime: `c.toml` is there already (hint: use --force to overwrite it)\n"
    );
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
    assert_eq!(config(&["init", "--force", "c.toml"]).code, Some(0));
    assert_ne!(std::fs::read_to_string(&file).unwrap(), "# mine\n");
}

#[test]
fn init_writes_where_the_configuration_is_looked_for() {
    let home = tempfile::tempdir().unwrap();
    let command = |args: &[&str]| {
        let mut command = config_in(home.path(), args);
        command
            .env_remove("XDG_CONFIG_HOME")
            .env("HOME", home.path());
        outcome(&mut command)
    };
    assert_eq!(command(&["init"]).code, Some(0));
    let file = home.path().join(".config/openprx/config.toml");
    assert!(file.is_file());
    let text = "[runtime]\nmax_output_bytes = 12345\n";
    std::fs::write(file, text).unwrap();
    assert!(
        command(&["show"])
            .stdout
            .contains("max_output_bytes = 12345")
    );
}

#[test]
fn check_names_the_place() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(
        directory.path().join("c.toml"),
        "\n[runtime]\nbackand = \"native\"\n",
    )
    .unwrap();
    let outcome = outcome(&mut config_in(directory.path(), &["check", "c.toml"]));
    assert_ne!(outcome.code, Some(0));
    assert!(
        outcome
            .stderr
            .contains("c.toml:3: unknown key `runtime.backand`"),
        "{outcome:?}"
    );
}

#[test]
fn show_has_the_defaults_and_hides_values() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[runtime.native.env]\nAPI_KEY = \"sesame\"\n";
    std::fs::write(directory.path().join("c.toml"), text).unwrap();
    let mut command = config_in(directory.path(), &["show", "--config", "c.toml"]);
    let outcome = outcome(&mut command);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    assert!(outcome.stdout.contains("default_timeout_secs = 60"));
    assert!(outcome.stdout.contains("API_KEY"));
    assert!(!outcome.stdout.contains("sesame"));
}

#[test]
fn the_schema_is_json_and_knows_our_sections() {
    let outcome = outcome(&mut prx(["config", "schema"]));
    assert_eq!(outcome.code, Some(0));
    let schema: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    for section in ["runtime", "security", "tools"] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
}

#[test]
fn a_file_of_the_current_directory_is_not_trusted() {
    let directory = tempfile::tempdir().unwrap();
    let text = "[runtime]\nbackend = \"nonsense\"\n";
    std::fs::write(directory.path().join("config.toml"), text).unwrap();
    let mut command = prx(["run", "--", "echo", "ran"]);
    let outcome = outcome(command.current_dir(directory.path()));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), "ran\n"));
}

#[test]
fn one_that_cannot_be_looked_at_is_not_taken_for_none() {
    let directory = tempfile::tempdir().unwrap();
    let ours = directory.path().join("openprx");
    std::fs::create_dir(&ours).unwrap();
    let file = ours.join("config.toml");
    // Where it leads is not there, say because a disk is not mounted yet.
    std::os::unix::fs::symlink("/nonexistent/config.toml", &file).unwrap();
    for args in [
        ["run", "--", "true"].as_slice(),
        &["config", "check"],
        &["plan", "--", "true"],
    ] {
        let mut command = prx(args.iter().copied());
        let outcome = outcome(command.env("XDG_CONFIG_HOME", directory.path()));
        assert_eq!(outcome.code, Some(125), "{outcome:?}");
        let named = outcome.stderr.contains(file.to_str().unwrap());
        assert!(named, "{}", outcome.stderr);
    }
    // A home that is no directory holds none.
    let mut command = prx(["config", "check"]);
    let outcome = outcome(command.env("XDG_CONFIG_HOME", "/dev/null"));
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}
