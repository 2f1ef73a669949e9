//! Faults of the network: each shows in the trace what it does to messages, and its heal ends it.

use std::time::Duration;

use revenant::actor::Time;
use revenant::ids::ProcessId;
use revenant_sim::run::run;
use revenant_sim::trace::{RunEnd, RunOutcome, Touched, TraceKind, What};

use crate::toy::{options, program, scenario};

const ASK: &str = "message RequestJobStatus#4 from job-manager to task-manager-2";
/// The master asks again after so long without an answer.
const PATIENCE: u64 = 5_000_000_000;

fn watched(more: &str) -> RunOutcome {
    let outcome = run(&scenario(more), &program(), &options());
    assert_eq!((&outcome.ended, &outcome.vacuous[..]), (&RunEnd::Finished, &[][..]), "{more}");
    outcome
}

fn fault(at: &str, what: &str) -> String {
    format!("[[fault]]\nat = '{at}'\ndo = '{what}'\n")
}

fn touched(outcome: &RunOutcome) -> Vec<(Time, Touched)> {
    let of = outcome.trace.iter().filter_map(|event| match event.what {
        TraceKind::Message(touched) => Some((event.time, touched)),
        _ => None,
    });
    of.collect()
}

fn whats(outcome: &RunOutcome) -> Vec<What> {
    touched(outcome).into_iter().map(|(_, touched)| touched.what).collect()
}

#[test]
fn what_befalls_one_message_is_told_and_happens() {
    let calm = watched("");
    let ms = Duration::from_millis;
    for (what, told, late) in [
        ("drop", What::Dropped, PATIENCE),
        ("delay by 2 s", What::Delayed(ms(2000)), 2_000_000_000),
        ("overtake by 2 s", What::Overtaken(ms(2000)), 2_000_000_000),
        ("duplicate after 1 ms", What::Repeated(ms(1)), 0),
    ] {
        let outcome = watched(&fault(ASK, what));
        let all = touched(&outcome);
        assert_eq!(all.len(), 1, "{what}");
        let Touched { kind, from, to, what } = all[0].1;
        assert_eq!(
            (kind, from.process, to.process, what),
            ("RequestJobStatus", ProcessId::JOB_MANAGER, ProcessId::TaskManager(2), told)
        );
        let later = outcome.end.0.abs_diff(calm.end.0);
        assert!(later.abs_diff(late) < 500_000_000, "{what:?}: {later}");
        match what {
            What::Dropped => {}
            What::Repeated(_) => assert!(outcome.messages > calm.messages),
            _ => assert_eq!(outcome.messages, calm.messages),
        }
    }
}

#[test]
fn an_overtaken_message_lets_others_pass_and_a_delayed_one_does_not() {
    // The master asks again after 5 s: the second question overtakes the first, or waits behind it.
    let order = |what: &str| {
        let mut options = options();
        options.keep_messages = true;
        let outcome = run(&scenario(&fault(ASK, what)), &program(), &options);
        assert_eq!(outcome.ended, RunEnd::Finished);
        let asked = outcome.detail.messages.into_iter().filter(|delivered| {
            delivered.process == ProcessId::TaskManager(2) && delivered.message.kind() == "RequestJobStatus"
        });
        asked.map(|delivered| delivered.time.0 / 1_000_000_000).collect::<Vec<_>>()
    };
    assert_eq!(order("delay by 7 s")[3..6], [7, 7, 7]);
    let overtaken = order("overtake by 7 s");
    assert_eq!(overtaken[3..6], [5, 5, 5], "{overtaken:?}");
}

#[test]
fn other_faults_happen_right_before_the_message_leaves() {
    let outcome = watched(&fault(ASK, "crash job-manager"));
    let crashes = outcome.trace.iter().filter(|event| matches!(event.what, TraceKind::Crashed { .. }));
    assert_eq!(crashes.count(), 1);
    let paused =
        watched(&format!("{}{}", fault(ASK, "pause job-manager"), fault("t = 3 s", "resume job-manager")));
    assert!(paused.end > Time(3_000_000_000) && paused.end < Time(4_000_000_000), "{}", paused.end);
    // The message meets the fault that comes with it.
    let cut = watched(&format!(
        "{}{}",
        fault(ASK, "cut job-manager to task-manager-2"),
        fault("t = 3 s", "heal network")
    ));
    assert_eq!(whats(&cut), [What::Cut]);
}

