//! What was kept of an output stream.

use std::borrow::Cow;
use std::fmt;

use serde::{Serialize, Serializer};

/// The bytes kept of one output stream, and the account of those that were not.
///
/// Bytes are kept as they came; any are legal. Text is made of them once, at the end, by
/// [`to_text`](Self::to_text) or `Display`: lossy for what is not UTF-8, and without splitting a
/// character where the middle was dropped. Serialises as that text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Captured {
    bytes: Vec<u8>,
    /// Where the head ends and the tail begins.
    split: usize,
    omitted: u64,
}

impl Captured {
    pub(crate) fn from_parts(bytes: Vec<u8>, split: usize, omitted: u64) -> Self {
        Self {
            bytes,
            split,
            omitted,
        }
    }

    /// Everything kept: head and tail, one after the other. The stream itself where nothing was
    /// dropped ([`is_truncated`](Self::is_truncated)).
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Everything kept, by value.
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    /// The kept start of the stream; the whole stream where nothing was dropped.
    pub fn head(&self) -> &[u8] {
        if self.omitted == 0 {
            &self.bytes
        } else {
            &self.bytes[..self.split]
        }
    }

    /// The kept end of the stream; empty where nothing was dropped.
    pub fn tail(&self) -> &[u8] {
        if self.omitted == 0 {
            &[]
        } else {
            &self.bytes[self.split..]
        }
    }

    /// How many bytes the command wrote to this stream.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.len() as u64 + self.omitted
    }

    /// How many bytes in the middle were read, counted and dropped.
    pub fn omitted_bytes(&self) -> u64 {
        self.omitted
    }

    /// Whether anything was dropped.
    pub fn is_truncated(&self) -> bool {
        self.omitted > 0
    }

    /// Whether the command wrote nothing to this stream.
    pub fn is_empty(&self) -> bool {
        self.total_bytes() == 0
    }

    /// The stream as text. Invalid UTF-8 becomes U+FFFD; where the middle was dropped, a line says
    /// how many bytes are missing, and a character cut there is dropped whole.
    pub fn to_text(&self) -> Cow<'_, str> {
        if self.omitted == 0 {
            return String::from_utf8_lossy(&self.bytes);
        }
        let head = trim_cut_end(self.head());
        let tail = trim_cut_start(self.tail());
        let shown = (head.len() + tail.len()) as u64;
        Cow::Owned(format!(
            "{}\n[… {} bytes omitted …]\n{}",
            String::from_utf8_lossy(head),
            self.total_bytes() - shown,
            String::from_utf8_lossy(tail),
        ))
    }
}

/// Drops a character whose last bytes are missing.
fn trim_cut_end(bytes: &[u8]) -> &[u8] {
    let start = bytes.len().saturating_sub(3);
    for (index, byte) in bytes.iter().enumerate().skip(start).rev() {
        let length = match byte {
            0x80..=0xBF => continue,
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return bytes,
        };
        if index + length > bytes.len() {
            return &bytes[..index];
        }
        return bytes;
    }
    bytes
}

/// Drops the last bytes of a character whose first are missing.
fn trim_cut_start(bytes: &[u8]) -> &[u8] {
    let cut = bytes
        .iter()
        .take(3)
        .take_while(|byte| matches!(byte, 0x80..=0xBF))
        .count();
    &bytes[cut..]
}

impl fmt::Display for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_text())
    }
}

impl fmt::Debug for Captured {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Captured")
            .field("text", &self.to_text())
            .field("total_bytes", &self.total_bytes())
            .field("omitted_bytes", &self.omitted)
            .finish()
    }
}

impl Serialize for Captured {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl From<Vec<u8>> for Captured {
    fn from(bytes: Vec<u8>) -> Self {
        let split = bytes.len();
        Self::from_parts(bytes, split, 0)
    }
}

impl From<String> for Captured {
    fn from(text: String) -> Self {
        text.into_bytes().into()
    }
}

impl From<&str> for Captured {
    fn from(text: &str) -> Self {
        text.as_bytes().to_vec().into()
    }
}

#[cfg(test)]
mod tests {
    use crate::Capture;

    fn text(limit: usize, input: &str) -> String {
        let mut capture = Capture::new(limit);
        capture.push(input.as_bytes());
        capture.finish().to_string()
    }

    #[test]
    fn no_character_is_split_at_the_gap() {
        for limit in 0..40 {
            for input in [
                "äöüäöüäöüäöüäöüäöüäöü",
                "日本語日本語日本語日本語",
                "🙂🙃🙂🙃🙂🙃🙂🙃🙂🙃🙂",
            ] {
                let text = text(limit, input);
                assert!(!text.contains('\u{FFFD}'), "limit {limit}: {text}");
            }
        }
    }

    #[test]
    fn the_gap_is_counted_with_the_trimmed_bytes() {
        // Six two-byte characters, three bytes kept on each side: one byte of each is trimmed.
        assert_eq!(text(6, "äöüäöü"), "ä\n[… 8 bytes omitted …]\nü");
    }

    #[test]
    fn invalid_bytes_survive_as_bytes() {
        let mut capture = Capture::new(8);
        capture.push(&[0xFF, 0, b'a']);
        let captured = capture.finish();
        assert_eq!(captured.as_bytes(), &[0xFF, 0, b'a']);
        assert_eq!(captured.to_text(), "\u{FFFD}\0a");
    }
}
