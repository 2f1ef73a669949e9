//! Whole scenarios from a seed: job, data, cluster, options, and faults of which each takes effect.
//!
//! Every purpose draws from a stream of its own, so that a new draw in one place does not move the
//! others. Faults are drawn one after the other: each lies behind those before it in the run that they
//! make, at a point that this run passes or a time within it, so that it is met. What was not met after
//! all is taken out again. Decides nothing about what is right.

use std::collections::BTreeSet;
use std::sync::Arc;

use revenant::api::Program;

use crate::run::{Collect, RunOptions, run};
use crate::scenario::{Expect, Outcome, Profile, Scenario, Schedule};
use crate::trace::{RunEnd, RunOutcome};

mod cluster;
mod coverage;
mod data;
mod faults;
mod job;
mod options;
pub mod plan;
mod stream;
pub mod swarm;

pub use coverage::{features, known_features};
pub use faults::kind_names;

use faults::Draft;
use stream::{Purpose, Stream};

/// A scenario, and what its last run was.
#[derive(Debug)]
pub struct Generated {
    pub scenario: Scenario,
    /// Which kinds of faults are in it.
    pub kinds: BTreeSet<&'static str>,
    /// Whether there should be faults and none was met.
    pub vacuous: bool,
    pub outcome: RunOutcome,
}

/// How often faults are drawn anew if none of them is met.
const TRIES: usize = 3;
/// How often faults that were not met are taken out.
const PRUNES: usize = 4;

/// The scenario of a seed. An error is a defect of the generator.
pub fn generate(seed: u64, profile: Profile, program: &Arc<Program>) -> Result<Generated, String> {
    let mut scenario = calm(seed, profile, program)?;
    let options = RunOptions { collect: Collect::All, keep_messages: true, ..RunOptions::default() };
    let go = |scenario: &Scenario| run(scenario, program, &options);
    let mut outcome = go(&scenario);
    if profile == Profile::Recoverable {
        cluster::allow_repetitions(&mut scenario, &outcome);
    }
    let mut kinds: Vec<&'static str> = Vec::new();
    let mut mix = Stream::of(seed, Purpose::FaultMix);
    let wanted = faults::how_many(&mut mix, profile);
    let mut streams = faults::streams(seed);
    for _ in 0..TRIES {
        for _ in 0..wanted {
            let draft = Draft::of(&scenario, profile, &outcome);
            let Some((kind, drawn)) = faults::draw(&mut mix, &mut streams, &draft) else { break };
            kinds.extend(drawn.iter().map(|_| kind));
            scenario.faults.extend(drawn);
            outcome = go(&scenario);
        }
        for _ in 0..PRUNES {
            if outcome.vacuous.is_empty() && outcome.idle_rates.is_empty() {
                break;
            }
            for key in &outcome.idle_rates {
                cluster::leave_out(&mut scenario.network, key);
            }
            let mut missed: BTreeSet<usize> = outcome.vacuous.iter().copied().collect();
            missed.extend(faults::without_cause(&scenario.faults, &missed));
            for &fault in missed.iter().rev() {
                scenario.faults.remove(fault);
                kinds.remove(fault);
            }
            outcome = go(&scenario);
        }
        if wanted == 0 || !scenario.faults.is_empty() {
            break;
        }
    }
    if outcome.ended == RunEnd::Canceled {
        scenario.expect.outcome = Outcome::Canceled;
    }
    let vacuous = !outcome.vacuous.is_empty()
        || !outcome.idle_rates.is_empty()
        || (wanted > 0 && scenario.faults.is_empty());
    scenario.check(program).map_err(|error| format!("seed {seed}: {error}\n{}", scenario.to_toml()))?;
    Ok(Generated { kinds: kinds.into_iter().collect(), vacuous, outcome, scenario })
}

/// All but the faults.
fn calm(seed: u64, profile: Profile, program: &Arc<Program>) -> Result<Scenario, String> {
    let mut scenario = Scenario {
        planted_bug: None,
        job: crate::scenario::Job { name: String::new(), arguments: crate::scenario::Arguments::default() },
        cluster: crate::scenario::Cluster::default(),
        config: crate::scenario::Options::default(),
        schedule: Schedule { seed },
        network: crate::scenario::Network::default(),
        disk: crate::scenario::Disk::default(),
        clock: std::collections::BTreeMap::new(),
        inputs: Vec::new(),
        faults: Vec::new(),
        expect: Expect { outcome: Outcome::Finished, profile },
        failure: None,
    };
    (scenario.job, scenario.inputs) =
        job::draw(&mut Stream::of(seed, Purpose::Job), &mut Stream::of(seed, Purpose::Data), program);
    cluster::draw(&mut Stream::of(seed, Purpose::Cluster), profile, &mut scenario);
    options::draw(&mut Stream::of(seed, Purpose::Options), &mut scenario);
    scenario.check(program).map_err(|error| format!("seed {seed}: {error}\n{}", scenario.to_toml()))?;
    Ok(scenario)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn program() -> Arc<Program> {
        Arc::new(revenant::jobs::registry())
    }

    #[test]
    fn a_seed_is_one_scenario_that_reads_back_and_another_seed_another() {
        let program = program();
        for profile in [Profile::Recoverable, Profile::Hostile] {
            let first = generate(7, profile, &program).unwrap();
            let again = generate(7, profile, &program).unwrap();
            assert_eq!(first.scenario, again.scenario);
            assert_eq!(first.outcome.hash, again.outcome.hash);
            let text = first.scenario.to_toml();
            assert_eq!(Scenario::parse("generated", &text).unwrap(), first.scenario, "{text}");
            for (range, rate) in [("delay-by", "delay-rate"), ("overtake-by", "overtake-rate")] {
                assert!(!text.contains(range) || text.contains(rate), "{range} has no effect:\n{text}");
            }
            assert_ne!(generate(8, profile, &program).unwrap().scenario, first.scenario);
        }
    }

    /// What a purpose has drawn moves nothing that another draws.
    #[test]
    fn more_draws_for_one_purpose_leave_the_others_as_they_were() {
        let program = program();
        let parts = |spoilt: Option<Purpose>| {
            let stream = |purpose| {
                let mut stream = Stream::of(3, purpose);
                if spoilt == Some(purpose) {
                    stream.below(100);
                }
                stream
            };
            let mut scenario = calm(3, Profile::Recoverable, &program).unwrap();
            let (job, inputs) = job::draw(&mut stream(Purpose::Job), &mut stream(Purpose::Data), &program);
            (scenario.job, scenario.inputs) = (job, inputs);
            cluster::draw(&mut stream(Purpose::Cluster), Profile::Recoverable, &mut scenario);
            options::draw(&mut stream(Purpose::Options), &mut scenario);
            let cluster = (scenario.cluster, scenario.network, scenario.disk, scenario.clock);
            (scenario.job, scenario.inputs, cluster, scenario.config)
        };
        let (job, inputs, cluster, config) = parts(None);
        let other = parts(Some(Purpose::Job));
        assert!(other.0 != job && other.2 == cluster && other.3 == config);
        let other = parts(Some(Purpose::Data));
        assert!(other.0 == job && other.2 == cluster && other.3 == config);
        let other = parts(Some(Purpose::Cluster));
        assert!(other.0 == job && other.1 == inputs && other.2 != cluster);
        let other = parts(Some(Purpose::Options));
        assert!(other.0 == job && other.1 == inputs && other.2 == cluster && other.3 != config);
    }
}
