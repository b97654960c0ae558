//! The JSON schema of the file.

use schemars::schema_for;
use serde_json::{Value, json};

use super::super::Config;

/// The JSON schema (draft 2020-12) of a configuration file, for editors and checkers, as text that
/// ends in a newline.
///
/// Like the loader it knows the keys of our sections only and lets other sections of a shared file
/// be.
pub fn json_schema() -> String {
    format!("{:#}\n", schema())
}

/// [`json_schema`] as a value.
pub(super) fn schema() -> Value {
    let mut schema = schema_for!(Config).to_value();
    // The documentation of the type holds an example in Rust, which is nothing for an editor.
    if let Some(Value::String(text)) = schema.get_mut("description") {
        *text = first_paragraph(text).to_owned();
    }
    // These three tables are shared with others; what else they hold is not ours to judge.
    for shared in ["", "/$defs/SecurityConfig", "/$defs/ToolsConfig"] {
        if let Some(table) = schema.pointer_mut(shared) {
            table["additionalProperties"] = json!(true);
        }
    }
    schema
}

/// The text up to the first empty line.
fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or(text)
}
