//! `completions`: a script for each shell.

use crate::stage::{outcome, process, prx};

#[test]
fn there_is_one_for_each_shell() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let outcome = outcome(&mut prx(["completions", shell]));
        assert_eq!(outcome.code, Some(0));
        assert!(outcome.stdout.contains("prx-runtime"), "{shell}");
    }
}

#[test]
fn bash_can_read_its_own() {
    let script = outcome(&mut prx(["completions", "bash"])).stdout;
    let status = process("bash")
        .args(["-n", "-c", &script])
        .status()
        .unwrap();
    assert!(status.success());
}
