//! A gigabyte of output under a bound of a mebibyte.

use std::fs;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};

use crate::stage;

const TOTAL: u64 = 1 << 30;
const BOUND: usize = 1 << 20;
/// The bound on two streams, buffers and what an allocator doubles on the way, in KiB.
const SLACK_KIB: u64 = 8 * 1024;

/// Lines of ten bytes that count: every byte of the stream is known by its place.
const FIRST: u64 = 100_000_000;

fn byte_at(place: u64) -> u8 {
    let line = format!("{}\n", FIRST + place / 10);
    line.as_bytes()[usize::try_from(place % 10).unwrap()]
}

fn peak_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmHWM"))
        .unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn memory_stays_flat_and_both_ends_are_right() {
    stage::alone(memory_stays_flat_and_both_ends_are_right, || {
        stage::on_both_runtimes(|| async {
            let native = stage::native();
            native.run(ExecutionRequest::shell("true")).await.unwrap();
            let before = peak_kib();
            let line = format!(
                "seq {FIRST} {} | head -c {TOTAL}",
                FIRST + TOTAL.div_ceil(10)
            );
            let request = ExecutionRequest::shell(line)
                .max_output_bytes(BOUND)
                .timeout(stage::LONG);
            let output = native.run(request).await.unwrap();
            let grown = peak_kib().saturating_sub(before);
            assert!(grown < SLACK_KIB, "the peak rose by {grown} KiB");

            assert!(output.success(), "{:?}", output.termination);
            assert_eq!(output.stdout.total_bytes(), TOTAL);
            assert_eq!(output.stdout.omitted_bytes(), TOTAL - BOUND as u64);
            let (head, tail) = (output.stdout.head(), output.stdout.tail());
            assert_eq!(head.len() + tail.len(), BOUND);
            let is_right = |bytes: &[u8], first: u64| {
                (first..)
                    .zip(bytes)
                    .all(|(place, byte)| byte_at(place) == *byte)
            };
            assert!(is_right(head, 0));
            assert!(is_right(tail, TOTAL - tail.len() as u64));
        });
    });
}
