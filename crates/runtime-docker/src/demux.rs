//! The framing of an attached stream: an 8-byte header, then a payload.
//!
//! A header is `[stream, 0, 0, 0, length]`, the length a big-endian `u32`. Payloads are passed on
//! as they come, so a frame costs no memory, whatever length it claims.

/// What a payload belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channel {
    Stdout,
    Stderr,
    /// A message of the engine itself.
    Engine,
}

/// A header that no engine sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadHeader(pub(crate) [u8; HEADER]);

impl std::fmt::Display for BadHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "the attached stream is not framed as it should be: header {:02x?}",
            self.0
        )
    }
}

impl std::error::Error for BadHeader {}

const HEADER: usize = 8;

/// Where in the framing a stream is.
#[derive(Debug)]
pub(crate) struct Demux {
    header: [u8; HEADER],
    /// How much of `header` is there.
    have: usize,
    channel: Channel,
    /// How much of the payload is still to come.
    left: u32,
}

impl Demux {
    pub(crate) fn new() -> Self {
        Self {
            header: [0; HEADER],
            have: 0,
            channel: Channel::Stdout,
            left: 0,
        }
    }

    /// Takes the next piece of a payload off `input`, and whatever headers come before it. `None`
    /// once all of `input` is used up.
    ///
    /// # Errors
    ///
    /// A header that is none. What follows it cannot be understood.
    pub(crate) fn next<'a>(
        &mut self,
        input: &mut &'a [u8],
    ) -> Result<Option<(Channel, &'a [u8])>, BadHeader> {
        while self.left == 0 {
            let (taken, rest) = input.split_at(input.len().min(HEADER - self.have));
            self.header[self.have..self.have + taken.len()].copy_from_slice(taken);
            self.have += taken.len();
            *input = rest;
            if self.have < HEADER {
                return Ok(None);
            }
            self.have = 0;
            let [stream, 0, 0, 0, length @ ..] = self.header else {
                return Err(BadHeader(self.header));
            };
            self.channel = match stream {
                1 => Channel::Stdout,
                2 => Channel::Stderr,
                3 => Channel::Engine,
                _ => return Err(BadHeader(self.header)),
            };
            self.left = u32::from_be_bytes(length);
        }
        if input.is_empty() {
            return Ok(None);
        }
        let length = input
            .len()
            .min(usize::try_from(self.left).unwrap_or(usize::MAX));
        let (payload, rest) = input.split_at(length);
        *input = rest;
        // `length` is at most `left`.
        self.left -= u32::try_from(length).unwrap_or(self.left);
        Ok(Some((self.channel, payload)))
    }

    /// Whether the stream may end here.
    pub(crate) fn between_frames(&self) -> bool {
        self.have == 0 && self.left == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(stream: u8, payload: &[u8]) -> Vec<u8> {
        let mut frame = vec![stream, 0, 0, 0];
        frame.extend(u32::try_from(payload.len()).unwrap().to_be_bytes());
        frame.extend(payload);
        frame
    }

    /// What comes out on stdout and stderr when `input` arrives in pieces of `size` bytes.
    fn feed(input: &[u8], size: usize) -> Result<[Vec<u8>; 2], BadHeader> {
        let mut demux = Demux::new();
        let mut out = [Vec::new(), Vec::new()];
        for mut piece in input.chunks(size) {
            while let Some((channel, payload)) = demux.next(&mut piece)? {
                match channel {
                    Channel::Stdout => out[0].extend(payload),
                    Channel::Stderr | Channel::Engine => out[1].extend(payload),
                }
            }
        }
        assert!(demux.between_frames());
        Ok(out)
    }

    #[test]
    fn frames_survive_any_cut() {
        let input = [
            frame(1, b"hello "),
            frame(2, b"oops"),
            frame(1, b""),
            frame(1, &[0, 1, 2, 3, 255]),
        ]
        .concat();
        for size in 1..=input.len() {
            let [stdout, stderr] = feed(&input, size).unwrap();
            assert_eq!(stdout, b"hello \0\x01\x02\x03\xff", "pieces of {size}");
            assert_eq!(stderr, b"oops");
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        for header in [
            *b"HTTP/1.1",
            [0; 8],
            [4, 0, 0, 0, 0, 0, 0, 1],
            [1, 0, 1, 0, 0, 0, 0, 1],
        ] {
            assert_eq!(feed(&header, 8), Err(BadHeader(header)));
        }
    }

    #[test]
    fn a_frame_of_4_gib_is_passed_on_as_it_comes() {
        let mut demux = Demux::new();
        let mut input: &[u8] = &[1, 0, 0, 0, 255, 255, 255, 255];
        assert_eq!(demux.next(&mut input), Ok(None));
        let chunk = vec![7; 1 << 20];
        let mut total = 0_u64;
        for _ in 0..4096 {
            let mut input: &[u8] = &chunk;
            while let Ok(Some((Channel::Stdout, payload))) = demux.next(&mut input) {
                total += payload.len() as u64;
                if demux.between_frames() {
                    break;
                }
            }
        }
        assert_eq!(total, u64::from(u32::MAX));
        assert!(demux.between_frames());
    }
}
