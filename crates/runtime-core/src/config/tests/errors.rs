//! What is said about wrong files, word for word: file, line, key, what was found, what is allowed.

use super::super::Config;
use super::error;

/// Each text, and what is said about it after the name of the file.
fn check(cases: &[(&str, &str)]) {
    for (text, said) in cases {
        assert_eq!(error(text), format!("config.toml:{said}"), "{text}");
    }
}

#[test]
fn unknown_keys() {
    check(&[
        (
            "[runtime]\nbackend = \"auto\"\n\n[runtime.docker]\n\nimage = \"x\"\nmemry_limit = \"1g\"\n",
            "7: unknown key `runtime.docker.memry_limit`; did you mean `memory_limit`?",
        ),
        (
            "[runtime.dokcer]\n",
            "1: unknown key `runtime.dokcer`; did you mean `docker`?",
        ),
        (
            "runtime = { native = { shel = \"/bin/sh\" } }\n",
            "1: unknown key `runtime.native.shel`; did you mean `shell`?",
        ),
        (
            "[tools.custom.\"a b\"]\ntype = \"wasm\"\nmodul = \"x\"\n",
            "3: unknown key `tools.custom.\"a b\".modul`; did you mean `module`?",
        ),
        (
            "[security.resources]\nmax_cpu = 1\n",
            "2: unknown key `security.resources.max_cpu`; known here: `max_memory_mb`, \
             `max_cpu_time_seconds`, `max_subprocesses` or `max_open_files`",
        ),
        // The first in the file, not the first in the alphabet.
        (
            "[runtime]\nz = 1\na = 2\nbackend = \"\"\n[runtime.native]\nx = 1\n",
            "2: unknown key `runtime.z`; known here: `backend`, `default_timeout_secs`, \
             `max_output_bytes`, `env_whitelist`, `kill_grace_ms`, `max_concurrent`, \
             `queue_timeout_secs`, `minimum_isolation`, `native`, `docker` or `wasm`",
        ),
    ]);
}

#[test]
fn wrong_types() {
    check(&[
        (
            "runtime = \"native\"\n",
            "1: `runtime`: found a string, expected a table",
        ),
        (
            "security = 1\n",
            "1: `security`: found an integer, expected a table",
        ),
        (
            "[[runtime]]\n",
            "1: `runtime`: found an array, expected a table",
        ),
        (
            "[runtime]\ndefault_timeout_secs = \"60\"\n",
            "2: `runtime.default_timeout_secs`: found a string, expected an integer",
        ),
        (
            "[runtime]\ndefault_timeout_secs = 1.5\n",
            "2: `runtime.default_timeout_secs`: found a float, expected an integer",
        ),
        (
            "[runtime]\nbackend = 1\n",
            "2: `runtime.backend`: found an integer, expected a string",
        ),
        (
            "[runtime]\nenv_whitelist = \"PATH\"\n",
            "2: `runtime.env_whitelist`: found a string, expected an array",
        ),
        (
            "[runtime]\nenv_whitelist = [\n  \"PATH\",\n  5,\n]\n",
            "4: `runtime.env_whitelist[1]`: found an integer, expected a string",
        ),
        (
            "[runtime.docker]\nauto_pull = \"yes\"\n",
            "2: `runtime.docker.auto_pull`: found a string, expected true or false",
        ),
        (
            "[runtime.docker]\nnetwork = false\n",
            "2: `runtime.docker.network`: found a boolean, expected \"none\", \"bridge\" or \"host\"",
        ),
        (
            "[runtime.docker]\nmemory_limit = 1.5\n",
            "2: `runtime.docker.memory_limit`: found a float, expected a size such as 512, \"64k\", \
             \"256m\" or \"1.5g\" (units b, k, m, g, t, p: powers of 1024, also kb and KiB)",
        ),
        (
            "[runtime.docker]\ncpu_limit = true\n",
            "2: `runtime.docker.cpu_limit`: found a boolean, expected a number of processors such \
             as \"1.0\", 0.5 or 2, from 0.01 to 1000000",
        ),
        (
            "[runtime]\nbackend = 2020-01-01\n",
            "2: `runtime.backend`: found a date, expected a string",
        ),
        (
            "[tools.custom]\nx = \"y\"\n",
            "2: `tools.custom.x`: found a string, expected a table",
        ),
    ]);
}

