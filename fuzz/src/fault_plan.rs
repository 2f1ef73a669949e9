//! A list of faults → a whole simulated run of a small job, judged by every oracle: whatever befalls the
//! cluster, no promise is broken and nobody panics. With `all_is_healed`, everything that lasts is made
//! good, and then the job must end well, too.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use arbitrary::{Arbitrary, Unstructured};
use revenant::api::Program;
use revenant::message::Message;
use revenant_sim::oracle::Judge;
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{OPERATIONS, Scenario};

/// There are few jobs and arguments, so that the graphs it keeps are few.
static PROGRAM: LazyLock<Arc<Program>> = LazyLock::new(|| Arc::new(revenant::jobs::registry()));

#[derive(Arbitrary, Debug)]
pub struct FaultPlan {
    all_is_healed: bool,
    seed: u8,
    job: u8,
    cluster: Cluster,
    faults: Vec<Fault>,
}

#[derive(Arbitrary, Debug)]
struct Cluster {
    task_managers: u8,
    has_standby: bool,
    external_shuffle: u8,
    slots: u8,
    flush: u8,
    latency: u8,
    disk: u8,
    incomplete: u8,
    unsynced: u8,
    in_flight_lost: bool,
    shared_volumes_on: u8,
    rates: u8,
    /// Each for one option.
    options: [u8; 4],
}

#[derive(Arbitrary, Debug)]
enum Fault {
    Crash { when: When, process: u8, machine: bool, restart: u8 },
    StayDown { at: u16, process: u8, machine: bool, duration: u8 },
    OldDisk { at: u16, process: u8, old: u8 },
    Leadership { when: When, change: bool, notice: bool },
    DiskOnce { at: u16, purpose: u8, operation: u8, occurrence: u8 },
    Corrupt { at: u16, offset: u16 },
    Message { kind: u8, occurrence: u8, what: u8 },
    Reset { when: When, from: u8, to: u8 },
    Cancel { when: When },
    Lasting { at: u16, duration: u8, what: Lasting },
}

#[derive(Arbitrary, Debug)]
enum Lasting {
    Pause { process: u8 },
    Clock { process: u8, what: u8 },
    Disk { what: u8, purpose: u8, of: u8 },
    Link { from: u8, to: u8, what: u8 },
    Kind { kind: u8 },
}

#[derive(Arbitrary, Debug)]
enum When {
    Time(u16),
    Event { process: u8, actor: bool, incarnation: u8, event: u8, effect: u8 },
    Effect { process: u8, incarnation: u8, effect: u8, occurrence: u8, after: bool },
    Message { kind: u8, occurrence: u8 },
    CrashOf { process: u8, incarnation: u8 },
}

const FAULTS_MAX: usize = 8;

const JOBS: [&str; 5] = [
    "rows = source rows=40 splits=4 parallelism=2\nout = sink rows",
    "rows = source rows=30 splits=5\nn = map rows via hash\nsorted = sort n via hash\nout = sink sorted kind=json-lines",
    "a = source rows=12 splits=2 assignment=static\nb = source rows=15 splits=3\n\
     j = join a b via broadcast,rebalance parallelism=3\nc = count j via hash per=key\nout = sink c kind=collect",
    "a = source rows=24 splits=6\nb = map a via forward\nc = reduce b via rescale\nout = sink c\nall = sink b",
    "lineage = hash\na = source rows=60 splits=3\ng = group a via hash\nf = first 3 of g via rebalance\nout = sink f",
];

const PURPOSES: [&str; 6] = ["job_event", "high_availability", "partition", "spill", "sink", "source"];

const CLOCK_FAULTS: [&str; 6] =
    ["jump -300 s", "jump -10 ms", "jump +5 s", "jump +300 s", "drift -200000 ppm", "drift +20000 ppm"];

const MESSAGE_FAULTS: [&str; 7] = [
    "drop",
    "delay by 1 s",
    "delay by 90 s",
    "overtake by 50 ms",
    "overtake by 15 s",
    "duplicate after 1 ms",
    "duplicate after 15 s",
];

