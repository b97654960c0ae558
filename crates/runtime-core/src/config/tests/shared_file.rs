//! A file shared with other settings.

use super::super::Config;
use super::{error, read};

#[test]
fn what_belongs_to_others_is_ignored() {
    let text = r#"
log_level = 7
[agent]
runtime = { backend = 5 }
[security]
pairing = true
[security.audit]
backend = "file"
[tools]
http = { enabled = true }
[tools.search]
type = 9
[[runtimes]]
"#;
    assert_eq!(read(text), Config::default());
}

#[test]
fn inside_ours_nothing_is_ignored() {
    assert_eq!(
        error("[runtime]\nlog_level = 7\n"),
        "config.toml:2: unknown key `runtime.log_level`; known here: `backend`, \
         `default_timeout_secs`, `max_output_bytes`, `env_whitelist`, `kill_grace_ms`, \
         `max_concurrent`, `queue_timeout_secs`, `minimum_isolation`, `native`, `docker` or `wasm`"
    );
    assert_eq!(
        error("[security.sandbox]\nallow_net = true\n[security.other]\n"),
        "config.toml:2: unknown key `security.sandbox.allow_net`; known here: `backend`, \
         `allow_network`, `writable_paths`, `readonly_paths`, `hidden_paths` or `level`"
    );
}

#[test]
fn near_misses_are_warned_of() {
    let text = "\
[runtim]
[tools.cutsom.x]
[security.sandbx]
backend = \"bubblewrap\"
[Security.sandbox]
[agent]
[skills]
";
    assert_eq!(
        Config::warnings(text, "config.toml"),
        [
            "config.toml:1: the section `runtim` is ignored; did you mean `runtime`?",
            "config.toml:2: the section `tools.cutsom` is ignored; did you mean `tools.custom`?",
            "config.toml:3: the section `security.sandbx` is ignored; did you mean `security.sandbox`?",
            "config.toml:5: the section `Security` is ignored; did you mean `security`?",
        ]
    );
    assert_eq!(read(text), Config::default());
    assert!(Config::warnings("= no toml", "config.toml").is_empty());
}
