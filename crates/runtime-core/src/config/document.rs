//! A configuration file as it was read: where in it each key stands.

use std::mem;
use std::path::{Path, PathBuf};

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::fault::{Fault, Step, nearest};
use crate::{Error, ErrorKind, Result};

/// The tables of the shared file that are ours, by the table that holds them. Everything else in
/// these three is somebody else's.
const OURS: [(&[&str], &[&str]); 3] = [
    (&[], &["runtime", "security", "tools"]),
    (&["security"], &["sandbox", "resources"]),
    (&["tools"], &["custom"]),
];

/// A parsed file with the place of every key.
pub(super) struct Document<'a> {
    origin: PathBuf,
    text: &'a str,
    root: DeTable<'a>,
}

impl<'a> Document<'a> {
    /// Parses `text`; `origin` is what errors call it.
    pub(super) fn parse(text: &'a str, origin: &Path) -> Result<Self> {
        match DeTable::parse(text) {
            Ok(root) => Ok(Self {
                origin: origin.to_path_buf(),
                text,
                root: root.into_inner(),
            }),
            Err(error) => {
                let (line, column) = position(text, error.span().map_or(0, |span| span.start));
                Err(Error::new(
                    ErrorKind::InvalidConfig,
                    format!("{}:{line}:{column}: {}", origin.display(), error.message()),
                ))
            }
        }
    }

    /// The document without the tables that belong to others.
    pub(super) fn ours(&self) -> DeTable<'a> {
        let mut ours = self.root.clone();
        for (holder, names) in OURS {
            if let Some(table) = table_mut(&mut ours, holder) {
                *table = mem::take(table)
                    .into_iter()
                    .filter(|(key, _)| names.contains(&key.get_ref().as_ref()))
                    .collect();
            }
        }
        ours
    }

    /// Tables of others whose names are so close to ours that they may be slips of the pen, one
    /// line each.
    pub(super) fn near_misses(&self) -> Vec<String> {
        let mut found = Vec::new();
        for (holder, names) in OURS {
            let Some(table) = table(&self.root, holder) else {
                continue;
            };
            for key in table.keys() {
                let name = key.get_ref().as_ref();
                if names.contains(&name) {
                    continue;
                }
                let Some(near) = nearest(&name.to_lowercase(), names) else {
                    continue;
                };
                let section = |last: &str| [holder, &[last]].concat().join(".");
                let (line, _) = position(self.text, key.span().start);
                found.push((
                    line,
                    format!(
                        "{}:{line}: the section `{}` is ignored; did you mean `{}`?",
                        self.origin.display(),
                        section(name),
                        section(near),
                    ),
                ));
            }
        }
        found.sort();
        found.into_iter().map(|(_, warning)| warning).collect()
    }

    /// Whether the key at `path` stands in the file.
    pub(super) fn has(&self, path: &[&str]) -> bool {
        path.split_last().is_some_and(|(key, holder)| {
            table(&self.root, holder).is_some_and(|table| table.contains_key(*key))
        })
    }

    /// `fault` as an error that says file and line.
    pub(super) fn error(&self, fault: &Fault) -> Error {
        let (line, _) = position(self.text, self.offset(fault.path()));
        Error::new(
            ErrorKind::InvalidConfig,
            format!("{}:{line}: {fault}", self.origin.display()),
        )
    }

    /// Where `path` starts; where it is not in the file, the innermost table that would hold it.
    fn offset(&self, path: &[Step]) -> usize {
        let mut offset = 0;
        let mut table = Some(&self.root);
        let mut array: Option<&[Spanned<DeValue<'a>>]> = None;
        for step in path {
            let value = match step {
                Step::Key(key) => {
                    let Some((key, value)) = table.and_then(|table| {
                        table
                            .iter()
                            .find(|(found, _)| found.get_ref().as_ref() == key)
                    }) else {
                        break;
                    };
                    offset = key.span().start;
                    value
                }
                Step::Index(index) => {
                    let Some(value) = array.and_then(|array| array.get(*index)) else {
                        break;
                    };
                    offset = value.span().start;
                    value
                }
            };
            (table, array) = match value.get_ref() {
                DeValue::Table(table) => (Some(table), None),
                DeValue::Array(array) => (None, Some(array.as_ref())),
                _ => (None, None),
            };
        }
        offset
    }
}

/// The table at `path`, where there is one.
fn table<'t, 'a>(root: &'t DeTable<'a>, path: &[&str]) -> Option<&'t DeTable<'a>> {
    path.iter()
        .try_fold(root, |table, key| match table.get(*key)?.get_ref() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
}

/// [`table`], to be changed.
fn table_mut<'t, 'a>(root: &'t mut DeTable<'a>, path: &[&str]) -> Option<&'t mut DeTable<'a>> {
    path.iter()
        .try_fold(root, |table, key| match table.get_mut(*key)?.get_mut() {
            DeValue::Table(table) => Some(table),
            _ => None,
        })
}

/// Line and column of the byte at `offset`, both from 1.
fn position(text: &str, offset: usize) -> (usize, usize) {
    let before = text.get(..offset).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
    (line, before[line_start..].chars().count() + 1)
}
