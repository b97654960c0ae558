//! `backend = "auto"`: the best isolation that works here, chosen once.

use std::sync::Arc;

use prx_runtime_core::config::Config;
use prx_runtime_core::{Error, ErrorKind, Result, RuntimeAdapter};

use crate::backends::{BACKENDS, Made, Purpose};
use crate::create;
use crate::split::Split;

/// What became of a backend that was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tried {
    /// It works for every command.
    Works,
    /// It works for the commands it knows; others need another.
    WorksForSome,
    /// It was passed over.
    Fails,
}

/// What is chosen, by positions in what was tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Choice {
    /// One for all commands.
    One(usize),
    /// The first for the commands it knows, the second for the others.
    Split(usize, usize),
    /// The one that works only knows some commands, and nothing works for the others.
    OnlySome(usize),
    /// Nothing works.
    None,
}

/// Chooses among what was tried, best first. Pure, so that every combination can be tested.
pub(crate) fn choose(tried: &[Tried]) -> Choice {
    let mut some = None;
    for (index, tried) in tried.iter().enumerate() {
        match (tried, some) {
            (Tried::Works, None) => return Choice::One(index),
            (Tried::Works, Some(first)) => return Choice::Split(first, index),
            (Tried::WorksForSome, None) => some = Some(index),
            (Tried::WorksForSome, Some(_)) | (Tried::Fails, _) => {}
        }
    }
    some.map_or(Choice::None, Choice::OnlySome)
}

/// Tries the backends in their order until one works for every command. Says at `info` what was
/// chosen, and why each one before it was passed over.
pub(crate) async fn create(config: &Config, purpose: Purpose) -> Result<Arc<dyn RuntimeAdapter>> {
    let mut tried = Vec::new();
    let mut made: Vec<Option<Made>> = Vec::new();
    let mut passed_over = Vec::new();
    for backend in &BACKENDS {
        match create::create(backend, config, purpose).await {
            Ok(runtime) => {
                let knows_all = runtime.resolves.is_none();
                tried.push(if knows_all {
                    Tried::Works
                } else {
                    Tried::WorksForSome
                });
                made.push(Some(runtime));
                if knows_all {
                    break;
                }
            }
            // A configuration that is wrong for one backend is wrong: falling past it would hide
            // the mistake behind less isolation.
            Err(error) if error.kind() == ErrorKind::InvalidConfig => return Err(error),
            Err(error) => {
                passed_over.push(format!("{}: {error}", backend.name));
                tried.push(Tried::Fails);
                made.push(None);
            }
        }
    }
    let mut take = |index: usize| made.get_mut(index).and_then(Option::take);
    let chosen: Option<Arc<dyn RuntimeAdapter>> = match choose(&tried) {
        Choice::One(index) | Choice::OnlySome(index) => take(index).map(|made| made.adapter),
        Choice::Split(some, all) => match (take(some), take(all)) {
            (Some(some), Some(all)) => Some(Arc::new(Split::new(some, all))),
            _ => None,
        },
        Choice::None => None,
    };
    let passed_over = passed_over.join("; ");
    match chosen {
        Some(runtime) => {
            tracing::info!(
                backend = runtime.name(),
                passed_over,
                "backend chosen by auto"
            );
            Ok(runtime)
        }
        None => Err(Error::new(
            ErrorKind::Unavailable,
            format!("no backend can be used: {passed_over}"),
        )
        .with_hint("`prx-runtime doctor` says what each one needs")),
    }
}

#[cfg(test)]
mod tests {
    use super::Tried::{Fails, Works, WorksForSome};
    use super::*;

    #[test]
    fn every_combination_of_three() {
        let all = [Works, WorksForSome, Fails];
        for first in all {
            for second in all {
                for third in all {
                    let expected = match (first, second, third) {
                        (Works, _, _) => Choice::One(0),
                        (WorksForSome, Works, _) => Choice::Split(0, 1),
                        (WorksForSome, _, Works) => Choice::Split(0, 2),
                        (WorksForSome, _, _) => Choice::OnlySome(0),
                        (Fails, Works, _) => Choice::One(1),
                        (Fails, WorksForSome, Works) => Choice::Split(1, 2),
                        (Fails, WorksForSome, _) => Choice::OnlySome(1),
                        (Fails, Fails, Works) => Choice::One(2),
                        (Fails, Fails, WorksForSome) => Choice::OnlySome(2),
                        (Fails, Fails, Fails) => Choice::None,
                    };
                    let tried = [first, second, third];
                    assert_eq!(choose(&tried), expected, "{tried:?}");
                }
            }
        }
    }
}
