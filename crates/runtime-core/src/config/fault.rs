//! What is wrong with a configuration, and at which key.
//!
//! Reading and checking both end in a [`Fault`]. It knows the key but no file and no line, so that
//! checking a configuration made in code needs no document; the loader adds where.

use std::fmt::{self, Display};

use serde::de::{self, Expected, Unexpected};

/// One step from a table or an array to what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// A key of a table.
    Key(String),
    /// A position in an array.
    Index(usize),
}

/// A wrong key or value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// From the root of the document to the place, outermost first.
    path: Vec<Step>,
    problem: Problem,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Problem {
    /// The key at `path` is not known; the text says which is.
    UnknownKey(String),
    /// The value at `path` is wrong; the text says why.
    Value(String),
}

impl Fault {
    /// The value here is wrong: `problem` says what was found and what is allowed.
    pub(super) fn new(problem: impl Into<String>) -> Self {
        Self {
            path: Vec::new(),
            problem: Problem::Value(problem.into()),
        }
    }

    /// The value of `key` is wrong.
    pub(super) fn at(key: &str, problem: impl Into<String>) -> Self {
        Self::new(problem).under(key)
    }

    /// A key that cannot stand here; `known` are the ones that can.
    pub(super) fn unknown_key(key: &str, known: &[&str]) -> Self {
        let advice = match nearest(key, known) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("known here: {}", list(known, '`')),
        };
        Self {
            path: vec![Step::Key(key.to_owned())],
            problem: Problem::UnknownKey(advice),
        }
    }

    /// The same fault seen from the table that holds it as `key`.
    pub(super) fn under(mut self, key: &str) -> Self {
        self.path.insert(0, Step::Key(key.to_owned()));
        self
    }

    /// The same fault seen from the array that holds it at `index`.
    pub(super) fn under_index(mut self, index: usize) -> Self {
        self.path.insert(0, Step::Index(index));
        self
    }

    /// The way from the root to the place.
    pub(super) fn path(&self) -> &[Step] {
        &self.path
    }
}

impl Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = DottedKey(&self.path);
        match &self.problem {
            Problem::UnknownKey(advice) => write!(f, "unknown key `{path}`; {advice}"),
            Problem::Value(problem) => write!(f, "`{path}`: {problem}"),
        }
    }
}

impl std::error::Error for Fault {}

/// The texts serde would make quote what was found. Here a value of the wrong type is named by its
/// type alone, because it may be a secret in the wrong place.
impl de::Error for Fault {
    fn custom<T: Display>(problem: T) -> Self {
        Self::new(problem.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("found {}, expected {expected}", kind(&found)))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("found {}, expected {expected}", kind(&found)))
    }

    fn unknown_variant(found: &str, expected: &'static [&'static str]) -> Self {
        let known = list(expected, '"');
        Self::new(match nearest(found, expected) {
            Some(near) => format!("found {found:?}, expected {known}; did you mean {near:?}?"),
            None => format!("found {found:?}, expected {known}"),
        })
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown_key(field, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing"))
    }
}

/// The type of a value, with its article.
fn kind(found: &Unexpected<'_>) -> &'static str {
    match found {
        Unexpected::Bool(_) => "a boolean",
        Unexpected::Unsigned(_) | Unexpected::Signed(_) => "an integer",
        Unexpected::Float(_) => "a float",
        Unexpected::Str(_) | Unexpected::Char(_) => "a string",
        Unexpected::Seq => "an array",
        Unexpected::Map => "a table",
        _ => "another type",
    }
}

/// `a`, `b` or `c`, each between two `quote`s.
pub(super) fn list(words: &[&str], quote: char) -> String {
    let mut text = String::new();
    for (index, word) in words.iter().enumerate() {
        text.push_str(match index {
            0 => "",
            last if last + 1 == words.len() => " or ",
            _ => ", ",
        });
        text.push(quote);
        text.push_str(word);
        text.push(quote);
    }
    text
}

/// The one of `known` that `word` was probably meant to be: at most two slips away, and at most one
/// in every three letters.
pub(super) fn nearest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(word, known), *known))
        .filter(|(slips, known)| *slips <= (known.chars().count() / 3).clamp(1, 2))
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, known)| known)
}

/// A path in the notation of TOML: `tools.custom."a b".args[1]`.
struct DottedKey<'a>(&'a [Step]);

impl Display for DottedKey<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (depth, step) in self.0.iter().enumerate() {
            match step {
                Step::Index(index) => write!(f, "[{index}]")?,
                Step::Key(key) => {
                    if depth > 0 {
                        f.write_str(".")?;
                    }
                    if is_bare(key) {
                        f.write_str(key)?;
                    } else {
                        write!(f, "{key:?}")?;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Whether TOML lets `key` stand without quotes.
pub(super) fn is_bare(key: &str) -> bool {
    !key.is_empty()
        && key
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_names_the_whole_key() {
        let fault = Fault::new("is wrong")
            .under_index(1)
            .under("args")
            .under("a b")
            .under("tools");
        assert_eq!(fault.to_string(), "`tools.\"a b\".args[1]`: is wrong");
    }

    #[test]
    fn the_nearest_key_is_near() {
        let known = ["memory_limit", "cpu_limit", "env"];
        assert_eq!(nearest("memry_limit", &known), Some("memory_limit"));
        assert_eq!(nearest("mem_limit", &known), None);
        assert_eq!(nearest("evn", &known), Some("env"));
        assert_eq!(nearest("colour", &known), None);
        assert_eq!(
            Fault::unknown_key("colour", &known).to_string(),
            "unknown key `colour`; known here: `memory_limit`, `cpu_limit` or `env`"
        );
    }
}
