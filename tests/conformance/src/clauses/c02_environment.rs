//! C2: which variables a command gets.

use std::collections::BTreeSet;

use prx_runtime_core::{
    EXECUTION_ID_VARIABLE, ErrorKind, ExecutionOutput, ExecutionRequest, RuntimeAdapter,
};

use crate::Task;
use crate::clause::{Clause, trials};
use crate::host::{LISTED, SECRET, SECRET_NAMES, STARTED_UP, UNLISTED};
use crate::stage::{Halt, Stage, check, check_eq, text};

pub(super) const CLAUSE: Clause = Clause {
    number: 2,
    module: "c02_environment",
    title: "Environment",
    rule: "The environment is built from nothing: host variables on `env_whitelist`, then the \
           call's variables that are on it, then the operator's literal `env` of the backend. \
           Start-up variables of loaders and interpreters and names in the shape of a secret may \
           not be on the whitelist; the operator's literal may hold a loader variable. What a call \
           asked for and did not get is listed by name. Values are in no error.",
    why: "The host of an agent holds the keys to everything the agent may do, and a start-up \
          variable turns any program into one that runs other code first.",
    trials: trials! {
        it_is_built_from_nothing: "What nobody listed is not there.";
        a_listed_host_variable_passes: "The whitelist lets a host variable through, unchanged.";
        an_unlisted_host_variable_stays_out: "Without the whitelist there is no way in.";
        names_are_compared_exactly: "A name in other letters is another name.";
        secrets_of_the_host_stay_out: "No secret of the host reaches a command, nor any part of one.";
        a_secret_on_the_whitelist_is_an_error: "Opening the door to a secret is a mistake that is named.";
        a_loader_variable_on_the_whitelist_is_an_error: "Opening the door to code is a mistake that is named.";
        a_listed_variable_of_the_call_passes: "A call may set what the whitelist has.";
        the_call_wins_over_the_host: "What the call says about a listed variable holds.";
        an_unlisted_variable_of_the_call_is_listed_as_refused: "The caller learns what it did not get, sorted by name.";
        nothing_refused_is_an_empty_list: "A call that got all it asked for is told so.";
        loader_variables_of_a_call_are_refused: "A call cannot make a program run other code first.";
        start_up_files_are_not_read: "Start-up variables of the host do nothing to a line.", needs [Shell];
        the_literal_passes: "What the operator writes for the backend is set.";
        the_literal_wins_over_the_call: "The operator has the last word, and the call is told.";
        the_literal_may_hold_a_loader_variable: "Toolchains need LD_LIBRARY_PATH, and the operator may say so.";
        values_may_be_anything: "Blanks, quotes, newlines and other characters arrive unchanged.";
        an_empty_value_is_a_value: "Set to nothing is not the same as not set.";
        a_name_that_is_none_is_refused: "An empty name or one with an equals sign is a mistake of the caller.";
        values_are_in_no_error: "An error about a variable names it and keeps its value.";
        the_execution_id_is_not_the_callers: "Nobody but the runtime sets the mark by which strays are found.";
        calls_share_nothing: "A variable of one call is not in the next.";
        a_live_execution_follows_the_same_rule: "There is one rule, however a command is started.", needs [Sessions];
    },
};

/// The adapter whose whitelist has [`LISTED`] and, besides, `names`.
async fn listing(
    stage: &Stage,
    names: &[&str],
) -> Result<std::sync::Arc<dyn RuntimeAdapter>, Halt> {
    stage
        .adapter_with(|config| {
            let whitelist = &mut config.runtime.env_whitelist;
            whitelist.push(LISTED.0.to_owned());
            whitelist.extend(names.iter().map(|name| (*name).to_owned()));
        })
        .await
}

/// The value of a variable as the guest has it.
fn value(output: &ExecutionOutput) -> Result<Option<&str>, Halt> {
    let text = text(&output.stdout)?;
    if output.exit_code != 0 {
        return Ok(None);
    }
    text.strip_suffix('\n')
        .map(Some)
        .ok_or_else(|| Halt::failed(format_args!("no value was printed: {output:?}")))
}

