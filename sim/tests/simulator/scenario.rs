//! Scenario files: what is wrong is said with its line and what would be right.

use revenant_sim::scenario::Scenario;

use crate::toy::{program, scenario};

/// The error of a scenario that differs from a right one in its last lines.
fn error(more: &str) -> String {
    let text = format!("[job]\nname = 'toy'\n{more}");
    match Scenario::parse("a.toml", &text) {
        Ok(scenario) => scenario.check_text("a.toml", &text, &program()).unwrap_err().to_string(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn every_kind_of_error_names_its_line_and_what_is_right() {
    for (more, line, expected) in [
        ("[netwrk]\nlatency = '1 ms'\n", 3, "did you mean 'network'?"),
        ("[network]\nlatncy = '1 ms'\n", 4, "did you mean 'latency'?"),
        ("[network]\nlatency = '5 parsecs'\n", 4, "for example '250 ms'"),
        ("[network]\nlatency = '5 ms..1 ms'\n", 4, "the shorter duration comes first"),
        ("[network]\nin-flight-at-crash = 'gone'\n", 4, "expected `delivered` or `lost`"),
        ("[cluster]\ntask-managers = 0\n", 4, "is not from 1 to 1000"),
        ("[cluster]\ntask-managers = 1001\n", 4, "is not from 1 to 1000"),
        ("[cluster]\nrestart-after = 'soon'\n", 4, "or 'never'"),
        ("[config]\n'heartbeat.intervall' = '1 s'\n", 4, "did you mean 'heartbeat.interval'?"),
        ("[config]\n'heartbeat.interval' = '1 parsec'\n", 4, "is not a duration from 1 ms"),
        ("[disk]\nincomplete-at-crash = 'not-doen'\n", 4, "did you mean 'not-done'?"),
        ("[[fault]]\nat = 'noon'\ndo = 'crash job-manager'\n", 4, "'t = 12.5s'"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'explode job-manager'\n", 5, "expected one of 'crash <process>'"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'crash task-manager-4'\n", 5, "there is no process task-manager-4"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'cancel job'\nrestart-after = '1 s'\n",
            5,
            "nothing starts again after 'cancel job'",
        ),
        ("[[fault]]\nat = 't = 0 s'\ndo = 'cancel job'\n", 4, "client has not started yet"),
        ("[config]\n'jobmanager.scheduler' = 'Default'\n", 4, "set it to AdaptiveBatch"),
        (
            "[config]\n'taskmanager.registration.timeout' = '0 s'\n'execution.batch.job-recovery.enabled' = true\n",
            5,
            "taskmanager.registration.timeout is 0",
        ),
        (
            "[[fault]]\nat = 'crash of task-manager-4/1'\ndo = 'crash client'\n",
            4,
            "task-manager-1 to task-manager-3",
        ),
        ("[[fault]]\nat = 't = 2 h'\ndo = 'crash client'\n", 4, "the run ends after time-limit = '20 min'"),
        ("[[fault]]\ndo = 'crash client'\n", 3, "missing field `at`"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'resume client'\n", 5, "no effect without a fault 'pause client'"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'restore disk of job-manager'\n",
            5,
            "no effect without a fault 'snapshot disk of job-manager'",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'snapshot disk of client'\n", 5, "no disk of its own"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'start job-manager'\n", 5, "with restart-after = 'never' before"),
        (
            "[[fault]]\nat = 'client/1:client@1.0'\ndo = 'resume client'\n\
             [[fault]]\nat = 't = 1 s'\ndo = 'pause client'\n",
            4,
            "client passes no point while it is down or stands still",
        ),
        ("[[fault]]\nat = 't = 0 s'\ndo = 'pause client'\n", 4, "client has not started yet"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'heal clock of client'\n", 5, "the clock of client is never wrong"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'clock of client jump 1 s'\n", 5, "'+5 s' or '-250 ms'"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'disk heal sink'\n",
            5,
            "no fault breaks what 'disk heal sink' heals",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'disk heal sink'\n[[fault]]\nat = 't = 1 s'\ndo = 'disk fail sink of client'\n",
            5,
            "no fault breaks",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'disk fail sink on write#1'\n", 5, "there is no operation 'write'"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'disk fail sink of task-manager-9'\n",
            5,
            "there is no process task-manager-9",
        ),
        (
            "[cluster]\njob-managers = 2\n[config]\n'job-event.store.volume' = 'local'\n",
            6,
            "a standby cannot read the log on another machine's disk",
        ),
        ("[cluster]\njob-managers = 0\n", 4, "is not from 1 to 9"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'crash job-manager-2'\n",
            5,
            "set job-managers in [cluster], which is 1",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'change leader'\n", 5, "nobody stands by: set job-managers = 2"),
        ("[disk]\nshared-volumes-on = 'ha'\n", 4, "unknown process 'ha'"),
        ("[clock.jobmanager]\nskew = '+1 s'\n", 3, "unknown process 'jobmanager'"),
        ("[clock.task-manager-7]\nskew = '+1 s'\n", 3, "there is no process task-manager-7"),
        ("[clock.client]\nskw = '+1 s'\n", 4, "did you mean 'skew'?"),
        ("[clock.client]\ndrift = '1 ppm'\n", 4, "for example '+100 ppm'"),
        ("[input]\npath = 'a'\ntext = ''\n", 3, "write [[fault]] or [[input]]"),
        ("[[input]]\npath = 'a'\ntxt = ''\n", 5, "did you mean 'text'?"),
        ("[[input]]\npath = 'a'\n", 3, "missing field `text`"),
        ("[[input]]\npath = 'a'\ntext = ''\nrepeat = -1\n", 6, "expected u32"),
        (
            "[[input]]\npath = 'b'\ntext = ''\n[[input]]\npath = '../a'\ntext = ''\n",
            7,
            "has an empty part, '.' or '..'",
        ),
        ("[[input]]\npath = 'a'\ntext = ''\n[[input]]\npath = 'a/b'\ntext = ''\n", 7, "cannot both be files"),
        ("[[input]]\npath = 'a'\ntext = 'abc'\nrepeat = 4000000000\n", 4, "at most 16777216 are right"),
        ("[expect]\noutcome = 'finish'\n", 4, "did you mean 'finished'?"),
        ("[config]\n'shuffle.service' = 'external'\n", 4, "set shuffle-services in [cluster]"),
        ("[cluster]\nshuffle-services = 2\n", 4, "set \"shuffle.service\" = 'external' in [config]"),
        (
            "[cluster]\nshuffle-services = 1001\n[config]\n'shuffle.service' = 'external'\n",
            4,
            "is not from 0 to 1000",
        ),
        (
            "[cluster]\nshuffle-services = 2\n[config]\n'shuffle.service' = 'external'\n\
             [[fault]]\nat = 't = 1 s'\ndo = 'crash shuffle-service-3'\n",
            9,
            "and shuffle-service-1 to shuffle-service-2",
        ),
        ("[schedule]\nseed = -1\n", 4, "expected u64"),
        ("[job.arguments]\nsplits = [1]\n", 4, "expected a text, a number or true or false"),
        ("[config]\nheartbeat.interval = '1 s'\n", 4, "put the key in quotes"),
        ("[fault]\nat = 't = 1 s'\ndo = 'crash client'\n", 3, "write [[fault]]"),
        ("[[fault]]\nat = 'crash of client/1'\ndo = 'crash client'\n", 4, "this can never happen"),
        ("[[fault]]\nat = 't = 0 s'\ndo = 'crash client'\n", 4, "this can never happen"),
        (
            "[[fault]]\nat = 'client/1:master@1.0'\ndo = 'crash client'\n",
            4,
            "client has no actor master: it has client",
        ),
        (
            "[config]\n'execution.batch.adaptive.auto-parallelism.min-parallelism' = 9\n\
             'execution.batch.adaptive.auto-parallelism.max-parallelism' = 8\n",
            4,
            "min-parallelism 9 is above max-parallelism 8",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'disk burn job_event'\n", 5, "a disk cannot 'burn'"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'disk fail log'\n", 5, "expected one of job_event"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'disk fail sink'\nrestart-after = '1 s'\n",
            5,
            "restart-after is for crashes",
        ),
        ("[network]\ndrop-rate = 1.5\n", 4, "from 0 (never) to 1 (always)"),
        ("[network]\ndrop-rat = 0.5\n", 4, "did you mean 'drop-rate'?"),
        ("[network]\nrates-until = '1 s'\n", 4, "rates-until ends nothing"),
        ("[network]\ndelay-by = '1 s'\novertake-rate = 0.5\n", 4, "delay-by has no effect: set delay-rate"),
        ("[network]\ndrop-rate = 0.5\nrates-until = '2 h'\n", 5, "the run ends after time-limit = '20 min'"),
        (
            "[[fault]]\nat = 'message SubmitTsk#1'\ndo = 'drop'\n",
            4,
            "there is no message 'SubmitTsk', did you mean 'SubmitTask'?",
        ),
        ("[[fault]]\nat = 'message SubmitTask'\ndo = 'drop'\n", 4, "has no '#<number>'"),
        (
            "[[fault]]\nat = 'message SubmitTask#1 from client to client'\ndo = 'drop'\n",
            4,
            "only messages between two processes",
        ),
        (
            "[[fault]]\nat = 'message SubmitTask#1 to task-manager-4'\ndo = 'drop'\n",
            4,
            "there is no process task-manager-4",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'drop'\n", 5, "'drop' befalls one message: write at = 'message"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'overtake by 5 s'\n", 5, "write at = 'message SubmitTask#1"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'partition client'\n",
            5,
            "expected 'partition <process> from <other>'",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'cut client to client'\n", 5, "client and client are one process"),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'cut client to task-manager-9'\n", 5, "there is no process"),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'drop SubmitTsk from any to client'\n",
            5,
            "did you mean 'SubmitTask'?",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'heal network'\n",
            5,
            "nothing is broken that 'heal network' could heal",
        ),
        (
            "[[fault]]\nat = 'job-manager/1:SubmitTaks#1.before'\ndo = 'crash job-manager'\n",
            4,
            "there is no effect 'SubmitTaks', did you mean 'SubmitTask'?",
        ),
        (
            "[[fault]]\nat = 'job-manager/1:job_event.fsync#1.before'\ndo = 'crash job-manager'\n",
            4,
            "did you mean 'job_event.sync'?",
        ),
        (
            "[[fault]]\nat = 'job-manager/1:quite-other-things#1.after'\ndo = 'crash job-manager'\n",
            4,
            "expected a message as 'SubmitTask'",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'clock of client jump +0 s'\n",
            5,
            "changes nothing: write how much",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'clock of client drift -0 ppm'\n",
            5,
            "changes nothing: write how much",
        ),
        ("[[fault]]\nat = 't = 1 s'\ndo = 'disk slow sink by 0 s'\n", 5, "changes nothing: write how much"),
        (
            "[[fault]]\nat = 'message SubmitTask#1'\ndo = 'delay by 0 s'\n",
            5,
            "changes nothing: write how much",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'heal clock of client'\n[[fault]]\nat = 't = 2 s'\ndo = 'clock of client jump +5 s'\n",
            5,
            "comes before what it undoes, 'clock of client jump +5 s'",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'disk heal sink'\n[[fault]]\nat = 't = 2 s'\ndo = 'disk fail sink'\n",
            5,
            "comes before what it undoes, 'disk fail sink'",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'resume client'\n[[fault]]\nat = 't = 2 s'\ndo = 'pause client'\n",
            5,
            "comes before what it undoes, 'pause client'",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'restore disk of task-manager-1'\n[[fault]]\nat = 't = 2 s'\ndo = 'snapshot disk of task-manager-1'\n",
            5,
            "comes before what it undoes",
        ),
        (
            "[[fault]]\nat = 't = 2 s'\ndo = 'cut client to job-manager'\n\
             [[fault]]\nat = 't = 1 s'\ndo = 'heal job-manager from client'\n",
            8,
            "no earlier fault partition, cut, slow or drop of a kind stands between the two",
        ),
        (
            "[[fault]]\nat = 'message SubmitTask#1 from job-manager'\ndo = 'resume job-manager'\n\
             [[fault]]\nat = 't = 1 s'\ndo = 'pause job-manager'\n",
            4,
            "job-manager passes no point while it is down or stands still",
        ),
        (
            "[[fault]]\nat = 't = 1 s'\ndo = 'cut client to job-manager'\nrestart-after = '1 s'\n",
            5,
            "nothing starts again after 'cut client to job-manager'",
        ),
        ("x = = 1", 3, "a.toml:3"),
    ] {
        let error = error(more);
        assert!(error.starts_with(&format!("a.toml:{line}: ")), "{more}: {error}");
        assert!(error.contains(expected), "{more}: {error}");
    }
}

#[test]
fn a_job_that_does_not_exist_is_an_error_of_its_line() {
    let text = "\n[job]\nname = 'toys'\n";
    let scenario = Scenario::parse("a.toml", text).unwrap();
    let error = scenario.check_text("a.toml", text, &program()).unwrap_err().to_string();
    assert_eq!(error, "a.toml:3: there is no job 'toys', did you mean 'toy'?; this program has: toy");
}

#[test]
fn a_file_that_cannot_be_read_is_an_error_without_a_line() {
    let error = Scenario::load("no/such.toml".as_ref(), &program()).unwrap_err();
    assert!(error.to_string().starts_with("no/such.toml: cannot be read"), "{error}");
}

#[test]
fn a_scenario_survives_being_written_and_read() {
    let scenario = scenario(
        "[job.arguments]\nmode = 'none'\nrounds = 6\n\
         [cluster]\ntask-managers = 5\nrestart-after = 'never'\n\
         [config]\n'execution.batch.job-recovery.enabled' = true\n\
         [network]\nlatency = '1 ms..20 ms'\nin-flight-at-crash = 'lost'\n\
         drop-rate = 0.015\ndelay-rate = 1\ndelay-by = '5 ms..1 s'\nrates-until = '1 s'\n\
         [[fault]]\nat = 'message SubmitTask#3 from job-manager'\ndo = 'overtake by 5 s'\n\
         [[fault]]\nat = 't = 1 s'\ndo = 'partition any from task-manager-1'\n\
         [[input]]\npath = 'in/a'\ntext = 'one line'\n\
         [[input]]\npath = 'in/b'\ntext = ''\nrepeat = 3\n\
         [[fault]]\nat = 'job-manager/1:master@3.0'\ndo = 'crash job-manager'\nrestart-after = 'never'\n\
         [[fault]]\nat = 't = 1.5 s'\ndo = 'crash machine of task-manager-5'\n\
         [[fault]]\nat = 't = 0 s'\ndo = 'disk slow job_event by 1 min'\n\
         [[fault]]\nat = 'crash of job-manager/1'\ndo = 'disk corrupt job_event at 120'\n",
    );
    let text = scenario.to_toml();
    assert_eq!(Scenario::parse("again", &text).unwrap_or_else(|error| panic!("{error}\n{text}")), scenario);
    assert_eq!(scenario.job().arguments[1], ("rounds".to_owned(), "6".to_owned()));
    assert!(scenario.configuration().job_recovery_enabled);
}

#[test]
fn every_scenario_of_the_project_can_be_read_and_recovers_its_job() {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios");
    let mut read = 0;
    for directory in [directory.to_owned(), format!("{directory}/regressions")] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            let text = std::fs::read_to_string(&path).unwrap();
            let scenario = Scenario::parse(&path.display().to_string(), &text);
            let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
            assert!(scenario.configuration().job_recovery_enabled, "{}", path.display());
            read += 1;
        }
    }
    assert!(read >= 8);
}
