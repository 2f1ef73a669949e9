//! Looking into a run: cut after an event, and beside another that parts from it.

use revenant::ids::{ActorId, ProcessId};
use revenant_sim::bisect::parting;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario};

use super::{LINEITEM, program, scenario};

/// At this event of the JobMaster its process dies, or not.
fn crashed(event: u64) -> Scenario {
    let mut crashed = scenario(LINEITEM);
    let point = format!("job-manager/1:master@{event}.0").parse().expect("it is a crash point");
    crashed.faults.push(Fault::crash_at(point, false));
    crashed
}

#[test]
fn a_run_that_is_cut_is_the_beginning_of_the_whole_one() {
    let (scenario, program) = (crashed(40), program());
    let keep = RunOptions { keep_chain: true, ..RunOptions::default() };
    let whole = run(&scenario, &program, &keep);
    assert!(whole.detail.states.is_empty(), "only a run that is cut is looked into");
    for until in [1, 50, whole.events / 2, whole.events] {
        let cut = run(&scenario, &program, &RunOptions { until: Some(until), ..keep });
        assert_eq!(cut.events, until);
        assert_eq!(cut.detail.chain, whole.detail.chain[..until as usize]);
    }
}

#[test]
fn every_actor_of_a_run_that_is_cut_tells_its_state() {
    let (scenario, program) = (crashed(40), program());
    let whole = run(&scenario, &program, &RunOptions { keep_text: true, ..RunOptions::default() });
    let at = |part: &str| whole.detail.text.iter().position(|event| event.contains(part)).expect(part);
    let last = |part: &str| whole.detail.text.iter().rposition(|event| event.contains(part)).expect(part);
    // Its first incarnation dies at its last event.
    let (died, recovers) = (last(" job-manager/1:") + 1, at(" job-manager/2:master ") + 5);
    for (until, life, incarnation) in [(died, "down", 1), (recovers, "alive", 2)] {
        let options = RunOptions { until: Some(until as u64), ..RunOptions::default() };
        let states = run(&scenario, &program, &options).detail.states;
        let of = |process| states.iter().find(|states| states.process == process).expect("it has a place");
        let job_manager = of(ProcessId::JOB_MANAGER);
        assert_eq!((job_manager.life, job_manager.incarnation), (life, incarnation), "until {until}");
        assert_eq!(job_manager.actors.is_empty(), job_manager.life == "down");
        for n in 1..=3 {
            let worker = of(ProcessId::TaskManager(n));
            let actors: Vec<ActorId> = worker.actors.iter().map(|(actor, _)| *actor).collect();
            assert!(actors.contains(&ActorId::Executor), "{actors:?}");
            assert!(worker.to_string().contains("TaskExecutor {"), "{worker}");
        }
    }
}

#[test]
fn two_runs_part_at_the_first_event_that_differs() {
    let program = program();
    let (early, late) = (crashed(40), crashed(60));
    assert!(parting([&early, &early], &program).is_none());
    let found = parting([&early, &late], &program).expect("they crash at different events");
    let text = |scenario: &Scenario| {
        let options = RunOptions { keep_text: true, ..RunOptions::default() };
        run(scenario, &program, &options).detail.text
    };
    let (a, b) = (text(&early), text(&late));
    assert_eq!(a[..found.alike], b[..found.alike]);
    assert_ne!(a[found.alike], b[found.alike]);
    assert_eq!(found.events, [Some(a[found.alike].clone()), Some(b[found.alike].clone())]);
    // A crash is no event: it is seen in what is left of the process.
    assert!(found.before);
    let (process, diff) = &found.states[0];
    assert_eq!(*process, ProcessId::JOB_MANAGER);
    assert!(diff.contains("-job-manager/1, down") && diff.contains("+job-manager/1, alive"), "{diff}");
}
