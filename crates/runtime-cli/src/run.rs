//! `run`

use std::future::Future;
use std::io::{self, Write};
use std::time::Duration;

use prx_runtime::{
    Error, ErrorKind, Execution, ExecutionControl, ExecutionOutput, ExecutionRequest, Result,
    Stdin, config::Config, create_runtime,
};

use crate::args::{Global, RunArgs};
use crate::exit::{self, Code};
use crate::forward::forward;
use crate::signals::Signals;
use crate::{config, failure, plan, run_json};

/// How long our reader has for the rest of the output once a signal has ended the command.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(crate) async fn run(global: &Global, args: RunArgs) -> Result<Code> {
    if args.dry_run {
        return plan::run(global, args).await;
    }
    let config = config::load(global)?;
    let json = args.json;
    let request = request(args, &config);
    let started = async { create_runtime(&config).await?.spawn(request).await };
    follow(started, config.runtime.kill_grace(), json).await
}

/// Starts an execution, passes on what it says, ends it when we are told to end, and gives its
/// code.
pub(crate) async fn follow(
    started: impl Future<Output = Result<Execution>>,
    grace: Duration,
    json: bool,
) -> Result<Code> {
    let mut signals = Signals::listen().map_err(|error| failure::io("cannot start", &error))?;
    // Pulling an image may take long, and is given up with us.
    let mut execution = tokio::select! {
        execution = started => execution?,
        signal = signals.next() => return Ok(Code::of_signal(signal)),
    };
    let control = execution.control();
    if json {
        let (output, signal) = until_signal(execution.wait(), &mut signals, &control, grace).await;
        let output = output?;
        failure::print(&run_json::render(&output)?)?;
        return Ok(code(&output, signal));
    }
    let streams = {
        let stdout = forward(execution.stdout.take(), io::stdout());
        let stderr = forward(execution.stderr.take(), io::stderr());
        let control = control.clone();
        async move {
            let unread = tokio::try_join!(stdout, stderr).err();
            if unread.is_some() {
                control.kill();
            }
            unread
        }
    };
    let mut streams = std::pin::pin!(streams);
    let mut passed_on = None;
    let ended = async {
        let mut ended = std::pin::pin!(execution.wait());
        loop {
            tokio::select! {
                output = &mut ended => return output,
                unread = &mut streams, if passed_on.is_none() => passed_on = Some(unread),
            }
        }
    };
    let (output, mut signal) = until_signal(ended, &mut signals, &control, grace).await;
    // Who reads us may be behind, and has all the time for it unless we are to end.
    let unread = match (passed_on, signal) {
        (Some(unread), _) => unread,
        (None, Some(_)) => tokio::time::timeout(LAST_WORDS, streams)
            .await
            .ok()
            .flatten(),
        (None, None) => tokio::select! {
            unread = streams => unread,
            late = signals.next() => {
                signal = Some(late);
                None
            }
        },
    };
    let output = output?;
    warn_of_refused(&output.refused_env);
    if let Some(kept) = &output.kept {
        let _ = writeln!(io::stderr(), "prx-runtime: kept {kept}");
    }
    match unread {
        Some(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(exit::BROKEN_PIPE),
        Some(error) => Err(failure::io("cannot pass on the command's output", &error)),
        None => Ok(code(&output, signal)),
    }
}

/// The request that the command line describes.
pub(crate) fn request(args: RunArgs, config: &Config) -> ExecutionRequest {
    let mut words = args.command.into_iter();
    let first = words.next().unwrap_or_default();
    // As the published `execute`: alone it is a line, with arguments a program.
    let mut request = if words.len() == 0 {
        ExecutionRequest::shell(first)
    } else {
        ExecutionRequest::program(first).args(words)
    };
    request = request
        .envs(args.env)
        .timeout(args.timeout.unwrap_or(config.runtime.default_timeout()));
    if let Some(directory) = args.workdir {
        request = request.working_dir(directory);
    }
    if let Some(tool) = args.tool {
        request = request.tool(tool);
    }
    if args.stdin {
        request = request.stdin(host_stdin());
    }
    request
}

/// Our own stdin, for the command.
pub(crate) fn host_stdin() -> Stdin {
    Stdin::Reader(Box::new(tokio::io::stdin()))
}

/// Waits for `future`, and ends the execution on a signal: with a grace on the first, at once on
/// the next. Returns the first signal's number too.
async fn until_signal<T>(
    future: impl Future<Output = T>,
    signals: &mut Signals,
    control: &ExecutionControl,
    grace: Duration,
) -> (T, Option<u8>) {
    let mut future = std::pin::pin!(future);
    let mut first = None;
    loop {
        tokio::select! {
            result = &mut future => return (result, first),
            signal = signals.next() => {
                control.terminate(if first.is_none() { grace } else { Duration::ZERO });
                first.get_or_insert(signal);
            }
        }
    }
}

fn code(output: &ExecutionOutput, signal: Option<u8>) -> Code {
    match signal {
        Some(signal) => Code::of_signal(signal),
        None => Code::of_command(output.exit_code),
    }
}

fn warn_of_refused(names: &[String]) {
    if !names.is_empty() {
        let error = Error::new(
            ErrorKind::Refused,
            format!("not passed on to the command: {}", names.join(", ")),
        )
        .with_hint("only what runtime.env_whitelist has is passed on");
        let _ = writeln!(io::stderr(), "prx-runtime: warning: {error}");
    }
}
