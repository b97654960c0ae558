//! Programs with mounts of their own.

use std::ffi::OsString;
use std::path::Path;

/// The words before a program that give it mounts of its own, which are gone along with it. Where
/// `hidden` is, it sees an empty directory. Needs root.
pub(crate) fn own_mounts(hidden: Option<&Path>) -> Vec<OsString> {
    let mut words: Vec<OsString> = ["unshare", "--mount"].map(OsString::from).into();
    if let Some(hidden) = hidden {
        let script = "mount -t tmpfs none \"$0\" && exec \"$@\"";
        words.extend(["sh", "-c", script].map(OsString::from));
        words.push(hidden.into());
    }
    words
}
