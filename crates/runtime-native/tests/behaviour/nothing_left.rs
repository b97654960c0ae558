//! Many executions, at once and one after another, leave a host as it was.

use std::collections::BTreeSet;
use std::fs;

use prx_runtime_core::{ExecutionRequest, RuntimeAdapter};
use prx_runtime_native::NativeRuntime;

use crate::stage;

const AT_ONCE: usize = 200;
const IN_A_ROW: usize = 2_000;
const WARM_UPS: usize = 4;
/// What an allocator may keep from one thing to the next, in KiB.
const SLACK_KIB: u64 = 4 * 1024;

/// What this process has.
#[derive(Debug, PartialEq, Eq)]
struct Belongings {
    descriptors: BTreeSet<String>,
    threads: usize,
    zombies: Vec<u32>,
}

impl Belongings {
    fn now() -> Self {
        Self {
            descriptors: fs::read_dir("/proc/self/fd")
                .unwrap()
                .filter_map(|entry| {
                    let entry = entry.unwrap();
                    let target = fs::read_link(entry.path()).ok()?;
                    Some(format!("{:?} -> {}", entry.file_name(), target.display()))
                })
                // The one that this very look needs.
                .filter(|descriptor| !descriptor.ends_with("/fd"))
                .collect(),
            threads: fs::read_dir("/proc/self/task").unwrap().count(),
            zombies: stage::zombies(),
        }
    }
}

/// A line of `/proc/self/status`, in KiB.
fn memory(field: &str) -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(field)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

async fn at_once(native: &NativeRuntime) {
    let calls: Vec<_> = (0..AT_ONCE)
        .map(|number| {
            let native = native.clone();
            tokio::spawn(async move {
                let line = format!("echo {number}; exit {}", number % 100);
                let output = native.run(ExecutionRequest::shell(line)).await.unwrap();
                assert_eq!(output.stdout.to_string(), format!("{number}\n"));
                assert_eq!(output.exit_code, i32::try_from(number % 100).unwrap());
            })
        })
        .collect();
    for call in calls {
        call.await.unwrap();
    }
}

async fn in_a_row(native: &NativeRuntime, times: usize) {
    for _ in 0..times {
        let request = ExecutionRequest::program("true").max_output_bytes(1024);
        assert!(native.run(request).await.unwrap().success());
    }
}

#[test]
fn neither_process_nor_descriptor_nor_thread_nor_memory() {
    stage::alone(neither_process_nor_descriptor_nor_thread_nor_memory, || {
        stage::on_both_runtimes(|| async {
            let native = stage::native_by("[runtime]\nmax_concurrent = 256");
            // What is made once, on first use, is no leak. How many of them really run at a time,
            // and with that the peak, is not the same each time.
            for _ in 0..WARM_UPS {
                at_once(&native).await;
            }
            in_a_row(&native, 100).await;
            let before = Belongings::now();
            let (resident, peak) = (memory("VmRSS"), memory("VmHWM"));

            at_once(&native).await;
            in_a_row(&native, IN_A_ROW).await;

            assert_eq!(Belongings::now(), before);
            let grown = memory("VmRSS").saturating_sub(resident);
            assert!(grown < SLACK_KIB, "{grown} KiB more are resident");
            let grown = memory("VmHWM").saturating_sub(peak);
            assert!(grown < SLACK_KIB, "the peak rose by {grown} KiB");
        });
    });
}
