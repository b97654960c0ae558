//! A file of a container, as the engine describes it.

use serde::Deserialize;

/// The bit of a directory in a mode, as the engine's language has it.
const DIRECTORY: u32 = 1 << 31;
/// The bit of a symbolic link.
const LINK: u32 = 1 << 27;
/// The right to execute, for anybody at all.
const EXECUTE: u32 = 0o111;

/// What is known of it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct File {
    mode: u32,
    /// Where a link leads at last, as a path of the container.
    #[serde(default)]
    link_target: String,
}

impl File {
    /// Where it leads, if it is a link.
    pub(crate) fn leads_to(&self) -> Option<&str> {
        (self.mode & LINK != 0).then_some(self.link_target.as_str())
    }

    /// Whether nobody can execute it, whoever they are.
    pub(crate) fn is_inert(&self) -> bool {
        self.mode & DIRECTORY != 0 || self.mode & EXECUTE == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_engines_tell_it() {
        let file = |text: &str| serde_json::from_str::<File>(text).unwrap();
        let link = file(r#"{"name":"sh","size":7,"mode":134218239,"linkTarget":"/bin/busybox"}"#);
        assert_eq!(link.leads_to(), Some("/bin/busybox"));
        // Podman names a target for every file.
        let text = r#"{"name":"passwd","mode":420,"isDir":false,"linkTarget":"/etc/passwd"}"#;
        assert_eq!(file(text).leads_to(), None);
        assert!(file(text).is_inert());
        assert!(file(r#"{"name":"etc","mode":2147484141,"linkTarget":""}"#).is_inert());
        assert!(!file(r#"{"name":"busybox","mode":493,"linkTarget":""}"#).is_inert());
    }
}