#[test]
fn wrong_words() {
    check(&[
        (
            "[runtime.docker]\nnetwork = \"brigde\"\n",
            "2: `runtime.docker.network`: found \"brigde\", expected \"none\", \"bridge\" or \
             \"host\"; did you mean \"bridge\"?",
        ),
        (
            "[runtime]\nminimum_isolation = \"vm\"\n",
            "2: `runtime.minimum_isolation`: found \"vm\", expected \"none\", \"sandbox\" or \
             \"container\"",
        ),
        (
            "[security.sandbox]\nbackend = \"bubblwrap\"\n",
            "2: `security.sandbox.backend`: found \"bubblwrap\", expected \"auto\", \
             \"bubblewrap\", \"landlock\", \"firejail\" or \"none\"; did you mean \"bubblewrap\"?",
        ),
        (
            "[security.sandbox]\nbackend = \"docker\"\n",
            "2: `security.sandbox.backend`: \"docker\" is a runtime and no sandbox: set \
             `runtime.backend = \"docker\"`; expected \"auto\", \"bubblewrap\", \"landlock\", \
             \"firejail\" or \"none\"",
        ),
        (
            "[security.sandbox]\nlevel = \"best_effort\"\n",
            "2: `security.sandbox.level`: found \"best_effort\", expected \"require\" or \
             \"best-effort\"; did you mean \"best-effort\"?",
        ),
        (
            "[runtime]\nbackend = \"\"\n",
            "2: `runtime.backend`: is empty; expected the name of a \
          backend such as \"native\", \"docker\", \"wasm\" or \"auto\"",
        ),
    ]);
}

#[test]
fn a_sandbox_around_nothing() {
    let text = |backend: &str, sandbox: &str| {
        format!("[runtime]\nbackend = \"{backend}\"\n[security.sandbox]\nbackend = \"{sandbox}\"\n")
    };
    for sandbox in ["bubblewrap", "landlock", "firejail"] {
        check(&[(
            &text("docker", sandbox),
            &format!(
                "4: `security.sandbox.backend`: \"{sandbox}\" confines local commands, and with \
                 `runtime.backend = \"docker\"` there are none: the container isolates them; \
                 expected \"none\", or \"auto\" for a file that is used with other backends too, \
                 or `runtime.backend = \"native\"`"
            ),
        )]);
    }
    let tool = "[tools.custom.x]\ntype = \"native\"\ncommand = \"true\"\n";
    for fine in [
        text("docker", "none"),
        text("docker", "auto"),
        text("auto", "bubblewrap"),
        text("native", "bubblewrap"),
        text("docker", "bubblewrap") + tool,
    ] {
        let read = Config::from_toml_str(&fine, "config.toml");
        assert!(read.is_ok(), "{fine}: {read:?}");
    }
}

#[test]
fn wrong_numbers() {
    check(&[
        (
            "[runtime]\ndefault_timeout_secs = 0\n",
            "2: `runtime.default_timeout_secs`: found 0, expected an integer from 1",
        ),
        (
            "[runtime]\ndefault_timeout_secs = -5\n",
            "2: `runtime.default_timeout_secs`: found -5, expected an integer from 0",
        ),
        (
            "[runtime]\nmax_output_bytes = 0\n",
            "2: `runtime.max_output_bytes`: found 0, expected an integer from 1",
        ),
        (
            "[runtime]\nmax_concurrent = 0\n",
            "2: `runtime.max_concurrent`: found 0, expected an integer from 1",
        ),
        (
            "[runtime.docker]\npids_limit = 0\n",
            "2: `runtime.docker.pids_limit`: found 0, expected an integer from 1",
        ),
        (
            "[runtime.docker]\npids_limit = 4294967296\n",
            "2: `runtime.docker.pids_limit`: found 4294967296, expected an integer from 0 to \
             4294967295",
        ),
        (
            "[runtime.docker]\npull_timeout_secs = 0\n",
            "2: `runtime.docker.pull_timeout_secs`: found 0, expected an integer from 1",
        ),
        (
            "[runtime.wasm]\ntimeout_secs = 0\n",
            "2: `runtime.wasm.timeout_secs`: found 0, expected an integer from 1",
        ),
        (
            "[runtime.wasm]\nmax_memory_mb = 99999999999999\n",
            "2: `runtime.wasm.max_memory_mb`: found 99999999999999, expected an integer from 1 to \
             17592186044415",
        ),
        (
            "[security.resources]\nmax_open_files = 0\n",
            "2: `security.resources.max_open_files`: found 0, expected an integer from 1 (leave \
             the key out for no limit)",
        ),
        (
            "[tools.custom.x]\ntype = \"native\"\ncommand = \"ls\"\ntimeout_secs = 0\n",
            "4: `tools.custom.x.timeout_secs`: found 0, expected an integer from 1",
        ),
    ]);
}

