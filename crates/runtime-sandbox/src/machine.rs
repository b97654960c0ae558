//! What this machine says of itself when namespaces cannot be made.

use std::fs;

/// Settings that forbid namespaces to those who are not root, the value that does, and what lifts
/// it.
const SETTINGS: [(&str, &str, &str); 3] = [
    (
        "/proc/sys/kernel/unprivileged_userns_clone",
        "0",
        "kernel.unprivileged_userns_clone = 0 forbids user namespaces: set it to 1",
    ),
    (
        "/proc/sys/user/max_user_namespaces",
        "0",
        "user.max_user_namespaces = 0 forbids user namespaces: raise it",
    ),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "kernel.apparmor_restrict_unprivileged_userns = 1 restricts user namespaces: install a \
         profile for bwrap that permits them, or set it to 0",
    ),
];

/// Which setting forbids namespaces, and what to do.
pub(crate) fn hint() -> Option<String> {
    hint_by(|setting| fs::read_to_string(setting).ok())
}

fn hint_by(read: impl Fn(&str) -> Option<String>) -> Option<String> {
    let forbids = |(setting, value, _): &&(&str, &str, &str)| {
        read(setting).is_some_and(|found| found.trim() == *value)
    };
    let (_, _, advice) = SETTINGS.iter().find(forbids).copied().unwrap_or((
        "",
        "",
        "in a container the engine has to permit namespaces and a fresh /proc; or choose \
         security.sandbox.backend = \"landlock\"",
    ));
    Some(advice.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_that_forbids_is_named() {
        for (setting, value, _) in SETTINGS {
            let hint = hint_by(|asked| (asked == setting).then(|| format!("{value}\n"))).unwrap();
            let name = setting.trim_start_matches("/proc/sys/").replace('/', ".");
            assert!(hint.contains(&name), "{hint}");
        }
        assert!(hint_by(|_| None).unwrap().contains("container"));
    }
}
