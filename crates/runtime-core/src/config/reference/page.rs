//! The page of the manual.

use std::fmt::Write;

use super::schema::schema;
use super::section::{Key, Section, sections, toml};

const HEAD: &str = "\
<!-- Generated from the types in crates/runtime-core/src/config. Change their documentation. -->

# Configuration

One TOML file, which may be shared with the other settings of an agent: sections that are not named
here are ignored. In the sections named here an unknown key is an error that says file, line and the
nearest known key. A key that is left out has the default given here.

Values: a *size* is a number of bytes or a text with a unit, a power of 1024 (`\"64k\"`, `\"256m\"`,
`\"1.5g\"`); a *path* may start with `~/`, the home directory of the user who runs the host.
";

/// The reference page `docs/configuration.md`: a table for each section with key, type, default
/// and meaning.
pub fn reference_markdown() -> String {
    let mut page = HEAD.to_owned();
    for section in sections(&schema()) {
        write_section(&mut page, &section);
    }
    page
}

fn write_section(page: &mut String, section: &Section) {
    // Writing to a `String` cannot fail.
    let _ = write!(
        page,
        "\n## `[{}]`\n\n{}\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n",
        section.name, section.doc
    );
    for key in &section.keys {
        let default = match &key.default {
            Some(value) => format!("`{}`", toml(value)),
            None => "none".to_owned(),
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {} | {} |",
            key.name,
            key.type_name,
            cell(&default),
            cell(&meaning(key)),
        );
    }
}

fn meaning(key: &Key) -> String {
    let mut text = key.doc.clone();
    for (word, doc) in &key.words {
        let _ = write!(text, " `\"{word}\"`: {doc}");
    }
    if let Some(example) = &key.example {
        let _ = write!(text, " For example `{}`.", toml(example));
    }
    text
}

/// A text that fits in a cell of a table.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|")
}
