use serde_json::Value;

use super::super::Config;
use super::schema::schema;
use super::section::{PLACEHOLDER, Section, resolve, sections, toml};
use super::{default_file, json_schema, reference_markdown};

fn load(text: &str) -> Config {
    Config::from_toml_str(text, "default.toml").unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn all() -> Vec<Section> {
    sections(&schema())
}

/// The dotted names of everything in a serialised value, tables included.
fn names(value: &Value, holder: &str, found: &mut Vec<String>) {
    for (name, value) in value.as_object().into_iter().flatten() {
        let dotted = format!("{holder}{name}");
        names(value, &format!("{dotted}."), found);
        found.push(dotted);
    }
}

#[test]
fn every_key_of_the_types_is_in_the_sections() {
    let mut expected = Vec::new();
    names(
        &serde_json::to_value(Config::default()).unwrap(),
        "",
        &mut expected,
    );
    let known: Vec<String> = all()
        .iter()
        .flat_map(|section| {
            section
                .keys
                .iter()
                .map(|key| format!("{}.{}", section.name, key.name))
        })
        .collect();
    for name in expected {
        let below = format!("{name}.");
        assert!(
            known.contains(&name) || known.iter().any(|known| known.starts_with(&below)),
            "{name}"
        );
    }
    assert!(known.contains(&format!("tools.custom.{PLACEHOLDER}.type")));
    assert!(known.contains(&format!("tools.custom.{PLACEHOLDER}.capabilities.network")));
}

#[test]
fn every_key_says_what_it_means_and_its_true_default() {
    for section in all() {
        assert!(!section.doc.is_empty(), "{}", section.name);
        for key in &section.keys {
            let name = format!("{}.{}", section.name, key.name);
            assert!(!key.doc.is_empty(), "{name} has no documentation");
            // The paragraph is gone where it says what the type's `Default` says.
            match &key.default {
                Some(default) if default.as_array().is_some_and(Vec::is_empty) => {}
                Some(default) => assert!(
                    !key.doc.contains("Default: "),
                    "{name}: its default is {}; it says:\n{}",
                    toml(default),
                    key.doc
                ),
                None => {}
            }
            assert!(
                key.default.is_some() || key.example.is_some(),
                "{name} has no value to show"
            );
            assert!(
                !key.is_table || key.example.is_some(),
                "{name} has no example"
            );
        }
    }
}

/// A key with neither value nor "none" for its default has lost that paragraph.
#[test]
fn every_key_states_a_default() {
    let schema = schema();
    for (name, table) in schema["$defs"].as_object().unwrap() {
        for (key, property) in table["properties"].as_object().into_iter().flatten() {
            let doc = property["description"].as_str().unwrap_or_default();
            let value = resolve(&schema, property);
            let is_section = value["properties"].is_object()
                || value["additionalProperties"]["$ref"].is_string();
            let states = if property["default"].is_null() {
                "Default: none"
            } else {
                "Default: `"
            };
            assert!(
                is_section || doc.contains(&format!("\n\n{states}")),
                "{name}.{key}"
            );
        }
    }
}

#[test]
fn the_default_file_is_the_default() {
    assert_eq!(load(&default_file()), Config::default());
}

/// Whether the line is a setting that is commented out.
fn is_setting(line: &str) -> bool {
    line.starts_with('#') && !line.starts_with("# ")
}

#[test]
fn each_setting_of_the_default_file_can_be_uncommented() {
    let file = default_file();
    let (ours, tools) = file.split_at(
        file.find(&format!("#[tools.custom.{PLACEHOLDER}]"))
            .unwrap(),
    );
    let lines: Vec<&str> = ours.lines().collect();
    let settings: Vec<usize> = (0..lines.len()).filter(|n| is_setting(lines[*n])).collect();
    assert!(settings.len() > 40, "{file}");
    for setting in &settings {
        let mut lines = lines.clone();
        lines[*setting] = &lines[*setting][1..];
        load(&lines.join("\n"));
    }
    let all: Vec<&str> = lines
        .iter()
        .map(|line| if is_setting(line) { &line[1..] } else { line })
        .collect();
    load(&all.join("\n"));

    // A key of a tool belongs to some type of tool, together with what that type requires.
    let mut header = String::new();
    for line in tools
        .lines()
        .filter(|line| is_setting(line))
        .map(|line| &line[1..])
    {
        if line.starts_with('[') {
            header = format!("{line}\n");
            continue;
        }
        let key = line.split(' ').next().unwrap();
        let whole = |kind: &str, required: &str| {
            let base = [
                ("type", format!("type = {kind:?}")),
                (required, format!("{required} = \"x\"")),
            ];
            let base: String = base
                .iter()
                .filter(|(name, _)| *name != key || header.matches('.').count() > 2)
                .map(|(_, line)| format!("{line}\n"))
                .collect();
            format!(
                "[tools.custom.{PLACEHOLDER}]\n{base}{}{line}\n",
                below(&header)
            )
        };
        let tried = [
            ("wasm", "module"),
            ("native", "command"),
            ("docker", "image"),
        ]
        .map(|(kind, required)| Config::from_toml_str(&whole(kind, required), "default.toml"));
        assert!(tried.iter().any(Result::is_ok), "{line}: {tried:?}");
    }
}

/// The header of a table below a tool; nothing for the tool itself.
fn below(header: &str) -> &str {
    if header.matches('.').count() > 2 {
        header
    } else {
        ""
    }
}

#[test]
fn the_page_has_every_section() {
    let page = reference_markdown();
    for section in all() {
        assert!(
            page.contains(&format!("## `[{}]`", section.name)),
            "{}",
            section.name
        );
        for key in section.keys {
            assert!(
                page.contains(&format!("| `{}` | ", key.name)),
                "{}",
                key.name
            );
        }
    }
    assert!(page.contains(
        "| `pids_limit` | integer | `100` | The number of processes and threads in a container; \
         at least 1. |"
    ));
    assert!(!page.contains("| any |"));
}

#[test]
fn the_schema_lets_other_sections_be() {
    let schema: Value = serde_json::from_str(&json_schema()).unwrap();
    assert_eq!(schema["additionalProperties"], true);
    assert_eq!(
        schema["$defs"]["SecurityConfig"]["additionalProperties"],
        true
    );
    assert_eq!(
        schema["$defs"]["SandboxConfig"]["additionalProperties"],
        false
    );
    assert_eq!(schema["description"], "Everything an operator can set.");
}