fn asks(stage: &Stage, name: &str) -> Result<ExecutionRequest, Halt> {
    stage.spell(Task::PrintVariable(name.to_owned()))
}

fn names(output: &ExecutionOutput) -> Result<BTreeSet<&str>, Halt> {
    Ok(text(&output.stdout)?
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(n, _)| n)
        .collect())
}

async fn it_is_built_from_nothing(stage: &Stage) -> Result<(), Halt> {
    let output = stage.run(Task::PrintEnv).await?;
    let whitelist = stage.driver().config().runtime.env_whitelist;
    let ambient = stage.driver().ambient_variables();
    for name in names(&output)? {
        check!(
            whitelist.iter().any(|listed| listed == name) || ambient.contains(&name),
            "`{name}` is there and nobody listed it"
        );
    }
    Ok(())
}

async fn a_listed_host_variable_passes(stage: &Stage) -> Result<(), Halt> {
    let output = listing(stage, &[])
        .await?
        .run(asks(stage, LISTED.0)?)
        .await?;
    check_eq!(value(&output)?, Some(LISTED.1));
    Ok(())
}

async fn an_unlisted_host_variable_stays_out(stage: &Stage) -> Result<(), Halt> {
    let output = listing(stage, &[])
        .await?
        .run(asks(stage, UNLISTED.0)?)
        .await?;
    check_eq!(value(&output)?, None);
    Ok(())
}

async fn names_are_compared_exactly(stage: &Stage) -> Result<(), Halt> {
    let other = LISTED.0.to_lowercase();
    let request = asks(stage, &other)?.env(&other, "value");
    let output = listing(stage, &[]).await?.run(request).await?;
    check_eq!(value(&output)?, None);
    Ok(())
}

async fn secrets_of_the_host_stay_out(stage: &Stage) -> Result<(), Halt> {
    let output = listing(stage, &[])
        .await?
        .run(stage.spell(Task::PrintEnv)?)
        .await?;
    let names = names(&output)?;
    for secret in SECRET_NAMES {
        check!(
            std::env::var_os(secret).is_some(),
            "the host is not prepared: no {secret}"
        );
        check!(!names.contains(secret), "`{secret}` reached the command");
    }
    check!(
        !text(&output.stdout)?.contains(SECRET),
        "the value of a secret reached the command"
    );
    Ok(())
}

/// Putting `name` on the whitelist is an error that names it.
async fn may_not_be_listed(stage: &Stage, name: &str) -> Result<(), Halt> {
    let made = stage
        .try_adapter_with(|config| config.runtime.env_whitelist.push(name.to_owned()))
        .await;
    let Err(error) = made else {
        return Err(Halt::failed(format_args!("`{name}` was accepted")));
    };
    check_eq!(error.kind(), ErrorKind::InvalidConfig, "{error}");
    check!(
        error.to_string().contains(name),
        "the error does not name `{name}`: {error}"
    );
    check!(
        !error.to_string().contains(SECRET),
        "the error has the value in it: {error}"
    );
    Ok(())
}

async fn a_secret_on_the_whitelist_is_an_error(stage: &Stage) -> Result<(), Halt> {
    for name in SECRET_NAMES {
        may_not_be_listed(stage, name).await?;
    }
    Ok(())
}

async fn a_loader_variable_on_the_whitelist_is_an_error(stage: &Stage) -> Result<(), Halt> {
    for name in [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "LD_AUDIT",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "ENV",
        "PYTHONSTARTUP",
        "PERL5OPT",
        "RUBYOPT",
        "NODE_OPTIONS",
    ] {
        may_not_be_listed(stage, name).await?;
    }
    Ok(())
}

async fn a_listed_variable_of_the_call_passes(stage: &Stage) -> Result<(), Halt> {
    let request = asks(stage, "PRX_SUITE_CALL")?.env("PRX_SUITE_CALL", "of the call");
    let output = listing(stage, &["PRX_SUITE_CALL"])
        .await?
        .run(request)
        .await?;
    check_eq!(value(&output)?, Some("of the call"));
    Ok(())
}