const OPTIONS: [[(&str, &str); 4]; 4] = [
    [
        ("taskmanager.registration.timeout", "5 min"),
        ("taskmanager.registration.timeout", "1 s"),
        ("execution.batch.job-recovery.previous-worker.recovery.timeout", "0 s"),
        ("execution.batch.job-recovery.previous-worker.recovery.timeout", "5 s"),
    ],
    [
        ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "0 s"),
        ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "10 ms"),
        ("execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "1 h"),
        ("job-event.store.write-buffer.size", "200 b"),
    ],
    [
        ("cluster.registration.error-delay", "10 s"),
        ("cluster.registration.error-delay", "1 s"),
        ("high-availability.session-timeout", "3 s"),
        ("high-availability.session-timeout", "10 min"),
    ],
    [
        ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "200 b"),
        ("execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "16 mb"),
        ("execution.sort-partition.memory", "400 b"),
        ("execution.batch.job-recovery.enabled", "false"),
    ],
];

/// What a plan came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// No fault was met.
    Untouched,
    Struck,
}

pub fn read(bytes: &[u8]) -> Option<FaultPlan> {
    FaultPlan::arbitrary_take_rest(Unstructured::new(bytes)).ok()
}

pub fn check(plan: &FaultPlan) -> Ran {
    let text = plan.scenario();
    let mut scenario = Scenario::parse("plan", &text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let drawn = std::mem::take(&mut scenario.faults);
    scenario.check(&PROGRAM).unwrap_or_else(|error| panic!("{error}\n{text}"));
    for fault in drawn {
        scenario.faults.push(fault);
        // It may be one that can never happen.
        if scenario.check(&PROGRAM).is_err() {
            scenario.faults.pop();
        }
    }
    let judge = Judge::new(&scenario, &PROGRAM).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let outcome = run(&scenario, &PROGRAM, &RunOptions::default());
    if let Err(violation) = judge.judge(&outcome) {
        panic!("{violation}\n{}", scenario.to_toml());
    }
    if outcome.vacuous.len() == scenario.faults.len() { Ran::Untouched } else { Ran::Struck }
}

impl FaultPlan {
    /// As the text of a scenario file.
    pub fn scenario(&self) -> String {
        let mut text = String::new();
        let cluster = &self.cluster;
        let job = pick(&JOBS, self.job);
        let external = cluster.external_shuffle.is_multiple_of(4);
        let _ = write!(
            text,
            "[job]\nname = 'dataflow'\n[job.arguments]\nplan = '''\n{job}\n'''\n\n\
             [cluster]\ntask-managers = {}\njob-managers = {}\nshuffle-services = {}\n",
            self.task_managers(),
            1 + u8::from(cluster.has_standby),
            if external { 1 + cluster.external_shuffle / 4 % 2 } else { 0 },
        );
        text += if self.all_is_healed {
            "time-limit = '3 h'\nevent-limit = 1000000\n"
        } else {
            "time-limit = '10 min'\nevent-limit = 200000\n"
        };
        let _ = write!(
            text,
            "\n[config]\n'taskmanager.numberOfTaskSlots' = {}\n'taskmanager.memory.segment-size' = '256 b'\n\
             'execution.batch.adaptive.auto-parallelism.max-parallelism' = 4\n\
             'job-event.store.write-buffer.flush-interval' = '{}'\n'restart-strategy.type' = 'fixed-delay'\n\
             'restart-strategy.fixed-delay.attempts' = 1000000\n'shuffle.service' = '{}'\n",
            1 + cluster.slots % 2,
            pick(&["1 ms", "0 s", "20 ms", "1 h"], cluster.flush),
            if external { "external" } else { "task-manager" },
        );
        let options = OPTIONS.iter().zip(cluster.options).map(|(options, choice)| pick(options, choice));
        let options: Vec<(&str, &str)> = options.collect();
        for (key, value) in &options {
            let _ = writeln!(text, "'{key}' = '{value}'");
        }
        if options.iter().all(|(key, _)| *key != "execution.batch.job-recovery.enabled") {
            text += "'execution.batch.job-recovery.enabled' = true\n";
        }
        let _ = write!(
            text,
            "\n[schedule]\nseed = {}\n\n[network]\nlatency = '{}'\nin-flight-at-crash = '{}'\n",
            self.seed,
            pick(&["200 us..2 ms", "0 s", "1 us..50 ms"], cluster.latency),
            if cluster.in_flight_lost { "lost" } else { "delivered" },
        );
        text += pick(
            &["", "", "drop-rate = 0.02\n", "duplicate-rate = 0.1\novertake-rate = 0.1\n"],
            cluster.rates,
        );
        if cluster.rates % 4 > 1 {
            text += "rates-until = '10 s'\n";
        }
        let _ = write!(
            text,
            "\n[disk]\nlatency = '{}'\nincomplete-at-crash = '{}'\nunsynced-at-machine-crash = '{}'\n{}",
            pick(&["50 us..500 us", "0 s", "50 us..20 ms"], cluster.disk),
            pick(&["not-done", "done", "torn", "sector"], cluster.incomplete),
            pick(
                &[
                    "lost",
                    "kept",
                    "torn",
                    "record",
                    "sector",
                    "zeros",
                    "names-without-data",
                    "data-without-names",
                    "any"
                ],
                cluster.unsynced
            ),
            pick(
                &[
                    "",
                    "",
                    "",
                    "shared-volumes-on = 'job-manager'\n",
                    "shared-volumes-on = 'high-availability'\n",
                    "shared-volumes-on = 'task-manager-1'\n"
                ],
                cluster.shared_volumes_on
            ),
        );
        for fault in self.faults.iter().take(FAULTS_MAX) {
            self.write(fault, &mut text);
        }
        let profile = if self.all_is_healed { "recoverable" } else { "hostile" };
        let canceled = self.faults.iter().take(FAULTS_MAX).any(|fault| matches!(fault, Fault::Cancel { .. }));
        let _ = write!(text, "\n[expect]\nprofile = '{profile}'\n");
        if canceled {
            text += "outcome = 'canceled'\n";
        }
        text
    }

    fn task_managers(&self) -> u8 {
        1 + self.cluster.task_managers % 3
    }

    fn process(&self, which: u8) -> String {
        match which % 8 {
            0 | 1 => "job-manager".to_owned(),
            2 if self.cluster.has_standby => "job-manager-2".to_owned(),
            3 if self.cluster.external_shuffle.is_multiple_of(4) => "shuffle-service-1".to_owned(),
            4 => "high-availability".to_owned(),
            5 => "client".to_owned(),
            _ => format!("task-manager-{}", 1 + which / 8 % self.task_managers()),
        }
    }

    fn trigger(&self, when: &When) -> String {
        match *when {
            When::Time(at) => time(at, 0),
            When::Event { process, actor, incarnation, event, effect } => {
                let process = self.process(process);
                let actor = match process.trim_end_matches(|c: char| c.is_ascii_digit() || c == '-') {
                    "job-manager" => ["master", "writer"][usize::from(actor)],
                    "task-manager" => ["executor", "shuffle"][usize::from(actor)],
                    "shuffle-service" => ["shuffle-worker", "shuffle"][usize::from(actor)],
                    "high-availability" => "ha",
                    _ => "client",
                };
                let (incarnation, event) = (1 + incarnation % 3, 1 + u16::from(event));
                format!("{process}/{incarnation}:{actor}@{event}.{}", effect % 3)
            }
            When::Effect { process, incarnation, effect, occurrence, after } => {
                let process = self.process(process);
                let name = if effect < 128 {
                    let (purpose, operation) = (pick(&PURPOSES, effect), pick(&OPERATIONS, effect / 6));
                    format!("{purpose}.{operation}")
                } else {
                    pick(Message::KINDS, effect - 128).to_owned()
                };
                let after = if after { "after" } else { "before" };
                format!("{process}/{}:{name}#{}.{after}", 1 + incarnation % 3, 1 + occurrence % 32)
            }
            When::Message { kind, occurrence } => message(kind, occurrence),
            When::CrashOf { process, incarnation } => {
                format!("crash of {}/{}", self.process(process), 1 + incarnation % 3)
            }
        }
    }

    /// The fault, and what heals it, if it is.
    fn write(&self, fault: &Fault, text: &mut String) {
        let mut add = |at: &str, action: &str, restart_after: &str| {
            let _ = write!(text, "\n[[fault]]\nat = '{at}'\ndo = '{action}'\n");
            if !restart_after.is_empty() {
                let _ = writeln!(text, "restart-after = '{restart_after}'");
            }
        };
        // How long after its beginning something ends, if it does: not all that lasts needs to.
        let end = |duration: u8| {
            let ends = self.all_is_healed || duration < 192;
            ends.then(|| pick(&[1, 100, 3_000, 30_000, 200_000], duration))
        };
        match *fault {
            Fault::Crash { ref when, process, machine, restart } => {
                let process = self.process(process);
                let restarts = ["", "1 ms", "100 ms", "2 s", "60 s", "never"];
                let restart = pick(&restarts[..if self.all_is_healed { 5 } else { 6 }], restart);
                add(&self.trigger(when), &crash(&process, machine), restart);
            }
            Fault::StayDown { at, process, machine, duration } => {
                let process = self.process(process);
                add(&time(at, 0), &crash(&process, machine), "never");
                if let Some(later) = end(duration) {
                    add(&time(at, later), &format!("start {process}"), "");
                }
            }
            Fault::OldDisk { at, process, old } => {
                let process = format!("task-manager-{}", 1 + process % self.task_managers());
                let dies = at.saturating_add(u16::from(old) * 4);
                add(&time(at, 0), &format!("snapshot disk of {process}"), "");
                add(&time(dies, 1), &crash(&process, true), "2 s");
                add(&time(dies, 1000), &format!("restore disk of {process}"), "");
            }
            Fault::Leadership { ref when, change, notice } => {
                let is_change = change && self.cluster.has_standby;
                let what = if is_change { "change leader" } else { "revoke leadership" };
                let notice = if notice { "" } else { " without notice" };
                add(&self.trigger(when), &format!("{what}{notice}"), "");
            }
            Fault::DiskOnce { at, purpose, operation, occurrence } => {
                let (purpose, operation) = (pick(&PURPOSES[..5], purpose), pick(&OPERATIONS, operation));
                add(&time(at, 0), &format!("disk fail {purpose} on {operation}#{}", 1 + occurrence % 4), "");
            }
            // Only logs have checksums.
            Fault::Corrupt { at, offset } => {
                add(&time(at, 0), &format!("disk corrupt job_event at {}", offset % 2048), "");
            }
            Fault::Message { kind, occurrence, what } => {
                add(&message(kind, occurrence), pick(&MESSAGE_FAULTS, what), "");
            }
            Fault::Reset { ref when, from, to } => {
                let (from, to) = self.ends(from, to);
                add(&self.trigger(when), &format!("reset {from} to {to}"), "");
            }
            Fault::Cancel { ref when } => add(&self.trigger(when), "cancel job", ""),
            Fault::Lasting { at, duration, ref what } => {
                let (begins, ends) = self.lasting(what);
                add(&time(at, 0), &begins, "");
                if let Some(later) = end(duration) {
                    add(&time(at, later), &ends, "");
                }
            }
        }
    }

    /// How it begins, and how it ends.
    fn lasting(&self, fault: &Lasting) -> (String, String) {
        match *fault {
            Lasting::Pause { process } => {
                let process = self.process(process);
                (format!("pause {process}"), format!("resume {process}"))
            }
            Lasting::Clock { process, what } => {
                let process = self.process(process);
                let begins = format!("clock of {process} {}", pick(&CLOCK_FAULTS, what));
                (begins, format!("heal clock of {process}"))
            }
            Lasting::Disk { what, purpose, of } => {
                // A job whose files cannot be listed when it begins fails.
                let purposes = &PURPOSES[..if self.all_is_healed { 5 } else { 6 }];
                let purpose = pick(purposes, purpose);
                let of =
                    of.checked_sub(128).map_or_else(String::new, |of| format!(" of {}", self.process(of)));
                let whats = [("fail", ""), ("full", ""), ("slow", " by 100 ms"), ("slow", " by 2 s")];
                let (what, by) = pick(&whats, what);
                (format!("disk {what} {purpose}{by}{of}"), format!("disk heal {purpose}{of}"))
            }
            Lasting::Link { from, to, what } => {
                let (from, to) = self.ends(from, to);
                let begins = match what % 4 {
                    0 => format!("partition {from} from {to}"),
                    1 | 2 => format!("cut {from} to {to}"),
                    _ => format!("slow {from} to {to} by 50 ms"),
                };
                (begins, format!("heal {from} from {to}"))
            }
            Lasting::Kind { kind } => {
                (format!("drop {}", pick(Message::KINDS, kind)), "heal network".to_owned())
            }
        }
    }

    /// Two that are not the same.
    fn ends(&self, from: u8, to: u8) -> (String, String) {
        let (from, to) = (self.process(from), self.process(to));
        let to = if from == to { "any".to_owned() } else { to };
        (from, to)
    }
}

fn crash(process: &str, machine: bool) -> String {
    format!("crash {}{process}", if machine { "machine of " } else { "" })
}

fn message(kind: u8, occurrence: u8) -> String {
    format!("message {}#{}", pick(Message::KINDS, kind), 1 + occurrence % 32)
}

fn pick<T: Copy>(all: &[T], which: u8) -> T {
    all[usize::from(which) % all.len()]
}

/// A time, most likely within the run of a job, and so many milliseconds.
fn time(at: u16, later: u64) -> String {
    let step = pick(&[50, 50, 250, 5000], (at >> 14) as u8);
    // Before that, not all processes have started.
    format!("t = {} us", 10_000 + u64::from(at & 0x3fff) * step + later * 1000)
}
