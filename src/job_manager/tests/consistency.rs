//! A state that contradicts itself says so.

use super::*;

/// What is wrong after something was done to the state of a job whose sinks run.
fn wrong(harm: impl FnOnce(&mut JobMaster)) -> String {
    let mut fixture = Fixture::new(&[]);
    fixture.run_until_sinks();
    harm(&mut fixture.master);
    fixture.master.contradiction().expect("it contradicts itself")
}

#[test]
fn a_slot_that_is_given_back_twice_is_seen() {
    assert_eq!(
        wrong(|master| master.slots.give_back(TM1)),
        "of 1 slots of task-manager-1 1 are free and 1 taken"
    );
}

#[test]
fn a_task_whose_producer_runs_again_is_seen() {
    let reset = |master: &mut JobMaster| _ = master.execution.reset(ExecutionVertexId::new(SOURCE, 1));
    assert_eq!(wrong(reset), "v1.0.e7a1 runs, though its producer v0.1 is not finished");
}

#[test]
fn a_partition_that_is_forgotten_while_it_is_read_is_seen() {
    let lost = partition(attempt(SOURCE, 0, NOW)).partition;
    let message = wrong(|master| _ = master.tracker.untrack(lost));
    assert_eq!(
        message,
        format!("{lost} is still to be read and nowhere, and its producer does not run again")
    );
}

#[test]
fn a_task_on_a_worker_that_is_not_registered_is_seen() {
    let message = wrong(|master| {
        master.slots.remove(TM2);
        master.workers = Workers::default();
    });
    assert_eq!(message, "v1.0.e7a1 runs at task-manager-1, which is not registered");
}

#[test]
fn a_split_that_is_lost_or_in_two_places_is_seen() {
    let lost = |master: &mut JobMaster| {
        let coordinator = SourceCoordinator::new(&TwoSplits);
        master.coordinators.insert(SOURCE, coordinator);
        for coordinator in master.coordinators.values_mut() {
            coordinator.next_split(0);
            coordinator.unassign(0);
        }
    };
    assert_eq!(wrong(lost), "of the source v0, split 0 is in 0 places");
}