async fn the_call_wins_over_the_host(stage: &Stage) -> Result<(), Halt> {
    let request = asks(stage, LISTED.0)?.env(LISTED.0, "of the call");
    let output = listing(stage, &[]).await?.run(request).await?;
    check_eq!(value(&output)?, Some("of the call"));
    Ok(())
}

async fn an_unlisted_variable_of_the_call_is_listed_as_refused(stage: &Stage) -> Result<(), Halt> {
    let request = stage
        .spell(Task::PrintEnv)?
        .env("PRX_SUITE_Z", "z")
        .env("PRX_SUITE_A", "a")
        .env(LISTED.0, "listed")
        .env(UNLISTED.0, "unlisted");
    let output = listing(stage, &[]).await?.run(request).await?;
    check_eq!(
        output.refused_env,
        ["PRX_SUITE_A", UNLISTED.0, "PRX_SUITE_Z"]
    );
    let names = names(&output)?;
    check!(
        output
            .refused_env
            .iter()
            .all(|name| !names.contains(name.as_str())),
        "{output:?}"
    );
    Ok(())
}

async fn nothing_refused_is_an_empty_list(stage: &Stage) -> Result<(), Halt> {
    let request = asks(stage, LISTED.0)?.env(LISTED.0, "of the call");
    let output = listing(stage, &[]).await?.run(request).await?;
    check!(
        output.refused_env.is_empty(),
        "refused: {:?}",
        output.refused_env
    );
    Ok(())
}

async fn loader_variables_of_a_call_are_refused(stage: &Stage) -> Result<(), Halt> {
    let asked = ["BASH_ENV", "LD_PRELOAD", "NODE_OPTIONS", "PYTHONSTARTUP"];
    let request = stage
        .spell(Task::PrintEnv)?
        .envs(asked.map(|name| (name, "/nowhere")));
    let output = stage.adapter().await?.run(request).await?;
    check_eq!(output.refused_env, asked);
    check!(!text(&output.stdout)?.contains("/nowhere"), "{output:?}");
    Ok(())
}

async fn start_up_files_are_not_read(stage: &Stage) -> Result<(), Halt> {
    check!(
        std::env::var_os("BASH_ENV").is_some(),
        "the host is not prepared: no BASH_ENV"
    );
    let request = ExecutionRequest::shell("echo line").working_dir(stage.directory());
    let output = stage.adapter().await?.run(request).await?;
    check!(!output.stdout.to_text().contains(STARTED_UP), "{output:?}");
    check_eq!(text(&output.stdout)?, "line\n");
    Ok(())
}

/// The adapter whose operator sets these variables.
async fn with_literal(
    stage: &Stage,
    name: &str,
    value: &str,
) -> Result<std::sync::Arc<dyn RuntimeAdapter>, Halt> {
    let mut config = stage.driver().config();
    if !stage.driver().set_literal(&mut config, name, value) {
        return Err(Halt::gated("the backend has no table of literal variables"));
    }
    stage.adapter_with(|changed| *changed = config).await
}

async fn the_literal_passes(stage: &Stage) -> Result<(), Halt> {
    let adapter = with_literal(stage, "PRX_SUITE_LITERAL", "of the operator").await?;
    let output = adapter.run(asks(stage, "PRX_SUITE_LITERAL")?).await?;
    check_eq!(value(&output)?, Some("of the operator"));
    Ok(())
}

async fn the_literal_wins_over_the_call(stage: &Stage) -> Result<(), Halt> {
    let name = "PRX_SUITE_LITERAL";
    let adapter = with_literal(stage, name, "of the operator").await?;
    let output = adapter
        .run(asks(stage, name)?.env(name, "of the call"))
        .await?;
    check_eq!(value(&output)?, Some("of the operator"));
    check_eq!(output.refused_env, [name]);
    Ok(())
}

