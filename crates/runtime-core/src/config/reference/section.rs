//! The schema, read as a person reads a file: tables, and the keys in each.

use serde_json::Value;

/// A table of the file.
pub(super) struct Section {
    /// Its dotted name, such as `runtime.docker`.
    pub(super) name: String,
    /// What it is for.
    pub(super) doc: String,
    /// Whether it stands for any number of tables, its last name being a placeholder.
    pub(super) is_template: bool,
    /// Its keys, without the tables below it.
    pub(super) keys: Vec<Key>,
}

/// A key of a table.
pub(super) struct Key {
    pub(super) name: String,
    /// What its value may be, in words.
    pub(super) type_name: String,
    /// What it means, without the paragraph that repeats the default.
    pub(super) doc: String,
    /// The words its value may be, each with what it means.
    pub(super) words: Vec<(String, String)>,
    /// What holds where it is left out, if that can be written.
    pub(super) default: Option<Value>,
    /// A value to start from.
    pub(super) example: Option<Value>,
    /// Whether its value is a table with names that are not ours.
    pub(super) is_table: bool,
}

/// What the documentation calls a table that has any name.
pub(super) const PLACEHOLDER: &str = "NAME";

/// Every table that has keys, each before those below it.
pub(super) fn sections(schema: &Value) -> Vec<Section> {
    let mut found = Vec::new();
    collect(
        schema,
        schema,
        &mut Section::new(String::new(), schema),
        &mut found,
    );
    found
}

impl Section {
    fn new(name: String, property: &Value) -> Self {
        Self {
            name,
            doc: description(property),
            is_template: false,
            keys: Vec::new(),
        }
    }

    /// The section of the table `name` in this one.
    fn below(&self, name: &str, property: &Value) -> Self {
        let dotted = match self.name.as_str() {
            "" => name.to_owned(),
            holder => format!("{holder}.{name}"),
        };
        Self {
            is_template: self.is_template,
            ..Self::new(dotted, property)
        }
    }
}

/// Fills `section` from the object `table`, then adds it and all below it to `found`.
fn collect(root: &Value, table: &Value, section: &mut Section, found: &mut Vec<Section>) {
    let mut below = Vec::new();
    for (name, property) in table["properties"].as_object().into_iter().flatten() {
        let value = resolve(root, property);
        let entries = resolve(root, &value["additionalProperties"]);
        if value["properties"].is_object() {
            below.push((section.below(name, property), value));
        } else if entries["properties"].is_object() {
            let mut template = section.below(name, property).below(PLACEHOLDER, property);
            template.is_template = true;
            below.push((template, entries));
        } else {
            section.keys.push(key(root, name, property));
        }
    }
    if !section.keys.is_empty() {
        found.push(Section {
            keys: std::mem::take(&mut section.keys),
            name: section.name.clone(),
            doc: section.doc.clone(),
            is_template: section.is_template,
        });
    }
    for (mut section, table) in below {
        collect(root, table, &mut section, found);
    }
}

fn key(root: &Value, name: &str, property: &Value) -> Key {
    let value = resolve(root, property);
    let default = property.get("default").filter(|value| !value.is_null());
    Key {
        name: name.to_owned(),
        type_name: type_name(root, value),
        doc: without_repeated_default(&description(property), default),
        words: words(value),
        default: default.cloned(),
        example: property["examples"].get(0).cloned(),
        is_table: value["type"] == "object",
    }
}

/// The schema a property points to, through a reference and through "or null".
pub(super) fn resolve<'a>(root: &'a Value, property: &'a Value) -> &'a Value {
    let target = property["anyOf"]
        .as_array()
        .and_then(|choices| choices.iter().find(|choice| choice["type"] != "null"))
        .unwrap_or(property);
    target["$ref"]
        .as_str()
        .and_then(|reference| root.pointer(reference.trim_start_matches('#')))
        .unwrap_or(target)
}

fn description(property: &Value) -> String {
    property["description"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The words an enumeration allows.
fn words(value: &Value) -> Vec<(String, String)> {
    value["oneOf"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|word| Some((word["const"].as_str()?.to_owned(), description(word))))
        .collect()
}

/// What a value may be, in words.
fn type_name(root: &Value, value: &Value) -> String {
    if !words(value).is_empty() {
        return "word".to_owned();
    }
    let named = match &value["type"] {
        Value::String(name) => Some(name.as_str()),
        Value::Array(names) => names
            .iter()
            .filter_map(Value::as_str)
            .find(|name| *name != "null"),
        _ => None,
    };
    match (named, value["format"].as_str()) {
        (_, Some(format @ ("path" | "size"))) => format.to_owned(),
        (_, Some("processors")) => "number".to_owned(),
        (Some("array"), _) => {
            format!(
                "array of {}s",
                type_name(root, resolve(root, &value["items"]))
            )
        }
        (Some("object"), _) => "table of strings".to_owned(),
        (Some(name), _) => name.to_owned(),
        (None, _) => "any".to_owned(),
    }
}

/// The documentation without the paragraph that only says what `default` says.
fn without_repeated_default(doc: &str, default: Option<&Value>) -> String {
    let repeated = match default {
        Some(default) => format!("\n\nDefault: `{}`.", toml(default)),
        None => "\n\nDefault: none.".to_owned(),
    };
    doc.strip_suffix(&repeated).unwrap_or(doc).to_owned()
}

/// A JSON value as TOML writes it after `key = `.
pub(super) fn toml(value: &Value) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(toml).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(entries) => {
            let entries: Vec<String> = entries
                .iter()
                .map(|(name, value)| format!("{name} = {}", toml(value)))
                .collect();
            format!("{{{}}}", entries.join(", "))
        }
        Value::String(text) => toml::Value::String(text.clone()).to_string(),
        other => other.to_string(),
    }
}
