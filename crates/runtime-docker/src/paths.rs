//! Paths of a container, which are text here: nobody but the engine can look where they lead.

use std::path::{Component, Path, PathBuf};

/// The path without `.`, `..`, and slashes that say nothing, as plain text has it.
pub(crate) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            part => plain.push(part),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_made_plain() {
        for (path, expected) in [
            ("/workspace/./a/../b", "/workspace/b"),
            ("/../a", "/a"),
            ("//a//b/", "/a/b"),
            ("/", "/"),
        ] {
            assert_eq!(plain(Path::new(path)), Path::new(expected), "{path}");
        }
    }
}