#[test]
fn wrong_sizes_and_shares() {
    const SIZE: &str = "expected a size such as 512, \"64k\", \"256m\" or \"1.5g\" (units b, k, m, \
                        g, t, p: powers of 1024, also kb and KiB)";
    for (value, said) in [
        (
            "\"256x\"",
            format!("\"256x\" has an unknown unit \"x\"; {SIZE}"),
        ),
        ("\"\"", format!("is empty; {SIZE}")),
        ("-1", format!("-1 is negative; {SIZE}")),
        ("\"-1m\"", format!("\"-1m\" is negative; {SIZE}")),
        (
            "\"99999999p\"",
            format!("\"99999999p\" is too large; {SIZE}"),
        ),
        (
            "\"5m\"",
            "found 5m, expected a size from 6m to 4096p".to_owned(),
        ),
        ("0", "found 0, expected a size from 6m to 4096p".to_owned()),
    ] {
        check(&[(
            &format!("[runtime.docker]\nmemory_limit = {value}\n"),
            &format!("2: `runtime.docker.memory_limit`: {said}"),
        )]);
    }
    const SHARE: &str =
        "expected a number of processors such as \"1.0\", 0.5 or 2, from 0.01 to 1000000";
    for (value, said) in [
        ("0", "\"0\" is zero"),
        ("0.0", "\"0\" is zero"),
        ("-0.5", "\"-0.5\" is negative"),
        ("nan", "\"NaN\" is not a number"),
        ("inf", "\"inf\" is not a number"),
        ("1e30", "\"1000000000000000000000000000000\" is too large"),
        ("\"half\"", "\"half\" is not a number"),
    ] {
        check(&[(
            &format!("[runtime.docker]\ncpu_limit = {value}\n"),
            &format!("2: `runtime.docker.cpu_limit`: {said}; {SHARE}"),
        )]);
    }
}

#[test]
fn variables_that_are_never_passed_on() {
    check(&[
        (
            "[runtime]\nenv_whitelist = [\"PATH\", \"LD_PRELOAD\"]\n",
            "2: `runtime.env_whitelist[1]`: \"LD_PRELOAD\" makes programs load code and is never \
             passed on; to set it on purpose, put it into the `env` table of the backend",
        ),
        (
            "[runtime]\nenv_whitelist = [\n\"PATH\",\n\"OPENAI_API_KEY\",\n]\n",
            "4: `runtime.env_whitelist[1]`: \"OPENAI_API_KEY\" looks like a secret and is never \
             passed on from the host; to set it on purpose, put it into the `env` table of the \
             backend",
        ),
        (
            "[runtime.wasm.capabilities]\nenv_vars = [\"GITHUB_TOKEN\"]\n",
            "2: `runtime.wasm.capabilities.env_vars[0]`: \"GITHUB_TOKEN\" looks like a secret and \
             is never passed on from the host; to set it on purpose, put it into the `env` table \
             of the backend",
        ),
        (
            "[runtime]\nenv_whitelist = [\"LC_*\"]\n",
            "2: `runtime.env_whitelist[0]`: \"LC_*\" is a pattern; expected the names of \
             variables, one by one",
        ),
        (
            "[runtime]\nenv_whitelist = [\"A=B\"]\n",
            "2: `runtime.env_whitelist[0]`: \"A=B\" is no name of a variable: it contains `=` or a \
             blank",
        ),
        (
            "[runtime.native.env]\nPRX_EXECUTION_ID = \"x\"\n",
            "2: `runtime.native.env.PRX_EXECUTION_ID`: \"PRX_EXECUTION_ID\" is set by the runtime \
             itself",
        ),
        (
            "[runtime]\nenv_whitelist = [\"\"]\n",
            "2: `runtime.env_whitelist[0]`: is empty; expected the name of a variable",
        ),
    ]);
}

