//! Literal variables of the operator.

use std::collections::BTreeMap;
use std::collections::btree_map::Iter;
use std::fmt;
use std::ops::{Deref, DerefMut};

use serde::{Deserialize, Serialize};

/// Variables that the operator sets for every command of a backend or of a tool, sorted by name.
///
/// A map in every respect but one: `Debug` shows the names and hides the values, which may be
/// secrets.
#[derive(Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct EnvTable(BTreeMap<String, String>);

/// What stands for a value that is not shown.
const HIDDEN: &str = "<hidden>";

impl EnvTable {
    /// The same names, each with `<hidden>` for its value: for output that people read.
    #[must_use]
    pub fn redacted(&self) -> Self {
        self.keys()
            .map(|name| (name.clone(), HIDDEN.to_owned()))
            .collect()
    }
}

impl fmt::Debug for EnvTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl Deref for EnvTable {
    type Target = BTreeMap<String, String>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for EnvTable {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl From<BTreeMap<String, String>> for EnvTable {
    fn from(variables: BTreeMap<String, String>) -> Self {
        Self(variables)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for EnvTable {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(variables: I) -> Self {
        Self(
            variables
                .into_iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect(),
        )
    }
}

impl<'a> IntoIterator for &'a EnvTable {
    type Item = (&'a String, &'a String);
    type IntoIter = Iter<'a, String, String>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_hides_values() {
        let table = EnvTable::from_iter([("RUSTFLAGS", "hunter2")]);
        assert_eq!(format!("{table:?}"), r#"{"RUSTFLAGS"}"#);
        assert_eq!(table.redacted()["RUSTFLAGS"], HIDDEN);
    }
}
