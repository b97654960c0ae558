//! The one type that bounds output.

use crate::Captured;

/// Keeps at most `limit` bytes of a stream, half from its start and half from its end, and counts
/// the rest.
///
/// Memory stays below `limit` however much is pushed, and grows only with what arrives. With an
/// odd limit the head is the larger half by one byte.
#[derive(Debug)]
pub struct Capture {
    head: Vec<u8>,
    head_limit: usize,
    /// A ring once it is full: `oldest` is the index of its first byte in stream order.
    tail: Vec<u8>,
    tail_limit: usize,
    oldest: usize,
    total: u64,
}

impl Capture {
    /// A capture that keeps at most `limit` bytes. A limit of 0 keeps nothing and only counts.
    pub fn new(limit: usize) -> Self {
        let tail_limit = limit / 2;
        Self {
            head: Vec::new(),
            head_limit: limit - tail_limit,
            tail: Vec::new(),
            tail_limit,
            oldest: 0,
            total: 0,
        }
    }

    /// Takes the next bytes of the stream.
    pub fn push(&mut self, bytes: &[u8]) {
        self.total = self.total.saturating_add(bytes.len() as u64);
        let room = self.head_limit - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.push_tail(rest);
    }

    fn push_tail(&mut self, bytes: &[u8]) {
        // Only the last `tail_limit` bytes can survive this push.
        let bytes = &bytes[bytes.len().saturating_sub(self.tail_limit)..];
        if bytes.is_empty() {
            return;
        }
        let room = self.tail_limit - self.tail.len();
        let (grow, wrap) = bytes.split_at(room.min(bytes.len()));
        self.tail.extend_from_slice(grow);
        // Full from here on (or `wrap` is empty): overwrite the oldest bytes.
        let until_end = (self.tail.len() - self.oldest).min(wrap.len());
        let (to_end, from_start) = wrap.split_at(until_end);
        self.tail[self.oldest..self.oldest + until_end].copy_from_slice(to_end);
        self.tail[..from_start.len()].copy_from_slice(from_start);
        if !wrap.is_empty() {
            self.oldest = (self.oldest + wrap.len()) % self.tail_limit;
        }
    }

    /// How many bytes were pushed.
    pub fn total_bytes(&self) -> u64 {
        self.total
    }

    /// What was kept, with the account of what was not.
    pub fn finish(mut self) -> Captured {
        self.tail.rotate_left(self.oldest);
        let omitted = self.total - (self.head.len() + self.tail.len()) as u64;
        let split = self.head.len();
        let mut bytes = self.head;
        bytes.append(&mut self.tail);
        Captured::from_parts(bytes, split, omitted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn short_output_is_kept_whole() {
        let mut capture = Capture::new(10);
        capture.push(b"hello");
        capture.push(b"world");
        let captured = capture.finish();
        assert_eq!(captured.as_bytes(), b"helloworld");
        assert!(!captured.is_truncated());
    }

    #[test]
    fn long_output_keeps_both_ends() {
        let mut capture = Capture::new(5);
        for byte in b"abcdefghij" {
            capture.push(&[*byte]);
        }
        let captured = capture.finish();
        assert_eq!(captured.head(), b"abc");
        assert_eq!(captured.tail(), b"ij");
        assert_eq!(captured.total_bytes(), 10);
        assert_eq!(captured.omitted_bytes(), 5);
    }

    #[test]
    fn limit_zero_counts() {
        let mut capture = Capture::new(0);
        capture.push(b"abc");
        let captured = capture.finish();
        assert_eq!((captured.total_bytes(), captured.as_bytes().len()), (3, 0));
    }

    proptest! {
        /// Whatever the chunking, the bytes and the limit: what is kept equals the oracle's.
        #[test]
        fn agrees_with_keeping_everything(
            chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..40), 0..40),
            limit in 0_usize..200,
        ) {
            let all: Vec<u8> = chunks.concat();
            let mut capture = Capture::new(limit);
            for chunk in &chunks {
                capture.push(chunk);
                prop_assert!(capture.head.len() + capture.tail.len() <= limit);
            }
            let captured = capture.finish();
            let head = limit - limit / 2;
            prop_assert_eq!(captured.total_bytes(), all.len() as u64);
            if all.len() <= limit {
                prop_assert_eq!(captured.as_bytes(), &all[..]);
                prop_assert!(!captured.is_truncated());
            } else {
                prop_assert_eq!(captured.head(), &all[..head]);
                prop_assert_eq!(captured.tail(), &all[all.len() - limit / 2..]);
                prop_assert_eq!(captured.omitted_bytes(), (all.len() - limit) as u64);
            }
        }
    }
}
