//! C13: whether a backend can be used.

use std::time::{Duration, Instant};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::stage::{Halt, Stage, check, check_eq};

pub(super) const CLAUSE: Clause = Clause {
    number: 13,
    module: "c13_probe",
    title: "Probe",
    rule: "`is_available` does real work, answers within 2 s, and `probe` says why not and what to \
           do.",
    why: "Detection that only looks for a file chooses backends that do not work; one that hangs \
          makes every start of a host hang; and \"not available\" alone helps nobody.",
    trials: trials! {
        it_answers_in_time: "Two seconds, whatever it finds.";
        both_answers_agree: "`is_available` and `probe` are one probe.";
        an_answer_has_words: "What was found is said.";
        what_is_available_runs: "A backend that says yes runs a command.";
        it_can_be_asked_again: "The answer does not change by asking, nor by asking many times at once.";
        the_name_is_the_backends: "The adapter is called what the configuration calls it.";
        a_backend_that_cannot_work_says_so: "Why not, and what to do about it.";
        it_can_be_asked_while_commands_run: "A busy backend is still there.";
    },
};

/// The bound of the contract, and what a machine under load may add to it.
const BOUND: Duration = Duration::from_secs(2 + 8);

async fn it_answers_in_time(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let start = Instant::now();
    adapter.probe().await;
    let elapsed = start.elapsed();
    check!(elapsed < BOUND, "took {elapsed:?}");
    let start = Instant::now();
    adapter.is_available().await;
    let elapsed = start.elapsed();
    check!(elapsed < BOUND, "took {elapsed:?}");
    Ok(())
}

async fn both_answers_agree(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let probe = adapter.probe().await;
    check_eq!(adapter.is_available().await, probe.available, "{probe:?}");
    Ok(())
}

async fn an_answer_has_words(stage: &Stage) -> Result<(), Halt> {
    let probe = stage.adapter().await?.probe().await;
    check!(!probe.detail.trim().is_empty(), "{probe:?}");
    check!(
        !probe.detail.contains('\n'),
        "more than one line: {probe:?}"
    );
    Ok(())
}

async fn what_is_available_runs(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let probe = adapter.probe().await;
    check!(
        probe.available,
        "the suite runs on a backend that is not there: {probe:?}"
    );
    check_eq!(adapter.run(stage.spell(Task::Exit(3))?).await?.exit_code, 3);
    Ok(())
}

async fn it_can_be_asked_again(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    let first = adapter.probe().await;
    let (one, two, three, four) = tokio::join!(
        adapter.probe(),
        adapter.probe(),
        adapter.probe(),
        adapter.probe()
    );
    for probe in [one, two, three, four, adapter.probe().await] {
        check_eq!(probe.available, first.available, "{probe:?}");
    }
    Ok(())
}

async fn the_name_is_the_backends(stage: &Stage) -> Result<(), Halt> {
    check_eq!(stage.adapter().await?.name(), stage.driver().adapter_name());
    Ok(())
}

async fn a_backend_that_cannot_work_says_so(stage: &Stage) -> Result<(), Halt> {
    let Some(config) = stage.driver().unusable() else {
        return Err(Halt::gated(
            "there is no way to configure the backend so that it cannot work",
        ));
    };
    let start = Instant::now();
    let said = match stage.driver().make(&config).await {
        Err(error) => error.to_string(),
        Ok(adapter) => {
            let probe = adapter.probe().await;
            check!(!probe.available, "said to be available: {probe:?}");
            check!(
                !adapter.is_available().await,
                "said to be available by one of two"
            );
            check!(probe.hint.is_some(), "does not say what to do: {probe:?}");
            check!(
                adapter.run(stage.spell(Task::Exit(0))?).await.is_err(),
                "a command was run"
            );
            probe.detail
        }
    };
    check!(start.elapsed() < 3 * BOUND, "took {:?}", start.elapsed());
    check!(!said.trim().is_empty(), "nothing is said");
    Ok(())
}

async fn it_can_be_asked_while_commands_run(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage
        .adapter_with(|config| config.runtime.max_concurrent = 1)
        .await?;
    let run = adapter.run(stage.spell(Task::Sleep(Duration::from_secs(1)))?);
    let (output, probe) = tokio::join!(run, adapter.probe());
    check!(output?.success(), "the command failed");
    check!(probe.available, "{probe:?}");
    Ok(())
}
