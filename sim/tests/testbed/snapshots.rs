//! What people read, word for word: the story of a recovery, the report of an exploration, and the
//! errors of scenario files. `INSTA_UPDATE=always cargo test` accepts a change.

use std::path::{Path, PathBuf};

use revenant::planted::PlantedBug;
use revenant_sim::dump::dump;
use revenant_sim::explore::{ExploreOptions, explore};
use revenant_sim::run::{RunOptions, run};
use revenant_sim::scenario::{Fault, Scenario};
use revenant_sim::story::story;

use super::program;

/// lineitem.toml with fewer tasks.
fn small_lineitem() -> Scenario {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/lineitem.toml");
    let mut scenario = Scenario::load(&file, &program()).unwrap_or_else(|error| panic!("{error}"));
    let arguments = &mut scenario.job.arguments.0;
    for (name, value) in
        [("splits", "2"), ("source-parallelism", "2"), ("map-parallelism", "2"), ("sort-parallelism", "1")]
    {
        arguments.insert(name.to_owned(), value.to_owned());
    }
    scenario.cluster.task_managers = 2;
    scenario
}

#[test]
fn the_story_of_a_crash_and_recovery() {
    let mut scenario = small_lineitem();
    let point = "job-manager/1:job_event.append#5.before".parse().expect("it is a crash point");
    scenario.faults.push(Fault::crash_at(point, false));
    let options = RunOptions { keep_messages: true, ..RunOptions::default() };
    let outcome = run(&scenario, &program(), &options);
    assert!(outcome.vacuous.is_empty());
    insta::assert_snapshot!(story(&outcome));
}

#[test]
fn the_job_event_log_of_a_crash_and_recovery() {
    let mut scenario = small_lineitem();
    let point = "job-manager/1:job_event.append#5.before".parse().expect("it is a crash point");
    scenario.faults.push(Fault::crash_at(point, false));
    insta::assert_snapshot!(dump(&run(&scenario, &program(), &RunOptions::default())));
}

/// The report without its speed, which differs from one exploration to the next.
fn explored(options: ExploreOptions) -> String {
    let options = ExploreOptions { file: PathBuf::from("scenarios/lineitem.toml"), ..options };
    let report = explore(&small_lineitem(), &program(), &options).expect("the job has a reference");
    let text = report.to_string();
    text.lines().filter(|line| !line.starts_with("speed")).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_report_of_an_exploration() {
    insta::assert_snapshot!(explored(ExploreOptions::default()));
}

#[test]
fn the_report_of_an_exploration_that_fails() {
    let bug = Some(PlantedBug::AcceptOlderAttempt);
    insta::assert_snapshot!(explored(ExploreOptions {
        bug,
        seeds: 2,
        limit: Some(40),
        ..ExploreOptions::default()
    }));
}

#[test]
fn the_errors_of_scenario_files() {
    let mut said = Vec::new();
    for more in [
        "[netwrk]\nlatency = '1 ms'",
        "[network]\nlatncy = '1 ms'",
        "[network]\nlatency = '5 parsecs'",
        "[network]\nlatency = '5 ms..1 ms'",
        "[cluster]\ntask-managers = 0",
        "[cluster]\nrestart-after = 'soon'",
        "[config]\n'heartbeat.intervall' = '1 s'",
        "[job.arguments]\nsplitts = 3",
        "[job.arguments]\nsplits = 0",
        "[[fault]]\nat = 'job-manager:master@1.0'\ndo = 'crash job-manager'",
        "[[fault]]\nat = 't = 1 s'\ndo = 'explode job-manager'",
        "[[fault]]\nat = 't = 1 s'\ndo = 'crash task-manager-4'",
        "[expect]\noutcome = 'finish'",
    ] {
        let text = format!("[job]\nname = 'lineitem-totals'\n{more}\n");
        let error = Scenario::parse("a.toml", &text)
            .and_then(|scenario| scenario.check_text("a.toml", &text, &program()))
            .expect_err(more);
        said.push(format!("{more}\n  {error}"));
    }
    insta::assert_snapshot!(said.join("\n\n"));
}
