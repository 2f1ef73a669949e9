//! S5: a vertex's parallelism and input ranges never change once they are decided, as long as the
//! leader that decided lives or the decision is durable (FLIP-383,
//! ExecutionJobVertexInitializedEvent). A decision that died with its leader before it was durable
//! may be made anew: nothing that depends on it has outlived it either. A leader that could not read
//! the log decides for itself.

use super::log::Bytes;
use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    for (position, decision) in history.initialized.iter().enumerate() {
        let fail = |before: String| {
            let message = format!(
                "{} was decided anew (parallelism {}), {before}",
                decision.vertex, decision.parallelism
            );
            Err(history.violation("S5", decision.at, message))
        };
        let earlier =
            history.initialized[..position].iter().rfind(|earlier| earlier.vertex == decision.vertex);
        let Some(earlier) = earlier else { continue };
        if earlier.parallelism == decision.parallelism && earlier.inputs == decision.inputs {
            continue;
        }
        if earlier.token == decision.token {
            return fail(format!("its leader had decided parallelism {}", earlier.parallelism));
        }
        let leader = history.leaders.iter().find(|leader| leader.token == decision.token);
        if leader.is_some_and(|leader| history.is_blind(leader)) {
            continue;
        }
        let state = history.log.state(decision.at, Bytes::Durable);
        if let Some(&(parallelism, inputs)) = state.initialized.get(&decision.vertex)
            && (parallelism, inputs) != (decision.parallelism, decision.inputs)
        {
            return fail(format!("a durable event says parallelism {parallelism}"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use revenant::job_event::JobEvent;
    use revenant::message::IndexRange;

    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    const ALL: IndexRange = IndexRange::new(0, 1);

    fn one_sink(story: &mut Story, token: u64) {
        story.init(token, 1, 1, vec![vec![(ALL, IndexRange::new(0, 3))]]);
    }

    #[test]
    fn a_leader_that_changes_its_mind_is_caught() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        passes(check, &story);
        one_sink(&mut story, 1);
        caught(check, &story, "its leader had decided parallelism 2");
    }

    #[test]
    fn a_decision_that_died_before_it_was_durable_may_be_made_anew() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        story.crash().lead(2);
        one_sink(&mut story, 2);
        passes(check, &story);
    }

    #[test]
    fn a_durable_decision_that_a_new_leader_changes_is_caught() {
        let mut story = Story::new();
        story.run_sources().init_sinks();
        let inputs = Story::sink_ranges();
        let vertex = revenant::ids::JobVertexId(1);
        story.log(1, JobEvent::ExecutionJobVertexInitialized { vertex, parallelism: 2, inputs });
        story.crash().lead(2);
        passes(check, &story);
        one_sink(&mut story, 2);
        caught(check, &story, "v1 was decided anew (parallelism 1), a durable event says parallelism 2");
    }
}
