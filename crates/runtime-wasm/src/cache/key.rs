//! What a compiled module is filed under.

use std::fmt;

use crate::ModuleKind;

/// Stands for the layout of entries; another layout gets another number.
const LAYOUT: &[u8] = b"prx-runtime wasm cache 1";

/// Engine, version, configuration and content, in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// The key of a module for an engine.
    pub(crate) fn new(engine: &str, fingerprint: &[u8], kind: ModuleKind, bytes: &[u8]) -> Self {
        let mut hasher = blake3::Hasher::new();
        for part in [
            LAYOUT,
            engine.as_bytes(),
            fingerprint,
            kind.as_str().as_bytes(),
            bytes,
        ] {
            // With its length before it, no part can pass for the end of another.
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(*hasher.finalize().as_bytes())
    }

    pub(crate) fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(blake3::Hash::from_bytes(self.0).to_hex().as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_counts() {
        let key = Key::new("e", b"f", ModuleKind::Core, b"m");
        assert_eq!(key, Key::new("e", b"f", ModuleKind::Core, b"m"));
        for other in [
            Key::new("x", b"f", ModuleKind::Core, b"m"),
            Key::new("e", b"x", ModuleKind::Core, b"m"),
            Key::new("e", b"f", ModuleKind::Component, b"m"),
            Key::new("e", b"f", ModuleKind::Core, b"x"),
            Key::new("ef", b"", ModuleKind::Core, b"m"),
        ] {
            assert_ne!(key, other);
        }
    }
}