#[test]
fn values_of_variables_are_never_shown() {
    check(&[
        (
            "[runtime.native.env]\nA = \"hunter2\\u0000\"\n",
            "2: `runtime.native.env.A`: contains a NUL byte",
        ),
        (
            "[runtime.docker.env]\nPIN = 74921\n",
            "2: `runtime.docker.env.PIN`: found an integer, expected a string",
        ),
        (
            "[runtime.docker]\nenv = \"A=hunter2\"\n",
            "2: `runtime.docker.env`: found a string, expected a table",
        ),
        (
            "[runtime.wasm.env]\n\"A B\" = \"hunter2\"\n",
            "2: `runtime.wasm.env.\"A B\"`: \"A B\" is no name of a variable: it contains `=` or a \
             blank",
        ),
    ]);
    for broken in [
        "[runtime.native.env]\nA = \"hunter2\n",
        "[runtime.native.env]\nA = hunter2\n",
        "[runtime.native.env]\nA = \"hunter2\" hunter2\n",
        "[runtime.native.env]\nA = 'hunter2'\nA = 'hunter2'\n",
        "[runtime.native.env]\nA = \"hunter2\\q\"\n",
        "[runtime.native.env]\nA = 12hunter2\n",
    ] {
        assert!(!error(broken).contains("hunter2"), "{}", error(broken));
    }
}

#[test]
fn wrong_paths_images_and_grants() {
    check(&[
        (
            "[runtime.docker]\nimage = \"Debian\"\n",
            "2: `runtime.docker.image`: \"Debian\" has capital letters in its repository; expected \
             an image such as \"debian:bookworm-slim\"",
        ),
        (
            "[runtime.docker.tool_images]\npython3 = \"\"\n",
            "2: `runtime.docker.tool_images.python3`: is empty; expected an image such as \
             \"debian:bookworm-slim\"",
        ),
        (
            "[runtime.docker]\nworkspace_mount_path = \"/\"\n",
            "2: `runtime.docker.workspace_mount_path`: found \"/\", expected a directory below it \
             such as \"/workspace\"",
        ),
        (
            "[runtime.docker]\nworkspace_mount_path = \"work\"\n",
            "2: `runtime.docker.workspace_mount_path`: \"work\" is no absolute path; expected one \
             such as \"/workspace\"",
        ),
        (
            "[runtime.docker]\nworkspace_mount_path = \"/a/../b\"\n",
            "2: `runtime.docker.workspace_mount_path`: \"/a/../b\" contains `..`, `.` or a NUL \
             byte; expected a plain path",
        ),
        (
            "[runtime.docker]\nworkspace_mount_path = \"/proc/x\"\n",
            "2: `runtime.docker.workspace_mount_path`: \"/proc/x\" belongs to the system; expected \
             one such as \"/workspace\"",
        ),
        (
            "[runtime.docker]\nallowed_workspace_roots = [\"/\"]\n",
            "2: `runtime.docker.allowed_workspace_roots[0]`: found \"/\", which is never mounted; \
             expected directories below it",
        ),
        (
            "[runtime.docker]\nsocket = \"docker.sock\"\n",
            "2: `runtime.docker.socket`: found \"docker.sock\", expected an absolute path, or an \
             address that starts with unix://, tcp://, http://, https:// or npipe://",
        ),
        (
            "[runtime.docker]\nuser = \"\"\n",
            "2: `runtime.docker.user`: is empty; expected \"auto\", a name, uid or uid:gid",
        ),
        (
            "[runtime.docker]\nshell = \"sh\"\n",
            "2: `runtime.docker.shell`: \"sh\" is no absolute path; expected one such as \
             \"/bin/sh\"",
        ),
        (
            "[runtime.native]\nshell = \"bash\"\n",
            "2: `runtime.native.shell`: \"bash\" is no absolute path; expected one such as \
             \"/bin/bash\"",
        ),
        (
            "[runtime.wasm]\nmodule_path = \"~ana/wasm\"\n",
            "2: `runtime.wasm.module_path`: \"~ana/wasm\" names another user's home; write `~/…` or \
             the path itself",
        ),
        (
            "[security.sandbox]\nwritable_paths = [\"/tmp\", \"tmp\"]\n",
            "2: `security.sandbox.writable_paths[1]`: \"tmp\" is relative; expected an absolute \
             path or `~/…`",
        ),
        (
            "[runtime.wasm.capabilities]\nfilesystem_write = [\"data\"]\n",
            "2: `runtime.wasm.capabilities.filesystem_write[0]`: \"data\" is relative; expected an \
             absolute path or `~/…`",
        ),
        (
            "[runtime.wasm.capabilities]\nfilesystem_read = [\"/a::/x\", \"/b::/x\"]\n",
            "2: `runtime.wasm.capabilities.filesystem_read[1]`: \"/b::/x\" puts a second directory \
             at \"/x\" of the guest",
        ),
        (
            "[runtime.wasm]\ntimeout_secs = 5\n[runtime.wasm.capabilities]\ntimeout_secs = 6\n",
            "4: `runtime.wasm.capabilities.timeout_secs`: found 6, but \
             `runtime.wasm.timeout_secs` is 5; expected one of the two",
        ),
    ]);
}

