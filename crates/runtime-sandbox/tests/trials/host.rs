//! The host itself, which no sandbox restricts.

use std::sync::Arc;
use std::time::Duration;

use libtest_mimic::Failed;
use prx_runtime_core::{ExecutionRequest, RuntimeAdapter, Termination};

use crate::Entry;
use crate::stage::{Stage, block_on, check, told};

pub(crate) const TRIALS: &[Entry] = &[
    ("the_host_stays_free", host_stays_free),
    ("sixty_four_at_once", sixty_four),
    ("a_deadline_ends_everything", deadline),
    ("a_dropped_future_ends_everything", dropped),
    ("nothing_of_ours_is_left_open", nothing_left_open),
    ("the_probe_does_real_work", probe),
];

fn host_stays_free(stage: &Stage) -> Result<(), Failed> {
    stage.allows("true")?;
    let outside = stage.outside().to_owned();
    let threads: Vec<_> = (0..8)
        .map(|number| {
            let file = outside.join(format!("thread-{number}"));
            std::thread::spawn(move || {
                std::fs::write(&file, "free")?;
                std::os::unix::net::UnixDatagram::unbound()?;
                std::net::UdpSocket::bind("127.0.0.1:0")?;
                std::fs::read_dir("/etc")?;
                let status = std::fs::read_to_string("/proc/thread-self/status")?;
                Ok::<_, std::io::Error>(status)
            })
        })
        .collect();
    for thread in threads {
        let status = thread.join().map_err(|_| "a thread panicked")??;
        check!(status.contains("Seccomp:\t0"), "{status}");
        check!(status.contains("NoNewPrivs:\t0"), "{status}");
    }
    Ok(())
}

fn sixty_four(stage: &Stage) -> Result<(), Failed> {
    let mut config = stage.config.clone();
    config.runtime.max_concurrent = 64;
    let runtime: Arc<dyn RuntimeAdapter> = Arc::new(stage.runtime_by(&config)?);
    let workspace = stage.workspace();
    let failures = block_on(async {
        let calls: Vec<_> = (0..64)
            .map(|number| {
                let runtime = Arc::clone(&runtime);
                let request = ExecutionRequest::shell(format!(
                    "echo {number} > file-{number}; exit {number}"
                ))
                .working_dir(&workspace)
                .timeout(Duration::from_secs(60));
                tokio::spawn(async move { (number, runtime.run(request).await) })
            })
            .collect();
        let mut failures = Vec::new();
        for call in calls {
            match call.await {
                Ok((number, Ok(output))) if output.exit_code == number => {}
                Ok((number, Ok(output))) => failures.push(format!("{number}: {}", told(&output))),
                Ok((number, Err(error))) => failures.push(format!("{number}: {error}")),
                Err(error) => failures.push(error.to_string()),
            }
        }
        failures
    });
    check!(failures.is_empty(), "{}", failures.join("\n"));
    check!(
        std::fs::read_dir(&workspace)?.count() == 64,
        "files are missing"
    );
    Ok(())
}

fn deadline(stage: &Stage) -> Result<(), Failed> {
    let request =
        ExecutionRequest::shell("trap 'echo last; exit 0' TERM; echo first; sleep 60 & wait")
            .working_dir(stage.workspace())
            .timeout(Duration::from_millis(700));
    let output = block_on(stage.runtime()?.run(request))?;
    check!(
        output.termination == Termination::TimedOut,
        "{}",
        told(&output)
    );
    check!(
        output.stdout.to_text() == "first\nlast\n",
        "{}",
        told(&output)
    );
    Ok(())
}

fn dropped(stage: &Stage) -> Result<(), Failed> {
    let runtime = stage.runtime()?;
    let request = ExecutionRequest::shell("echo x > started; sleep 5; echo x > late")
        .working_dir(stage.workspace())
        .timeout(Duration::from_secs(60));
    let workspace = stage.workspace();
    block_on(async {
        let started = async {
            while !workspace.join("started").exists() {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::select! {
            _ = runtime.run(request) => {}
            () = started => {}
        }
    });
    std::thread::sleep(Duration::from_millis(5500));
    check!(
        !stage.workspace().join("late").exists(),
        "the command lived on"
    );
    Ok(())
}

fn nothing_left_open(stage: &Stage) -> Result<(), Failed> {
    let own = |line: &str| {
        // Other trials run in this process at the same time: a process of its own tells.
        line.to_owned()
    };
    let runtime = stage.runtime()?;
    let count = || -> Result<usize, Failed> { Ok(std::fs::read_dir("/proc/self/task")?.count()) };
    let _ = own;
    let run = |line: &str| stage.run(&runtime, ExecutionRequest::shell(line));
    run("true")?;
    let before = count()?;
    for _ in 0..20 {
        run("true")?;
        run("exit 1")?;
    }
    let after = count()?;
    // Each call would have left one.
    check!(after < before + 20, "{before} threads became {after}");
    Ok(())
}

fn probe(stage: &Stage) -> Result<(), Failed> {
    let probe = block_on(stage.runtime()?.probe());
    check!(probe.available, "{}", probe.detail);
    check!(
        probe.detail.contains(stage.kind().as_str()),
        "{}",
        probe.detail
    );
    Ok(())
}
