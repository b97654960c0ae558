//! One file of the cache: the artifact, and after it a trailer that says whether it is whole.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use super::Key;

/// Ends every entry.
const MAGIC: &[u8; 16] = b"prx-wasm-entry-1";
const CHECKSUM: usize = 32;
const TRAILER: u64 = (CHECKSUM + MAGIC.len()) as u64;

/// Writes an entry.
pub(super) fn write(mut file: impl Write, key: &Key, artifact: &[u8]) -> io::Result<()> {
    let mut hasher = hasher(key);
    hasher.update(artifact);
    file.write_all(artifact)?;
    file.write_all(hasher.finalize().as_bytes())?;
    file.write_all(MAGIC)
}

/// Checks the entry in `file` and returns the length of the artifact, with the file at its start.
///
/// # Errors
///
/// What is wrong with it.
pub(super) fn verify(file: &mut File, key: &Key) -> Result<u64, String> {
    let check = |file: &mut File| -> io::Result<Option<u64>> {
        let size = file.metadata()?.len();
        let Some(len) = size.checked_sub(TRAILER) else {
            return Ok(None);
        };
        let mut hasher = hasher(key);
        let copied = io::copy(&mut Read::take(&mut *file, len), &mut Hashing(&mut hasher))?;
        let mut trailer = [0; TRAILER as usize];
        file.read_exact(&mut trailer)?;
        file.seek(SeekFrom::Start(0))?;
        let (checksum, magic) = trailer.split_at(CHECKSUM);
        let whole =
            copied == len && magic == MAGIC && checksum == hasher.finalize().as_bytes().as_slice();
        Ok(whole.then_some(len))
    };
    match check(file) {
        Ok(Some(len)) => Ok(len),
        Ok(None) => Err("it is damaged".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// An entry under another key's name is as wrong as a damaged one.
fn hasher(key: &Key) -> blake3::Hasher {
    let mut hasher = blake3::Hasher::new();
    hasher.update(key.as_bytes());
    hasher
}

struct Hashing<'a>(&'a mut blake3::Hasher);

impl Write for Hashing<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