#[test]
fn wrong_tools() {
    check(&[
        (
            "[tools.custom.x]\n",
            "1: `tools.custom.x`: the key `type` is missing",
        ),
        (
            "[tools.custom.x]\ntype = \"wasm\"\n",
            "1: `tools.custom.x`: a tool of type \"wasm\" needs `module`",
        ),
        (
            "[tools.custom.x]\ntype = \"native\"\n",
            "1: `tools.custom.x`: a tool of type \"native\" needs `command`",
        ),
        (
            "[tools.custom.x]\ntype = \"docker\"\n",
            "1: `tools.custom.x`: a tool of type \"docker\" needs `image` or `command`",
        ),
        (
            "[tools.custom.x]\ntype = \"native\"\ncommand = \"ls\"\nmodule = \"x.wasm\"\n",
            "4: `tools.custom.x.module`: means nothing to a tool of type \"native\"; it belongs to \
             type \"wasm\"",
        ),
        (
            "[tools.custom.x]\ntype = \"wasm\"\nmodule = \"x.wasm\"\ncommand = \"ls\"\n",
            "4: `tools.custom.x.command`: means nothing to a tool of type \"wasm\"; it belongs to \
             type \"native\" or \"docker\"",
        ),
        (
            "[tools.custom.x]\ntype = \"native\"\ncommand = \"ls\"\n[tools.custom.x.capabilities]\n",
            "4: `tools.custom.x.capabilities`: means nothing to a tool of type \"native\"; it \
             belongs to type \"wasm\"",
        ),
        (
            "[tools.custom.\".x\"]\ntype = \"native\"\ncommand = \"ls\"\n",
            "1: `tools.custom.\".x\"`: \".x\" is no name of a tool; expected letters, digits, `.`, \
             `_` and `-`, not starting with `.`",
        ),
    ]);
}

#[test]
fn broken_toml_says_line_and_column() {
    for (text, place) in [
        ("[runtime]\nbackend = \n", "2:11"),
        ("[runtime]\nbackend = \"a\"\nbackend = \"b\"\n", "3:1"),
        ("[runtime\n", "1:9"),
        ("é = é\n", "1:1"),
    ] {
        let said = error(text);
        assert!(
            said.starts_with(&format!("config.toml:{place}: ")),
            "{said}"
        );
    }
    // The words are those of the parser.
    assert_eq!(
        error("[runtime]\nbackend = \"a\"\nbackend = \"b\"\n"),
        "config.toml:3:1: duplicate key"
    );
}

#[test]
fn a_configuration_made_in_code_is_checked_without_lines() {
    let mut config = Config::default();
    config.runtime.wasm.capabilities.timeout_secs = Some(7);
    assert_eq!(
        config.validate().unwrap_err().to_string(),
        "`runtime.wasm.capabilities.timeout_secs`: found 7, but `runtime.wasm.timeout_secs` is 30; \
         expected one of the two"
    );
    assert!(Config::default().validate().is_ok());
}

#[test]
fn files_that_cannot_be_read() {
    let missing = Config::load("/nonexistent/config.toml").unwrap_err();
    assert_eq!(
        missing.message(),
        "/nonexistent/config.toml: the file cannot be read"
    );

    let path = std::env::temp_dir().join(format!("prx-config-{}.toml", std::process::id()));
    std::fs::write(&path, b"[runtime]\nbackend = \"\xff\"\n").unwrap();
    let error = Config::load(&path).unwrap_err();
    std::fs::remove_file(&path).unwrap();
    assert_eq!(
        error.message(),
        format!("{}:2: the file is not UTF-8", path.display())
    );
}

proptest::proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "(\\[(runtime|security|tools)?\\.?[a-z]{0,3}\\]|[a-z=\"\\[{,.0-9 é\n-]){0,40}") {
        let _ = Config::from_toml_str(&text, "config.toml");
        let _ = Config::warnings(&text, "config.toml");
    }
}
