//! The free-form tables of a scenario: options of the engine, and arguments of the job.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use revenant::config::Configuration;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::json;

/// `[config]`: values by option name, each checked when it is read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Options(BTreeMap<String, String>);

impl Options {
    /// Sets an option, checked as the engine does.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), revenant::config::ConfigError> {
        Configuration::default().set(key, value)?;
        self.0.insert(key.to_owned(), value.to_owned());
        Ok(())
    }

    /// What is set, by name.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(key, value)| (key.as_str(), value.as_str()))
    }

    /// The same without this option.
    #[must_use]
    pub fn without(&self, key: &str) -> Self {
        let mut options = self.clone();
        options.0.remove(key);
        options
    }

    pub fn configuration(&self) -> Configuration {
        let mut config = Configuration::default();
        for (key, value) in &self.0 {
            config.set(key, value).expect("options are checked when they are set");
        }
        config
    }
}

impl JsonSchema for Options {
    fn schema_name() -> Cow<'static, str> {
        "Options".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let scalar = json!(["string", "number", "boolean"]);
        let mut properties = serde_json::Map::new();
        for option in Configuration::OPTIONS {
            let description = format!("{} Right is {}.", option.doc.trim(), option.expected);
            let value = json!({ "type": scalar, "description": description, "default": option.default });
            properties.insert(option.key.to_owned(), value);
        }
        json_schema!({ "type": "object", "properties": properties, "additionalProperties": false })
    }
}

impl JsonSchema for Arguments {
    fn schema_name() -> Cow<'static, str> {
        "Arguments".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "object", "additionalProperties": { "type": ["string", "number", "boolean"] } })
    }
}

/// `[job.arguments]`: texts, numbers and booleans, all kept as text.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Arguments(pub BTreeMap<String, String>);

/// A text, number or boolean, as text.
struct Scalar(String);

impl<'de> Deserialize<'de> for Scalar {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct AnyScalar;

        impl<'de> Visitor<'de> for AnyScalar {
            type Value = Scalar;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text, a number or true or false")
            }

            fn visit_str<E>(self, text: &str) -> Result<Scalar, E> {
                Ok(Scalar(text.to_owned()))
            }

            fn visit_i64<E>(self, number: i64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_u64<E>(self, number: u64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_f64<E>(self, number: f64) -> Result<Scalar, E> {
                Ok(Scalar(number.to_string()))
            }

            fn visit_bool<E>(self, flag: bool) -> Result<Scalar, E> {
                Ok(Scalar(flag.to_string()))
            }

            /// What an unquoted key with dots makes.
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scalar, A::Error> {
                let within: Option<String> = map.next_key()?;
                let within = within.map_or_else(String::new, |key| format!(" '….{key}'"));
                Err(A::Error::custom(format!(
                    "expected a text, a number or true or false; if this is a key with dots{within}, put the key in quotes"
                )))
            }
        }

        deserializer.deserialize_any(AnyScalar)
    }
}

/// Checks a value while it is read, so that an error knows its line.
struct Checked<'a>(&'a str);

impl<'de> DeserializeSeed<'de> for Checked<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<String, D::Error> {
        let Scalar(value) = Scalar::deserialize(deserializer)?;
        Configuration::default().set(self.0, &value).map_err(D::Error::custom)?;
        Ok(value)
    }
}

impl<'de> Deserialize<'de> for Options {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Table;

        impl<'de> Visitor<'de> for Table {
            type Value = Options;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table of options")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Options, A::Error> {
                let mut options = BTreeMap::new();
                while let Some(key) = map.next_key::<String>()? {
                    let value = map.next_value_seed(Checked(&key))?;
                    options.insert(key, value);
                }
                Ok(Options(options))
            }
        }

        deserializer.deserialize_map(Table)
    }
}

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = BTreeMap::<String, Scalar>::deserialize(deserializer)?;
        Ok(Self(table.into_iter().map(|(name, Scalar(value))| (name, value)).collect()))
    }
}
