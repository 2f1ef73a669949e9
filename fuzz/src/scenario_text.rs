//! Scenario text → parser and check: whatever the text says, it is a scenario or an error that names a
//! line of it. What is read is written back as the same scenario, and what was right stays right.

use std::sync::Arc;

use revenant_sim::scenario::{Scenario, ScenarioError};

/// Whether the text is a scenario, and right.
pub fn check(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let scenario = match Scenario::parse("scenario.toml", text) {
        Ok(scenario) => scenario,
        Err(error) => {
            names_a_line(&error, text);
            return false;
        }
    };
    let written = scenario.to_toml();
    match Scenario::parse("written.toml", &written) {
        Ok(again) => assert!(again == scenario, "it reads back as another:\n{written}"),
        Err(error) => panic!("{error}\n{written}"),
    }
    // A program of its own: a program keeps every graph that it has built.
    let program = Arc::new(revenant::jobs::registry());
    let checked = scenario.check_text("scenario.toml", text, &program);
    if let Err(error) = &checked {
        names_a_line(error, text);
        assert_eq!(Some(&error.message), scenario.check(&program).err().map(|error| error.message).as_ref());
    }
    checked.is_ok()
}

fn names_a_line(error: &ScenarioError, text: &str) {
    assert!(!error.message.is_empty(), "an error that says nothing");
    let lines = 1 + text.bytes().filter(|&byte| byte == b'\n').count();
    if let Some(line) = error.line {
        assert!((1..=lines).contains(&line), "{error}: there is no such line");
    }
}
