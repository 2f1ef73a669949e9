//! The grammar of scenario files, for editors as a JSON schema and for people as a page. Both come from
//! the types and their comments, so that every key is documented once.

use std::fmt::Write as _;

use serde_json::Value;

use super::Scenario;
use super::forms::{Form, TRIGGERS, actions};

/// The JSON schema of a scenario file.
pub fn schema() -> Value {
    let mut schema = schemars::schema_for!(Scenario).to_value();
    let fill = |forms: String, of: &str, schema: &mut Value| {
        if let Some(key) = schema.pointer_mut(&format!("/$defs/Fault/properties/{of}/description")) {
            let said = key.as_str().unwrap_or_default().to_owned();
            *key = Value::String(format!("{said}\n\n{forms}"));
        }
    };
    fill(list(TRIGGERS.iter()), "at", &mut schema);
    fill(list(actions()), "do", &mut schema);
    schema
}

fn list<'a>(forms: impl Iterator<Item = &'a Form>) -> String {
    forms.map(|form| format!("- `{}`: {}", form.text, form.what)).collect::<Vec<_>>().join("\n")
}

/// The page `docs/scenarios.md`.
pub fn page() -> String {
    let mut page = PREFACE.to_owned();
    let schema = schemars::schema_for!(Scenario).to_value();
    let _ = writeln!(page, "\n## Keys\n");
    table(&mut page, &schema, &schema, &|key| !is_table(&schema, key));
    for (name, key) in properties(&schema).filter(|(_, key)| is_table(&schema, key)) {
        let (heading, object) = resolve_table(&schema, name, key);
        let _ = writeln!(page, "\n### `{heading}`\n\n{}\n", description(key));
        table(&mut page, &schema, object, &|_| true);
    }
    let _ = writeln!(page, "\n## When: `at`\n\n| `at` | when |\n|---|---|");
    for form in TRIGGERS {
        let _ = writeln!(page, "| `{}` | {} |", form.text, cell(form.what));
    }
    let _ = writeln!(page, "\n## What: `do`\n\n| `do` | what happens | what ends it |\n|---|---|---|");
    for form in actions() {
        let heal = match form.heal {
            Some(heal) => format!("`{heal}`"),
            None if form.is_heal => "(it is a heal)".to_owned(),
            None => String::new(),
        };
        let _ = writeln!(page, "| `{}` | {} | {heal} |", form.text, cell(form.what));
    }
    page
}

const PREFACE: &str = "\
# Scenario files

A scenario is one run, written down completely: a TOML file that says what runs, on what, and what goes
wrong. The run only executes it. What is not said has its default. A mistake is answered with file, line
and what would be right; `cargo sim schema` prints a JSON schema for editors. This page is generated
from the same source: `cargo sim schema --page > docs/scenarios.md`.

Every fault that takes effect is told in the trace. A fault that does not makes the run *vacuous*: it
shows nothing about the fault, and a scenario that is written by hand fails by it.
";

fn properties(object: &Value) -> impl Iterator<Item = (&str, &Value)> {
    object["properties"].as_object().into_iter().flatten().map(|(name, key)| (name.as_str(), key))
}

/// Follows a reference, also to what may be left out.
fn resolve<'a>(schema: &'a Value, key: &'a Value) -> &'a Value {
    let reference = key["$ref"].as_str().or_else(|| key["anyOf"][0]["$ref"].as_str());
    let target = reference.and_then(|target| schema.pointer(target.strip_prefix('#')?));
    target.unwrap_or(key)
}

fn resolve_table<'a>(schema: &'a Value, name: &str, key: &'a Value) -> (String, &'a Value) {
    if key["items"].is_object() {
        return (format!("[[{name}]]"), resolve(schema, &key["items"]));
    }
    let object = resolve(schema, key);
    if object["properties"].is_object() {
        return (format!("[{name}]"), object);
    }
    (format!("[{name}.<process>]"), resolve(schema, &key["additionalProperties"]))
}

