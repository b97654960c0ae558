//! The rules that several sections share. Each takes the key it checks and names it in the fault.

use std::collections::BTreeMap;

use super::config_path::ConfigPath;
use super::env_table::EnvTable;
use super::fault::Fault;
use super::image_reference;
use crate::EXECUTION_ID_VARIABLE;
use crate::environment_names::{is_loader_variable, is_secret_shaped};

/// Bytes in what the keys that end in `_mb` count.
const MEBIBYTE: u64 = 1 << 20;

/// The number is not zero.
pub(super) fn positive(key: &str, value: u64) -> Result<(), Fault> {
    if value == 0 {
        return Err(Fault::at(key, "found 0, expected an integer from 1"));
    }
    Ok(())
}

/// [`positive`], where the key is set; else there is no limit.
pub(super) fn positive_limit(key: &str, value: Option<u64>) -> Result<(), Fault> {
    match value {
        Some(0) => Err(Fault::at(
            key,
            "found 0, expected an integer from 1 (leave the key out for no limit)",
        )),
        _ => Ok(()),
    }
}

/// A number of mebibytes that can be counted in bytes.
pub(super) fn mebibytes(key: &str, value: u64) -> Result<(), Fault> {
    positive(key, value)?;
    let max = u64::MAX / MEBIBYTE;
    if value > max {
        return Err(Fault::at(
            key,
            format!("found {value}, expected an integer from 1 to {max}"),
        ));
    }
    Ok(())
}

/// The text says something.
pub(super) fn not_empty(key: &str, value: &str, expected: &str) -> Result<(), Fault> {
    if value.trim().is_empty() {
        return Err(Fault::at(key, format!("is empty; expected {expected}")));
    }
    no_nul(value).map_err(|fault| fault.under(key))
}

/// The text can be handed to the operating system.
pub(super) fn no_nul(value: &str) -> Result<(), Fault> {
    if value.contains('\0') {
        return Err(Fault::new("contains a NUL byte"));
    }
    Ok(())
}

/// Each item passes `rule`; a fault names its position.
pub(super) fn each<T>(
    key: &str,
    items: &[T],
    rule: impl Fn(&T) -> Result<(), Fault>,
) -> Result<(), Fault> {
    items.iter().enumerate().try_for_each(|(index, item)| {
        rule(item).map_err(|fault| fault.under_index(index).under(key))
    })
}

/// Paths that do not depend on where the host happens to run.
pub(super) fn absolute_paths(key: &str, paths: &[ConfigPath]) -> Result<(), Fault> {
    each(key, paths, |path| path.check_absolute().map_err(Fault::new))
}

/// A path, where one is set.
pub(super) fn path(key: &str, path: Option<&ConfigPath>) -> Result<(), Fault> {
    path.map_or(Ok(()), |path| {
        path.check().map_err(|problem| Fault::at(key, problem))
    })
}

/// A name of a container image.
pub(super) fn image(key: &str, reference: &str) -> Result<(), Fault> {
    image_reference::check(reference).map_err(|problem| Fault::at(key, problem))
}

/// Names of variables that may be taken from the host.
pub(super) fn host_variables(key: &str, names: &[String]) -> Result<(), Fault> {
    each(key, names, |name| {
        variable_name(name)?;
        if name.contains(['*', '?']) {
            return Err(Fault::new(format!(
                "{name:?} is a pattern; expected the names of variables, one by one"
            )));
        }
        if is_loader_variable(name) {
            return Err(Fault::new(format!(
                "{name:?} makes programs load code and is never passed on; \
                 to set it on purpose, put it into the `env` table of the backend"
            )));
        }
        if is_secret_shaped(name) {
            return Err(Fault::new(format!(
                "{name:?} looks like a secret and is never passed on from the host; \
                 to set it on purpose, put it into the `env` table of the backend"
            )));
        }
        Ok(())
    })
}

/// Variables the operator sets. Their values never appear in a fault.
pub(super) fn env_table(env: &EnvTable) -> Result<(), Fault> {
    env.iter()
        .try_for_each(|(name, value)| {
            variable_name(name)
                .and_then(|()| no_nul(value))
                .map_err(|fault| fault.under(name))
        })
        .map_err(|fault| fault.under("env"))
}

fn variable_name(name: &str) -> Result<(), Fault> {
    if name.is_empty() {
        return Err(Fault::new("is empty; expected the name of a variable"));
    }
    if name.contains(|c: char| c == '=' || c.is_whitespace() || c.is_control()) {
        return Err(Fault::new(format!(
            "{name:?} is no name of a variable: it contains `=` or a blank"
        )));
    }
    if name == EXECUTION_ID_VARIABLE {
        return Err(Fault::new(format!("{name:?} is set by the runtime itself")));
    }
    Ok(())
}

/// Images by the name of a tool or of a program.
pub(super) fn images(key: &str, images: &BTreeMap<String, String>) -> Result<(), Fault> {
    images
        .iter()
        .try_for_each(|(name, reference)| {
            not_empty(name, name, "the name of a tool or a program")?;
            image(name, reference)
        })
        .map_err(|fault| fault.under(key))
}