async fn the_literal_may_hold_a_loader_variable(stage: &Stage) -> Result<(), Halt> {
    let adapter = with_literal(stage, "LD_LIBRARY_PATH", "/nowhere/lib").await?;
    let output = adapter.run(asks(stage, "LD_LIBRARY_PATH")?).await?;
    check_eq!(value(&output)?, Some("/nowhere/lib"));
    Ok(())
}

async fn values_may_be_anything(stage: &Stage) -> Result<(), Halt> {
    let adapter = listing(stage, &[]).await?;
    for value in [
        " blanks ",
        "a=b=c",
        "'quotes\" $HOME `id`",
        "two\nlines",
        "grüße 日本語",
        "\\",
    ] {
        let output = adapter
            .run(asks(stage, LISTED.0)?.env(LISTED.0, value))
            .await?;
        check_eq!(self::value(&output)?, Some(value));
    }
    Ok(())
}

async fn an_empty_value_is_a_value(stage: &Stage) -> Result<(), Halt> {
    let output = listing(stage, &[])
        .await?
        .run(asks(stage, LISTED.0)?.env(LISTED.0, ""))
        .await?;
    check_eq!(value(&output)?, Some(""));
    Ok(())
}

async fn a_name_that_is_none_is_refused(stage: &Stage) -> Result<(), Halt> {
    let adapter = stage.adapter().await?;
    for name in ["", "A=B", "A\0B"] {
        let result = adapter
            .run(stage.spell(Task::PrintEnv)?.env(name, "value"))
            .await;
        let Err(error) = result else {
            return Err(Halt::failed(format_args!("{name:?} was set")));
        };
        check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    }
    Ok(())
}

async fn values_are_in_no_error(stage: &Stage) -> Result<(), Halt> {
    let request = asks(stage, LISTED.0)?.env(LISTED.0, format!("{SECRET}\0{SECRET}"));
    let shown = format!("{request:?}");
    check!(
        !shown.contains(SECRET),
        "the request shows a value: {shown}"
    );
    let result = listing(stage, &[]).await?.run(request).await;
    let Err(error) = result else {
        return Err(Halt::failed("a NUL byte was accepted"));
    };
    check_eq!(error.kind(), ErrorKind::InvalidRequest, "{error}");
    let said = format!("{error} {error:?}");
    check!(
        said.contains(LISTED.0),
        "the error does not name the variable: {said}"
    );
    check!(
        !said.contains(SECRET),
        "the error has the value in it: {said}"
    );
    Ok(())
}

async fn the_execution_id_is_not_the_callers(stage: &Stage) -> Result<(), Halt> {
    may_not_be_listed(stage, EXECUTION_ID_VARIABLE).await?;
    let request = asks(stage, EXECUTION_ID_VARIABLE)?.env(EXECUTION_ID_VARIABLE, "forged");
    let output = stage.adapter().await?.run(request).await?;
    check!(value(&output)? != Some("forged"), "{output:?}");
    check_eq!(output.refused_env, [EXECUTION_ID_VARIABLE]);
    Ok(())
}

async fn calls_share_nothing(stage: &Stage) -> Result<(), Halt> {
    let adapter = listing(stage, &["PRX_SUITE_CALL"]).await?;
    adapter
        .run(asks(stage, "PRX_SUITE_CALL")?.env("PRX_SUITE_CALL", "first"))
        .await?;
    let output = adapter.run(asks(stage, "PRX_SUITE_CALL")?).await?;
    check_eq!(value(&output)?, None);
    Ok(())
}

async fn a_live_execution_follows_the_same_rule(stage: &Stage) -> Result<(), Halt> {
    let adapter = listing(stage, &[]).await?;
    let request = stage
        .spell(Task::PrintEnv)?
        .env(LISTED.0, "of the call")
        .env(UNLISTED.0, "no");
    let output = adapter.spawn(request).await?.wait().await?;
    let printed = text(&output.stdout)?;
    check!(
        printed.contains(&format!("{}=of the call\n", LISTED.0)),
        "{printed}"
    );
    check!(
        !printed.contains(UNLISTED.0) && !printed.contains(SECRET),
        "{printed}"
    );
    check_eq!(output.refused_env, [UNLISTED.0]);
    Ok(())
}
