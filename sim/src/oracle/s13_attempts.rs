//! S13: attempt ids are unique and, for each subtask, rise over all incarnations; no attempt is
//! started twice. Temporary paths and partitions are named by attempt ids.

use std::collections::{BTreeMap, BTreeSet};

use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    let mut last = BTreeMap::new();
    for deployed in &history.deployed {
        let attempt = deployed.attempt;
        let place = (attempt.epoch, attempt.number);
        if let Some(before) = last.insert(attempt.subtask, place)
            && place <= before
        {
            let message = format!("{attempt} was deployed after e{}a{} of its subtask", before.0, before.1);
            return Err(history.violation("S13", deployed.at, message));
        }
    }
    let mut seen = BTreeSet::new();
    for started in &history.started {
        if !seen.insert(started.attempt) {
            let message = format!("{} was started twice", started.attempt);
            return Err(history.violation("S13", started.at, message));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, attempt, caught, passes};

    #[test]
    fn rising_attempts_are_good() {
        let mut story = Story::new();
        story.start().deploy(attempt(0, 0, 1, 1)).deploy(attempt(0, 1, 1, 1)).deploy(attempt(0, 0, 1, 2));
        story.crash().lead(2).deploy(attempt(0, 0, 2, 1));
        passes(check, &story);
    }

    #[test]
    fn a_number_that_comes_again_or_goes_back_is_caught() {
        let mut story = Story::new();
        story.start().deploy(attempt(0, 0, 1, 2)).deploy(attempt(0, 0, 1, 2));
        caught(check, &story, "v0.0.e1a2 was deployed after e1a2 of its subtask");
        let mut story = Story::new();
        story.start().deploy(attempt(0, 0, 2, 1)).deploy(attempt(0, 0, 1, 7));
        caught(check, &story, "v0.0.e1a7 was deployed after e2a1");
    }

    #[test]
    fn an_attempt_that_is_started_twice_is_caught() {
        let mut story = Story::new();
        story.start().started(1, attempt(0, 0, 1, 1)).started(2, attempt(0, 0, 1, 1));
        caught(check, &story, "v0.0.e1a1 was started twice");
    }
}
