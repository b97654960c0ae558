//! The commented file of defaults.

use std::fmt::Write;

use super::schema::schema;
use super::section::{Key, Section, sections, toml};

const HEAD: &str = "\
# Every setting of prx-runtime. A line that starts with `#` and no blank is a setting with its
# default or, where it has none, with an example: remove the `#` to set it.
";

/// A configuration file with every key, its meaning as a comment, and its default: what
/// `config init` writes.
///
/// It is read as [`Config::default`](super::super::Config). Each key is commented out with a `#`
/// that can be removed on its own; for a tool, that of the table's header comes first.
pub fn default_file() -> String {
    let mut file = HEAD.to_owned();
    for section in sections(&schema()) {
        write_section(&mut file, &section);
    }
    file
}

fn write_section(file: &mut String, section: &Section) {
    file.push('\n');
    write_header(file, section, &section.name, &section.doc);
    let (tables, keys): (Vec<&Key>, Vec<&Key>) = section.keys.iter().partition(|key| key.is_table);
    for key in keys {
        file.push('\n');
        write_doc(file, key);
        if let Some(value) = key.default.as_ref().or(key.example.as_ref()) {
            push(file, format_args!("#{} = {}", key.name, toml(value)));
        }
    }
    for key in tables {
        file.push('\n');
        let name = format!("{}.{}", section.name, key.name);
        write_header(file, section, &name, &key.doc);
        for (name, value) in key
            .example
            .as_ref()
            .and_then(|e| e.as_object())
            .into_iter()
            .flatten()
        {
            push(file, format_args!("#{name} = {}", toml(value)));
        }
    }
}

fn write_header(file: &mut String, section: &Section, name: &str, doc: &str) {
    comment(file, doc);
    let sign = if section.is_template { "#" } else { "" };
    push(file, format_args!("{sign}[{name}]"));
}

fn write_doc(file: &mut String, key: &Key) {
    comment(file, &key.doc);
    for (word, doc) in &key.words {
        comment(file, &format!("  {word}: {doc}"));
    }
    if let (Some(_), Some(example)) = (&key.default, &key.example) {
        comment(file, &format!("For example {}.", toml(example)));
    }
}

/// The text as comment lines; paragraphs follow each other without a gap.
fn comment(file: &mut String, text: &str) {
    for line in text.lines().filter(|line| !line.is_empty()) {
        push(file, format_args!("# {line}"));
    }
}

fn push(file: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a `String` cannot fail.
    let _ = writeln!(file, "{line}");
}
