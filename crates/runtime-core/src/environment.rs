//! The one function that builds the environment of a command.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::{OsStr, OsString};
use std::fmt;

use serde::Serialize;

use crate::{Error, ErrorKind, Result, is_loader_variable, is_secret_shaped};

/// The variable that marks every process of a local execution, so that strays can be found. It is
/// ours alone: no host, call or configuration sets it.
pub const EXECUTION_ID_VARIABLE: &str = "PRX_EXECUTION_ID";

/// Variables whose values are paths of the host, which mean nothing elsewhere.
const HOST_PATHS: [&str; 2] = ["PATH", "HOME"];

/// What decides which variables a command gets.
#[derive(Clone, Default)]
pub struct EnvironmentRules {
    whitelist: BTreeSet<String>,
    host_filter: Option<BTreeSet<String>>,
    without_host_paths: bool,
    literal: BTreeMap<String, String>,
}

impl EnvironmentRules {
    /// Rules with `whitelist` (`runtime.env_whitelist`) and the operator's own variables
    /// `literal`.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidConfig`] for a name that no whitelist may hold (a loader or start-up
    /// variable, a secret-shaped name, [`EXECUTION_ID_VARIABLE`]) and for a name or a value that
    /// no environment can hold. The message names the variable, never its value.
    pub fn new(
        whitelist: impl IntoIterator<Item = impl Into<String>>,
        literal: impl IntoIterator<Item = (impl Into<String>, impl Into<String>)>,
    ) -> Result<Self> {
        let whitelist: BTreeSet<String> = whitelist.into_iter().map(Into::into).collect();
        for name in &whitelist {
            check_whitelisted(name)?;
        }
        let literal: BTreeMap<String, String> = literal
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        for (name, value) in &literal {
            check_name(name).map_err(config_error)?;
            check_value(name, value).map_err(config_error)?;
            if name == EXECUTION_ID_VARIABLE {
                return Err(config_error(format!(
                    "`{name}` is set by the runtime itself"
                )));
            }
        }
        Ok(Self {
            whitelist,
            host_filter: None,
            without_host_paths: false,
            literal,
        })
    }

    /// Lets a variable of the host pass only if `names` has it too (`capabilities.env_vars`).
    #[must_use]
    pub fn host_variables_only(
        mut self,
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Self {
        self.host_filter = Some(names.into_iter().map(Into::into).collect());
        self
    }

    /// Keeps the host's PATH and HOME out, for a backend that has a file system of its own.
    #[must_use]
    pub fn without_host_paths(mut self) -> Self {
        self.without_host_paths = true;
        self
    }

    /// The environment of one command: host variables on the whitelist, then those of the call
    /// that are on it, then the operator's own.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::InvalidRequest`] for a name or value in `call` that no environment can hold.
    pub fn build(&self, call: &HashMap<String, String>) -> Result<Environment> {
        self.build_from(|name| std::env::var_os(name), call)
    }

    /// As [`build`](Self::build), with the host's variables read by `host`.
    ///
    /// # Errors
    ///
    /// As [`build`](Self::build).
    pub fn build_from(
        &self,
        host: impl Fn(&str) -> Option<OsString>,
        call: &HashMap<String, String>,
    ) -> Result<Environment> {
        let mut variables = BTreeMap::new();
        for name in &self.whitelist {
            if self.host_may_give(name)
                && let Some(value) = host(name)
            {
                variables.insert(name.clone(), (Source::Host, value));
            }
        }
        let mut refused = BTreeSet::new();
        for (name, value) in call {
            check_name(name).map_err(request_error)?;
            check_value(name, value).map_err(request_error)?;
            if self.whitelist.contains(name) && !self.literal.contains_key(name) {
                variables.insert(name.clone(), (Source::Call, value.into()));
            } else if self.literal.get(name) != Some(value) {
                refused.insert(name.clone());
            }
        }
        for (name, value) in &self.literal {
            variables.insert(name.clone(), (Source::Operator, value.into()));
        }
        Ok(Environment {
            variables,
            refused: refused.into_iter().collect(),
        })
    }

    fn host_may_give(&self, name: &str) -> bool {
        let filtered = self
            .host_filter
            .as_ref()
            .is_some_and(|names| !names.contains(name));
        let host_path = self.without_host_paths && HOST_PATHS.contains(&name);
        !filtered && !host_path
    }
}

impl fmt::Debug for EnvironmentRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EnvironmentRules")
            .field("whitelist", &self.whitelist)
            .field("host_filter", &self.host_filter)
            .field("without_host_paths", &self.without_host_paths)
            .field("literal", &self.literal.keys())
            .finish()
    }
}

fn check_whitelisted(name: &str) -> Result<()> {
    check_name(name).map_err(config_error)?;
    let reason = if name == EXECUTION_ID_VARIABLE {
        "is set by the runtime itself"
    } else if is_loader_variable(name) {
        "makes a loader or an interpreter run code of its value"
    } else if is_secret_shaped(name) {
        "has the name of a secret"
    } else {
        return Ok(());
    };
    Err(config_error(format!(
        "`{name}` may not be whitelisted: it {reason}"
    )))
}

fn check_name(name: &str) -> Result<(), String> {
    match name {
        "" => Err("a variable has an empty name".into()),
        _ if name.contains(['=', '\0']) => Err(format!("{name:?} is no name of a variable")),
        _ => Ok(()),
    }
}

fn check_value(name: &str, value: &str) -> Result<(), String> {
    if value.contains('\0') {
        return Err(format!("the value of `{name}` has a NUL byte in it"));
    }
    Ok(())
}

