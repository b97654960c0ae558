//! The bounded capture against the plainest oracle there is: a vector of every byte.

#![no_main]

use libfuzzer_sys::fuzz_target;
use prx_runtime_core::Capture;

// A limit, where the chunks of the stream end, and the stream.
fuzz_target!(|input: (u16, Vec<u8>, &[u8])| {
    let (limit, cuts, all) = input;
    let limit = usize::from(limit) % 512;

    let mut capture = Capture::new(limit);
    let mut rest = all;
    for cut in cuts {
        let (chunk, after) = rest.split_at(usize::from(cut).min(rest.len()));
        capture.push(chunk);
        rest = after;
    }
    capture.push(rest);
    assert_eq!(capture.total_bytes(), all.len() as u64);

    let captured = capture.finish();
    assert_eq!(captured.total_bytes(), all.len() as u64);
    if all.len() <= limit {
        assert_eq!(captured.as_bytes(), all);
        assert_eq!(captured.omitted_bytes(), 0);
    } else {
        let tail = limit / 2;
        assert_eq!(captured.head(), &all[..limit - tail]);
        assert_eq!(captured.tail(), &all[all.len() - tail..]);
        assert_eq!(captured.omitted_bytes(), (all.len() - limit) as u64);
    }

    // As text, nothing may be invented where all of it was text to begin with.
    let text = captured.to_text();
    if std::str::from_utf8(all).is_ok() && !all.contains(&0xEF) {
        assert!(!text.contains('\u{FFFD}'));
    }
});