fn is_table(schema: &Value, key: &Value) -> bool {
    let (_, object) = resolve_table(schema, "", key);
    object["properties"].is_object()
}

fn description(key: &Value) -> &str {
    key["description"].as_str().unwrap_or_default()
}

fn table(page: &mut String, schema: &Value, object: &Value, shown: &dyn Fn(&Value) -> bool) {
    let _ = writeln!(page, "| key | value | default | what it says |\n|---|---|---|---|");
    let required: Vec<&str> =
        object["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, key) in properties(object).filter(|(_, key)| shown(key)) {
        let default = match &key["default"] {
            Value::Null if required.contains(&name) => "must be said".to_owned(),
            Value::Null => String::new(),
            Value::String(text) => format!("`{text}`"),
            Value::Object(_) => String::new(),
            other => format!("`{other}`"),
        };
        let _ = writeln!(
            page,
            "| `{name}` | {} | {default} | {} |",
            value(resolve(schema, key), key),
            cell(description(key))
        );
    }
}

/// What values a key takes.
fn value(target: &Value, key: &Value) -> String {
    let variants = target["oneOf"].as_array().or_else(|| target["anyOf"].as_array());
    if let Some(variants) = variants {
        let texts = variants.iter().filter_map(|variant| {
            let text = variant["const"].as_str()?;
            let what = description(variant).trim_end_matches('.');
            Some(if what.is_empty() { format!("`{text}`") } else { format!("`{text}` ({})", cell(what)) })
        });
        let texts: Vec<String> = texts.collect();
        if !texts.is_empty() {
            return texts.join(", ");
        }
    }
    if let Some(title) = target["title"].as_str().or_else(|| key["title"].as_str()) {
        let example =
            target["examples"][0].as_str().map_or_else(String::new, |text| format!(", as `{text}`"));
        return format!("{title}{example}");
    }
    match &target["type"] {
        Value::String(kind) if kind == "integer" => "a whole number".to_owned(),
        Value::String(kind) if kind == "object" => "a table".to_owned(),
        Value::String(kind) if kind == "string" => "a text".to_owned(),
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds
            .iter()
            .filter_map(Value::as_str)
            .filter(|kind| *kind != "null")
            .collect::<Vec<_>>()
            .join(" or "),
        _ => String::new(),
    }
}

fn cell(text: &str) -> String {
    text.replace('\n', " ").replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::forms::{filled, read_back};
    use crate::scenario::{Action, Trigger};

    /// Everything that has a name in the schema, with its path.
    fn undocumented(path: &str, value: &Value, found: &mut Vec<String>) {
        for (name, key) in properties(value) {
            if description(key).is_empty() {
                found.push(format!("{path}.{name}"));
            }
        }
        for (name, part) in value["$defs"].as_object().into_iter().flatten() {
            undocumented(name, part, found);
            for variant in part["oneOf"].as_array().into_iter().flatten() {
                if description(variant).is_empty() {
                    found.push(format!("{name}: {variant}"));
                }
            }
        }
    }

    #[test]
    fn every_key_is_documented() {
        let mut found = Vec::new();
        undocumented("", &schema(), &mut found);
        assert_eq!(found, [""; 0]);
    }

    #[test]
    fn every_form_reads_back_and_every_heal_is_a_form() {
        for form in TRIGGERS {
            assert!(filled(form.text).parse::<Trigger>().is_ok(), "{}", form.text);
        }
        for form in actions() {
            read_back::<Action>(&[&filled(form.text)]);
            let action: Action = filled(form.text).parse().unwrap();
            assert_eq!(action.is_heal(), form.is_heal, "{}", form.text);
            let heal = form.heal.filter(|heal| *heal != "restart-after");
            assert!(
                heal.is_none_or(|heal| actions().any(|other| other.text == heal && other.is_heal)),
                "{}",
                form.text
            );
        }
    }

    #[test]
    fn the_page_is_the_one_in_the_docs() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/scenarios.md");
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(found == page(), "docs/scenarios.md is old: cargo sim schema --page > docs/scenarios.md");
    }
}