#[test]
fn a_standing_fault_meets_messages_until_it_is_healed() {
    for (what, heal, told) in [
        ("partition task-manager-2 from job-manager", "heal job-manager from task-manager-2", What::Cut),
        ("partition any from any", "heal network", What::Cut),
        ("cut job-manager to task-manager-2", "heal task-manager-2 from job-manager", What::Cut),
        ("cut task-manager-2 to any", "heal any from task-manager-2", What::Cut),
        ("drop RequestJobStatus", "heal any from any", What::Cut),
        ("drop JobStatusReport from task-manager-2", "heal network", What::Cut),
        ("slow any to task-manager-2 by 1 s", "heal network", What::Slowed(Duration::from_secs(1))),
    ] {
        let outcome = watched(&format!("{}{}", fault(ASK, what), fault("t = 12 s", heal)));
        let all = touched(&outcome);
        assert!(all.iter().any(|(_, touched)| touched.what == told), "{what}: {all:?}");
        assert!(all.iter().all(|(at, _)| *at < Time(12_000_000_000)), "{what}");
        let standing: Vec<String> = outcome
            .trace
            .iter()
            .filter_map(|event| match event.what {
                TraceKind::NetworkFault(fault) => Some(fault.to_string()),
                _ => None,
            })
            .collect();
        assert_eq!(standing, [what, heal]);
        if !matches!(told, What::Slowed(_)) {
            assert!(outcome.end > Time(12_000_000_000), "{what}: {}", outcome.end);
        }
    }
}

#[test]
fn a_partition_loses_what_would_arrive_while_it_stands() {
    // What left before it and is due after its end arrives.
    let slow = fault(ASK, "overtake by 2 s");
    let partition = |from: &str, until: &str| {
        let cut = fault(from, "cut job-manager to task-manager-2");
        let heal = fault(until, "heal network");
        run(&scenario(&format!("{slow}{cut}{heal}")), &program(), &options())
    };
    let met = partition("t = 1 s", "t = 3 s");
    assert_eq!(whats(&met)[1..], [What::LostOnTheWay]);
    assert_eq!(met.vacuous, [0; 0]);
    let passed = partition("t = 1 s", "t = 1.5 s");
    assert_eq!(whats(&passed).len(), 1);
    assert_eq!(passed.vacuous, [1], "a cut that met nothing shows nothing");
}

#[test]
fn a_reset_loses_what_is_under_way_both_ways_and_nothing_later() {
    // The master asks again after 5 s.
    let late = fault(ASK, "delay by 9 s");
    let outcome = watched(&format!("{late}{}", fault("t = 1 s", "reset task-manager-2 to job-manager")));
    assert_eq!(whats(&outcome)[1..], [What::Reset]);
    // The connection begins anew: what follows does not wait for what was late.
    assert!(outcome.end < Time(PATIENCE + 1_000_000_000), "{}", outcome.end);
    let nothing = fault("t = 0 s", "reset task-manager-2 to job-manager");
    assert_eq!(run(&scenario(&nothing), &program(), &options()).vacuous, [0]);
}

#[test]
fn what_reached_a_process_that_stands_still_has_arrived() {
    // The question is with the process before the way is cut, and is not lost when it goes on.
    let text = [
        fault(ASK, "pause task-manager-2"),
        fault("t = 1 s", "cut job-manager to task-manager-2"),
        fault("t = 2 s", "resume task-manager-2"),
        fault("t = 60 s", "heal network"),
    ];
    let outcome = watched(&text.concat());
    assert!(whats(&outcome).iter().all(|what| *what == What::Cut));
    assert!(touched(&outcome)[0].0 > Time(2_000_000_000));
}

#[test]
fn rates_strike_until_they_end_and_one_that_never_does_is_named() {
    let outcome = watched(
        "[network]\ndrop-rate = 0.1\nduplicate-rate = 0.2\ndelay-rate = 0.2\ndelay-by = '1 ms..50 ms'\n\
         overtake-rate = 0.2\novertake-by = '1 ms..50 ms'\nrates-until = '6 s'\n",
    );
    assert_eq!(outcome.idle_rates, [""; 0]);
    let all = touched(&outcome);
    for told in ["IS LOST", "TWICE", "what follows it waits", "OVERTAKES"] {
        assert!(all.iter().any(|(_, touched)| touched.to_string().contains(told)), "{told}");
    }
    assert!(all.iter().all(|(at, _)| *at < Time(6_000_000_000)));
    assert_eq!(watched("[network]\ndrop-rate = 0.000001\n").idle_rates, ["drop-rate"]);
}
