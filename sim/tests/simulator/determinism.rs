//! The same scenario gives the same events.

use std::sync::{Arc, Mutex};

use revenant::ids::ProcessId;
use revenant_sim::run::{Collect, run};
use revenant_sim::trace::{RunEnd, RunOutcome};

use crate::toy::{options, program, scenario};

const FAULTS: &str = "[disk]\nincomplete-at-crash = 'torn'\nunsynced-at-machine-crash = 'torn'\n\
    [[fault]]\nat = 'job-manager/1:job_event.append#3.after'\ndo = 'crash machine of job-manager'\n\
    [[fault]]\nat = 'crash of job-manager/1'\ndo = 'crash task-manager-2'\nrestart-after = '3 s'\n";

fn chain(seed: u64) -> RunOutcome {
    let mut scenario = scenario(FAULTS);
    scenario.schedule.seed = seed;
    let mut options = options();
    options.keep_chain = true;
    run(&scenario, &program(), &options)
}

#[test]
fn a_seed_gives_the_same_chain_alone_and_beside_other_runs() {
    let alone: Vec<RunOutcome> = (0..20).map(chain).collect();
    std::thread::scope(|scope| {
        let beside: Vec<_> = (0..20).rev().map(|seed| (seed, scope.spawn(move || chain(seed)))).collect();
        for (seed, run) in beside {
            let (run, alone) = (run.join().unwrap(), &alone[seed as usize]);
            assert_eq!(run.detail.chain, alone.detail.chain, "seed {seed}");
            assert_eq!((run.hash, run.end, &run.output), (alone.hash, alone.end, &alone.output));
        }
    });
    assert!(alone.iter().all(|run| run.vacuous.is_empty() && run.ended == RunEnd::Finished));
    assert_ne!(alone[0].hash, alone[1].hash);
}

/// A change of this number is a change of every saved schedule.
#[test]
fn the_hash_is_the_same_in_every_build() {
    assert_eq!(format!("{:016x}", chain(1).hash), "78304076dd53e183");
}

#[test]
fn a_message_that_went_over_the_wire_is_the_same_event() {
    let scenario = scenario(FAULTS);
    let mut wire = options();
    wire.codec = true;
    assert_eq!(run(&scenario, &program(), &options()).hash, run(&scenario, &program(), &wire).hash);
}

#[test]
fn watching_a_run_does_not_change_it_and_the_log_bears_simulated_time() {
    let scenario = scenario(FAULTS);
    let quiet = run(&scenario, &program(), &options());
    let mut watched = options();
    (watched.keep_text, watched.keep_chain) = (true, true);
    watched.collect = Collect::Of(ProcessId::JOB_MANAGER);
    // With a single dispatcher, tracing asks the default of whichever thread meets a callsite first,
    // and the threads of other tests have none.
    let _second = tracing::Dispatch::new(tracing_subscriber::registry());
    let written = Lines::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(written.clone())
        .event_format(revenant_sim::log::SimulatedTime)
        .finish();
    let loud = tracing::subscriber::with_default(subscriber, || run(&scenario, &program(), &watched));
    assert_eq!(loud.hash, quiet.hash);
    assert_eq!(loud.detail.text.len() as u64, loud.events);
    let log = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
    let line = log.lines().find(|line| line.contains("round 2"));
    let line = line.unwrap_or_else(|| panic!("no round in {} bytes of log: {log:.600}", log.len()));
    assert!(line.starts_with("at=0.0") && line.contains(" by=job-manager/1:master INFO "), "{line}");
}

#[test]
fn a_second_run_in_the_same_process_is_the_same() {
    for seed in 0..5 {
        let mut scenario = scenario("");
        scenario.schedule.seed = seed;
        let first = run(&scenario, &program(), &options());
        assert_eq!(first.hash, run(&scenario, &program(), &options()).hash);
        assert_eq!(first.ended, RunEnd::Finished);
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl tracing_subscriber::fmt::MakeWriter<'_> for Lines {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}
