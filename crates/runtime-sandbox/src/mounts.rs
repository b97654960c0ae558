//! What is mounted where, as the kernel tells this process.

use std::path::PathBuf;

use prx_runtime_core::{Error, Result};

use crate::error;

const LIST: &str = "/proc/self/mountinfo";

/// A mount that this process sees.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Mount {
    pub(crate) point: PathBuf,
    /// The kind of its file system.
    pub(crate) kind: String,
}

/// Every mount, in the order in which they were made.
pub(crate) fn all() -> Result<Vec<Mount>> {
    // Without the list, what has to be hidden or kept would be left out and nobody told.
    let list = std::fs::read(LIST).map_err(|error| {
        let hint = if error::is_shortage(&error) {
            error::remedy(&error)
        } else {
            "mount /proc where the host runs"
        };
        Error::new(
            error::kind(&error),
            format!("`{LIST}` cannot be read, by which the sandbox learns what is mounted"),
        )
        .with_source(error)
        .with_hint(hint)
    })?;
    Ok(parse(&list))
}

fn parse(mounts: &[u8]) -> Vec<Mount> {
    String::from_utf8_lossy(mounts)
        .lines()
        .filter_map(|line| {
            let (mount, kind) = line.split_once(" - ")?;
            Some(Mount {
                point: unescape(mount.split(' ').nth(4)?).into(),
                kind: kind.split(' ').next()?.to_owned(),
            })
        })
        .collect()
}

/// Blanks and backslashes stand there as octal numbers.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mounts_are_read_with_their_blanks() {
        let mounts = b"22 1 0:20 / /proc rw shared:5 - proc proc rw\n\
            23 1 0:21 / /srv/a\\040root/proc rw - proc proc rw\n\
            24 1 0:22 / /sys rw - sysfs sysfs rw\n";
        let mount = |point: &str, kind: &str| Mount {
            point: point.into(),
            kind: kind.to_owned(),
        };
        assert_eq!(
            parse(mounts),
            [
                mount("/proc", "proc"),
                mount("/srv/a root/proc", "proc"),
                mount("/sys", "sysfs")
            ]
        );
    }
}