fn config_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidConfig, message)
}

fn request_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::InvalidRequest, message)
}

/// Where the value of a variable comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Source {
    /// The environment of the host, through the whitelist.
    Host,
    /// The call, through the whitelist.
    Call,
    /// The operator's own `env` of the backend.
    Operator,
}

/// The environment of one command. Only [`EnvironmentRules::build`] makes one, so whatever holds
/// an `Environment` holds one that keeps the rules. `Debug` shows names and no values.
#[derive(Clone)]
pub struct Environment {
    variables: BTreeMap<String, (Source, OsString)>,
    refused: Vec<String>,
}

impl Environment {
    /// The variables, sorted by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &OsStr)> {
        self.variables
            .iter()
            .map(|(name, (_, value))| (name.as_str(), value.as_os_str()))
    }

    /// The value of a variable.
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(name).map(|(_, value)| value.as_os_str())
    }

    /// The names of the variables, sorted, and where each value comes from.
    pub fn sources(&self) -> impl ExactSizeIterator<Item = (&str, Source)> {
        self.variables
            .iter()
            .map(|(name, (source, _))| (name.as_str(), *source))
    }

    /// The names of the variables that the call asked for and does not get, sorted.
    pub fn refused(&self) -> &[String] {
        &self.refused
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("refused", &self.refused)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn call(variables: &[(&str, &str)]) -> HashMap<String, String> {
        variables
            .iter()
            .map(|(name, value)| ((*name).into(), (*value).into()))
            .collect()
    }

    const NO_LITERAL: [(String, String); 0] = [];

    #[test]
    fn later_sources_win_and_losers_are_listed() {
        let rules = EnvironmentRules::new(["A", "B", "C"], [("C", "literal")]).unwrap();
        let environment = rules
            .build_from(
                |name| Some(format!("host {name}").into()),
                &call(&[("B", "call"), ("C", "call"), ("D", "call")]),
            )
            .unwrap();
        let all: Vec<_> = environment
            .iter()
            .map(|(name, value)| (name, value.to_str().unwrap()))
            .collect();
        assert_eq!(all, [("A", "host A"), ("B", "call"), ("C", "literal")]);
        assert_eq!(environment.refused(), ["C", "D"]);
    }

    #[test]
    fn host_paths_stay_on_the_host() {
        let rules = EnvironmentRules::new(["PATH", "LANG"], NO_LITERAL)
            .unwrap()
            .without_host_paths();
        let environment = rules
            .build_from(|_| Some("x".into()), &HashMap::new())
            .unwrap();
        assert_eq!(environment.get("PATH"), None);
        assert!(environment.get("LANG").is_some());
    }

    #[test]
    fn a_whitelist_holds_no_secret_and_no_loader_variable() {
        for (name, reason) in [
            ("OPENAI_API_KEY", "has the name of a secret"),
            ("LD_PRELOAD", "makes a loader or an interpreter run code"),
            (EXECUTION_ID_VARIABLE, "is set by the runtime itself"),
            ("", "empty name"),
            ("A=B", "is no name"),
        ] {
            let error = EnvironmentRules::new([name], NO_LITERAL).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidConfig);
            assert!(error.to_string().contains(reason), "{error}");
        }
    }

    #[test]
    fn values_are_in_no_message() {
        let rules = EnvironmentRules::new(["A"], [("L", "swordfish")]).unwrap();
        let environment = rules.build(&call(&[("A", "swordfish")])).unwrap();
        let error = rules.build(&call(&[("A", "sword\0fish")])).unwrap_err();
        for text in [
            format!("{rules:?}"),
            format!("{environment:?}"),
            format!("{error:?} {error}"),
        ] {
            assert!(!text.contains("sword"), "{text}");
        }
    }

    proptest! {
        /// Whatever the host holds and the call asks: every variable has a source that the rule
        /// allows, and whatever was asked for and not given is listed.
        #[test]
        fn the_result_is_a_subset_of_the_rule(
            host in prop::collection::hash_map("[A-C_]{1,3}(KEY|TOKEN)?", "[a-z]{0,3}", 0..20),
            asked in prop::collection::hash_map("[A-C_]{1,3}(KEY|TOKEN)?", "[a-z]{0,3}", 0..20),
            literal in prop::collection::btree_map("[A-C_]{1,3}", "[a-z]{0,3}", 0..5),
            whitelist in prop::collection::btree_set("[A-C_]{1,3}(KEY|TOKEN)?", 0..10),
        ) {
            let secret = whitelist.iter().any(|name| is_secret_shaped(name));
            let Ok(rules) = EnvironmentRules::new(whitelist.clone(), literal.clone()) else {
                prop_assert!(secret);
                return Ok(());
            };
            prop_assert!(!secret);
            let environment = rules
                .build_from(|name| host.get(name).map(Into::into), &asked)
                .unwrap();
            for (name, value) in environment.iter() {
                let value = value.to_str().unwrap();
                let from_literal = literal.get(name).is_some_and(|literal| literal == value);
                let listed = whitelist.contains(name) && !literal.contains_key(name);
                let from_call = listed && asked.get(name).is_some_and(|asked| asked == value);
                let from_host = listed
                    && !asked.contains_key(name)
                    && host.get(name).is_some_and(|host| host == value);
                prop_assert!(from_literal || from_call || from_host, "{name}");
            }
            for (name, value) in &asked {
                let got = environment.get(name).is_some_and(|got| got == value.as_str());
                prop_assert_ne!(got, environment.refused().contains(name), "{}", name);
            }
        }
    }
}
