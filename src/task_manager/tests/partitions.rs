//! How long finished partitions are kept.

use crate::actor::Effect;
use crate::ids::Address;
use crate::message::{
    GetAndRetainPartitionWithMetrics, HeartbeatRequest, Message, PartitionReport, RegistrationSuccess,
    ReleasePartitions,
};

use super::bench::*;

fn claim(epoch: u64) -> GetAndRetainPartitionWithMetrics {
    GetAndRetainPartitionWithMetrics { token: token(epoch) }
}

#[test]
fn finished_partitions_outlive_their_leader_and_are_reported_to_the_next() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    bench.submit(1, attempt(1, 1));
    assert_eq!(dropped(&bench.lead(2)), []);
    let partitions = vec![metrics(finished)];
    let report = PartitionReport { token: token(2), session: SESSION, partitions };
    assert_eq!(sent(&bench.master(claim(2))), [(Address::MASTER, Message::PartitionReport(report))]);
}

#[test]
fn a_claim_stops_the_retention_timer() {
    let mut bench = Bench::registered();
    bench.finish(1, 0);
    bench.leader_changed(None);
    bench.pass(299);
    bench.leader_changed(Some(2));
    bench.master(claim(2));
    bench.master(RegistrationSuccess { token: token(2), session: SESSION });
    assert_eq!(dropped(&bench.pass(20)), []);
}

#[test]
fn what_no_leader_claims_is_dropped_in_time() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    bench.leader_changed(None);
    assert_eq!(dropped(&bench.pass(299)), []);
    assert_eq!(dropped(&bench.pass(1)), [partition(finished)]);
}

#[test]
fn a_late_registration_loses_the_old_partitions_and_keeps_the_new() {
    let mut bench = Bench::registered();
    let old = bench.finish(1, 0);
    bench.lead(2);
    let new = bench.finish(2, 1);
    for _ in 0..8 {
        bench.pass(40);
        let effects = bench.master(HeartbeatRequest { token: token(2), attempts: vec![] });
        assert_eq!(names(&effects), ["HeartbeatResponse"]);
    }
    let report = sent(&bench.master(claim(2)));
    let Message::PartitionReport(report) = &report[0].1 else { panic!("{report:?}") };
    assert_eq!(report.partitions, [metrics(new)], "{old} was not claimed in time");
}

#[test]
fn a_leader_that_was_only_silent_keeps_its_partitions() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    bench.pass(50);
    bench.lead(1);
    for _ in 0..10 {
        bench.pass(40);
        bench.master(HeartbeatRequest { token: token(1), attempts: vec![] });
    }
    let release = ReleasePartitions { token: token(1), partitions: vec![partition(finished)] };
    assert_eq!(dropped(&bench.master(release)), [partition(finished)], "still there");
}

#[test]
fn only_partitions_that_are_here_are_released_and_only_once() {
    let mut bench = Bench::registered();
    let finished = bench.finish(1, 0);
    let partitions = vec![partition(finished), partition(attempt(1, 9))];
    let release = ReleasePartitions { token: token(1), partitions };
    assert_eq!(dropped(&bench.master(release.clone())), [partition(finished)]);
    assert_eq!(bench.master(release), []);
}

#[test]
fn without_job_recovery_partitions_go_with_their_leader() {
    let (mut bench, _) = Bench::start(false);
    bench.lead(1);
    let finished = bench.finish(1, 0);
    assert_eq!(dropped(&bench.leader_changed(Some(2))), [partition(finished)]);
}

#[test]
fn without_partitions_a_lost_leader_is_followed_by_the_same_with_and_without_job_recovery() {
    let after_the_loss = |recovery| {
        let (mut bench, _) = Bench::start(recovery);
        bench.lead(1);
        bench.submit(1, attempt(1, 0));
        let mut effects = bench.leader_changed(None);
        let timers = bench.timers().clone();
        effects.extend(bench.pass(400));
        effects.extend(bench.lead(2));
        (timers, effects.iter().map(Effect::name).collect::<Vec<_>>())
    };
    assert_eq!(after_the_loss(true), after_the_loss(false));
}

#[test]
fn b16_partitions_are_kept_in_whatever_way_the_change_of_leaders_is_heard_of() {
    // The old leader's loss first; the new leader at once; the same after a silence.
    let changes: [fn(&mut Bench); 3] = [
        |bench| {
            bench.leader_changed(None);
            bench.lead(2);
        },
        |bench| {
            bench.lead(2);
        },
        |bench| {
            bench.pass(60);
            bench.lead(2);
        },
    ];
    for change in changes {
        let mut bench = Bench::registered();
        let kept = bench.finish(1, 0);
        change(&mut bench);
        let partitions = vec![metrics(kept)];
        let report = PartitionReport { token: token(2), session: SESSION, partitions };
        assert_eq!(sent(&bench.master(claim(2))), [(Address::MASTER, Message::PartitionReport(report))]);
        for _ in 0..20 {
            assert_eq!(dropped(&bench.pass(40)), [], "the claim ended the old retention");
            bench.master(HeartbeatRequest { token: token(2), attempts: vec![] });
        }
    }
}
