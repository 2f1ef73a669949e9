//! The words of a stage behind its operation: inputs, exchanges, options.

use crate::config::nearest;

/// The beginning of a text that may be long.
pub(super) fn shown(text: &str) -> String {
    let end = text.char_indices().nth(40).map(|(end, _)| end);
    end.map_or_else(|| text.to_owned(), |end| format!("{}…", &text[..end]))
}

/// `, did you mean 'map'?`, if that is likely.
pub(super) fn meant<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> String {
    nearest(word, candidates).map_or_else(String::new, |near| format!(", did you mean '{near}'?"))
}

/// The parts of a stage behind its operation.
pub(super) struct Clauses<'a> {
    pub(super) inputs: Vec<&'a str>,
    pub(super) via: Option<String>,
    pub(super) options: &'a [&'a str],
}

impl<'a> Clauses<'a> {
    pub(super) fn of(words: &'a [&'a str]) -> Result<Self, String> {
        let options_at = words.iter().position(|word| word.contains('=')).unwrap_or(words.len());
        let (words, options) = words.split_at(options_at);
        let Some(via_at) = words.iter().position(|word| *word == "via") else {
            return Ok(Self { inputs: words.to_vec(), via: None, options });
        };
        let (inputs, via) = words.split_at(via_at);
        let via = via[1..].join(" ");
        if via.is_empty() {
            return Err("'via' says no exchange; right is for example 'via hash' or 'via broadcast,forward'"
                .to_owned());
        }
        Ok(Self { inputs: inputs.to_vec(), via: Some(via), options })
    }
}

/// `name=value` words: taken one by one, and refused when nobody took them.
pub(super) struct Options<'a> {
    given: Vec<(&'a str, &'a str)>,
    known: Vec<&'static str>,
}

impl<'a> Options<'a> {
    pub(super) fn of(words: &[&'a str]) -> Result<Self, String> {
        let mut given: Vec<(&str, &str)> = Vec::new();
        for &word in words {
            let option = word.split_once('=').ok_or_else(|| {
                format!("'{}' stands behind an option; options come last, as <name>=<value>", shown(word))
            })?;
            if given.iter().any(|(name, _)| *name == option.0) {
                return Err(format!("option '{}' is given twice", shown(option.0)));
            }
            given.push(option);
        }
        Ok(Self { given, known: Vec::new() })
    }

    fn take(&mut self, name: &'static str) -> Option<&'a str> {
        self.known.push(name);
        let index = self.given.iter().position(|(given, _)| *given == name)?;
        Some(self.given.swap_remove(index).1)
    }

    pub(super) fn number(&mut self, name: &'static str, min: u32, max: u32) -> Result<Option<u32>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        match text.parse() {
            Ok(number) if (min..=max).contains(&number) => Ok(Some(number)),
            _ => Err(format!("{name}={} is not a whole number from {min} to {max}", shown(text))),
        }
    }

    pub(super) fn text(&mut self, name: &'static str) -> Option<String> {
        self.take(name).map(ToOwned::to_owned)
    }

    pub(super) fn one_of<T: Copy>(
        &mut self,
        name: &'static str,
        values: &[(&str, T)],
    ) -> Result<Option<T>, String> {
        let Some(text) = self.take(name) else { return Ok(None) };
        let value = values.iter().find(|(value, _)| *value == text).map(|(_, value)| *value);
        value.map(Some).ok_or_else(|| {
            let right: Vec<&str> = values.iter().map(|(value, _)| *value).collect();
            format!("{name}={} is not {}", shown(text), right.join(" or "))
        })
    }

    pub(super) fn refuse_rest(&self) -> Result<(), String> {
        let Some((name, _)) = self.given.first() else { return Ok(()) };
        let (meant, known) = (meant(name, self.known.iter().copied()), self.known.join(", "));
        Err(format!("unknown option '{}'{meant}; it takes: {known}", shown(name)))
    }
}
