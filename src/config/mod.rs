//! Configuration: every option of the engine, typed, under the FLIPs' and Flink's names.
//!
//! Options come as text (a scenario's `[config]`, the command line) and are checked when they are
//! set: an unknown key, a wrong unit or a value out of range is an error that says what is right.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::disk::Volume;
use crate::planted::PlantedBug;

mod value;
use value::OptionValue;
pub use value::{Attempts, Decimal, MemorySize, RestartStrategy, ShuffleServiceKind, parse_duration};

/// The highest parallelism of an operator, as in Flink.
pub const MAX_PARALLELISM: u32 = 32_768;

/// What is wrong with an option, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    #[error("unknown option '{key}'{suggestion}; `revenant options` lists all")]
    UnknownKey { key: String, suggestion: String },
    #[error("option '{key}': '{value}' is not {expected}, for example '{example}'")]
    BadValue { key: String, value: String, expected: String, example: String },
}

/// One option, for tables and messages.
#[derive(Clone, Copy, Debug)]
pub struct OptionInfo {
    pub key: &'static str,
    pub default: &'static str,
    /// What values it takes.
    pub expected: &'static str,
    pub doc: &'static str,
}

macro_rules! options {
    ($($(#[doc = $doc:literal])+ $field:ident : $type:ty [$expected:literal, $check:expr] = $key:literal, $default:literal;)*) => {
        /// All options with their values, and the job that the process is told to run.
        #[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        pub struct Configuration {
            $($(#[doc = $doc])+ pub $field: $type,)*
            /// The job to run, for JobManager and client.
            pub job: Option<JobArguments>,
            /// Only in builds with planted bugs.
            pub planted_bug: Option<PlantedBug>,
        }

        impl Default for Configuration {
            fn default() -> Self {
                Self {
                    $($field: <$type as OptionValue>::parse($default).expect("default of an option"),)*
                    job: None,
                    planted_bug: None,
                }
            }
        }

        impl Configuration {
            /// Every option, in the order of the documentation.
            pub const OPTIONS: &'static [OptionInfo] = &[
                $(OptionInfo { key: $key, default: $default, expected: $expected, doc: concat!($($doc),+) },)*
            ];

            /// Sets the option `key` from its text.
            pub fn set(&mut self, key: &str, value: &str) -> Result<(), ConfigError> {
                match canonical(key) {
                    $($key => {
                        let check: fn(&$type) -> bool = $check;
                        self.$field = <$type as OptionValue>::parse(value).filter(check).ok_or_else(|| {
                            ConfigError::BadValue {
                                key: key.to_owned(),
                                value: value.to_owned(),
                                expected: $expected.to_owned(),
                                example: $default.to_owned(),
                            }
                        })?;
                    })*
                    _ => return Err(unknown(key)),
                }
                Ok(())
            }
        }
    };
}

options! {
    /// Whether a batch job recovers its progress after the JobManager failed (FLIP-383).
    job_recovery_enabled: bool ["true or false", |_| true]
        = "execution.batch.job-recovery.enabled", "false";
    /// How long a new leader waits for the partitions of earlier workers (FLIP-383).
    previous_worker_recovery_timeout: Duration ["a duration", |_| true]
        = "execution.batch.job-recovery.previous-worker.recovery.timeout", "30 s";
    /// The least time between two snapshots of the sources' coordinators (FLIP-383). A finish that no
    /// snapshot covers is taken back by recovery.
    snapshot_min_pause: Duration ["a duration", |_| true]
        = "execution.batch.job-recovery.operator-coordinator-snapshot.min-pause", "3 min";
    /// Bytes of job events held back before they are flushed (FLIP-383).
    write_buffer_size: MemorySize ["a memory size from 1 b", |v| v.0 > 0]
        = "job-event.store.write-buffer.size", "1 mb";
    /// The longest that a job event stays in the write buffer (FLIP-383).
    flush_interval: Duration ["a duration", |_| true]
        = "job-event.store.write-buffer.flush-interval", "1 s";
    /// The volume that holds the job event log: `ha` outlives the JobManager's machine, `local` is its own disk.
    job_event_volume: Volume ["ha or local", |v| matches!(v, Volume::Ha | Volume::Local)]
        = "job-event.store.volume", "ha";
    /// How long a TaskManager keeps a job's partitions without a JobManager (FLIP-383).
    registration_timeout: Duration ["a duration", |_| true]
        = "taskmanager.registration.timeout", "5 min";
    /// Where finished partitions are kept: in the TaskManagers, or in shuffle services that outlive them.
    shuffle_service: ShuffleServiceKind ["task-manager or external", |_| true]
        = "shuffle.service", "task-manager";
    /// How batch jobs are scheduled: job recovery works with AdaptiveBatch only, as there is no other.
    scheduler: String ["a name of a scheduler", |v| is_name(v)]
        = "jobmanager.scheduler", "AdaptiveBatch";
    /// How records travel between tasks: every exchange is blocking, as there is no other.
    batch_shuffle_mode: String ["a name of a shuffle mode", |v| is_name(v)]
        = "execution.batch-shuffle-mode", "ALL_EXCHANGES_BLOCKING";
    /// Tasks that a TaskManager runs at the same time.
    task_slots: u32 ["a whole number from 1 to 1000", |v| (1..=1000).contains(v)]
        = "taskmanager.numberOfTaskSlots", "1";
    /// Size of a buffer in bytes: what a task writes and sends in one piece.
    segment_size: MemorySize ["a memory size from 64 b to 16 mb", |v| (64..=16 << 20).contains(&v.0)]
        = "taskmanager.memory.segment-size", "32 kb";
    /// Buffers that a reader lets each sender have under way.
    buffers_per_gate: u32 ["a whole number from 1 to 10000", |v| (1..=10_000).contains(v)]
        = "taskmanager.network.memory.floating-buffers-per-gate", "8";
    /// Pause between heartbeats of JobManager and TaskManagers.
    heartbeat_interval: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "heartbeat.interval", "10 s";
    /// Silence after which the other side counts as lost.
    heartbeat_timeout: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "heartbeat.timeout", "50 s";
    /// Pause before a registration or a contention for leadership is repeated.
    registration_retry: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "cluster.registration.error-delay", "10 s";
    /// Silence after which a leader loses its leadership.
    session_timeout: Duration ["a duration from 3 ms", |v| v.as_millis() > 2]
        = "high-availability.session-timeout", "60 s";
    /// Directory of this cluster on the HA volume.
    cluster_id: String ["a name of letters, digits, '-' and '_'", |v| is_name(v)]
        = "high-availability.cluster-id", "default";
    /// Lower bound of a decided parallelism.
    min_parallelism: u32 ["a whole number from 1 to 32768", |v| (1..=MAX_PARALLELISM).contains(v)]
        = "execution.batch.adaptive.auto-parallelism.min-parallelism", "1";
    /// Upper bound of a decided parallelism.
    max_parallelism: u32 ["a whole number from 1 to 32768", |v| (1..=MAX_PARALLELISM).contains(v)]
        = "execution.batch.adaptive.auto-parallelism.max-parallelism", "128";
    /// Bytes that one subtask should read, by which parallelism is decided.
    avg_data_volume_per_task: MemorySize ["a memory size from 1 b", |v| v.0 > 0]
        = "execution.batch.adaptive.auto-parallelism.avg-data-volume-per-task", "16 mb";
    /// Parallelism of sources that say none; at most the number of splits. 0: the maximum parallelism.
    default_source_parallelism: u32 ["a whole number from 0 to 32768", |v| *v <= MAX_PARALLELISM]
        = "execution.batch.adaptive.auto-parallelism.default-source-parallelism", "0";
    /// Memory in which a sort of a full-window partition works; what is more goes to disk.
    sort_partition_memory: MemorySize ["a memory size from 64 b to 2 gb", |v| (64..=2 << 30).contains(&v.0)]
        = "execution.sort-partition.memory", "128 mb";
    /// Memory in which the records of a subtask are brought together by key, and sorted if the job asks for
    /// that; what is more goes to disk.
    sort_keyed_partition_memory: MemorySize ["a memory size from 64 b to 2 gb", |v| (64..=2 << 30).contains(&v.0)]
        = "execution.sort-keyed-partition.memory", "128 mb";
    /// What happens when a task fails: `none` fails the job, the others run it again.
    restart_strategy: RestartStrategy ["none, fixed-delay, failure-rate or exponential-delay", |_| true]
        = "restart-strategy.type", "none";
    /// Restarts before the job fails, with `fixed-delay`.
    restart_attempts: u32 ["a whole number", |_| true]
        = "restart-strategy.fixed-delay.attempts", "1";
    /// Pause before a restart, with `fixed-delay`.
    restart_delay: Duration ["a duration", |_| true]
        = "restart-strategy.fixed-delay.delay", "1 s";
    /// Failures within the interval that a job survives, with `failure-rate`.
    failure_rate_max: u32 ["a whole number from 1", |v| *v > 0]
        = "restart-strategy.failure-rate.max-failures-per-interval", "1";
    /// The interval over which failures are counted, with `failure-rate`.
    failure_rate_interval: Duration ["a duration from 1 ns", |v| !v.is_zero()]
        = "restart-strategy.failure-rate.failure-rate-interval", "1 min";
    /// Pause before a restart, with `failure-rate`.
    failure_rate_delay: Duration ["a duration", |_| true]
        = "restart-strategy.failure-rate.delay", "1 s";
    /// Pause before the first restart, with `exponential-delay`.
    exponential_initial: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "restart-strategy.exponential-delay.initial-backoff", "1 s";
    /// The longest pause before a restart, with `exponential-delay`.
    exponential_max: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "restart-strategy.exponential-delay.max-backoff", "1 min";
    /// By what the pause grows from restart to restart, with `exponential-delay`.
    exponential_multiplier: Decimal ["a number above 1, up to 1000", |v| v.value() > 1.0 && v.value() <= 1000.0]
        = "restart-strategy.exponential-delay.backoff-multiplier", "1.5";
    /// After so long without a failure the pause is the first one again and restarts are counted from
    /// none, with `exponential-delay`.
    exponential_reset: Duration ["a duration from 1 ms", |v| v.as_millis() > 0]
        = "restart-strategy.exponential-delay.reset-backoff-threshold", "1 h";
    /// The pause varies by up to this part of itself, with `exponential-delay`.
    exponential_jitter: Decimal ["a number from 0 to 1", |v| (0.0..=1.0).contains(&v.value())]
        = "restart-strategy.exponential-delay.jitter-factor", "0.1";
    /// Restarts without a reset of the pause before the job fails, with `exponential-delay`.
    exponential_attempts: Attempts ["infinite or a whole number from 1", |v| *v != Attempts::AtMost(0)]
        = "restart-strategy.exponential-delay.attempts-before-reset-backoff", "infinite";
}

/// A job by its name in the registry, with the arguments of its function.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct JobArguments {
    pub name: String,
    /// Sorted by name.
    pub arguments: Vec<(String, String)>,
}

impl JobArguments {
    /// The job of this name, without arguments.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), arguments: Vec::new() }
    }

    /// With one more argument.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl fmt::Display) -> Self {
        self.arguments.push((name.to_owned(), value.to_string()));
        self.arguments.sort();
        self
    }
}

impl From<&str> for JobArguments {
    fn from(name: &str) -> Self {
        Self::new(name)
    }
}

/// Names that other versions of Flink give to an option, with the name that it has here.
const SYNONYMS: [(&str, &str); 1] = [(
    "execution.batch.job-recovery.snapshot.min-pause",
    "execution.batch.job-recovery.operator-coordinator-snapshot.min-pause",
)];

fn canonical(key: &str) -> &str {
    SYNONYMS.iter().find(|(synonym, _)| *synonym == key).map_or(key, |(_, name)| name)
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}

fn unknown(key: &str) -> ConfigError {
    let nearest = nearest(key, Configuration::OPTIONS.iter().map(|option| option.key));
    let suggestion = nearest.map_or_else(String::new, |near| format!(", did you mean '{near}'?"));
    ConfigError::UnknownKey { key: key.to_owned(), suggestion }
}

/// The candidate that is spelled most like `word`, if one is near enough to be meant.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    candidates
        .into_iter()
        .map(|candidate| (edit_distance(word, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(word.len()) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

fn edit_distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, &to) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(from != to);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row[b.len()]
}

impl fmt::Display for OptionInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} = {} ({}):{}", self.key, self.default, self.expected, self.doc)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_is_accepted_by_its_own_check() {
        let mut config = Configuration::default();
        for option in Configuration::OPTIONS {
            config.set(option.key, option.default).unwrap();
        }
        assert_eq!(config, Configuration::default());
    }

    #[test]
    fn the_highest_parallelism_is_the_one_that_its_options_name() {
        let max = MAX_PARALLELISM.to_string();
        let mut options =
            Configuration::OPTIONS.iter().filter(|option| option.key.ends_with("-parallelism")).peekable();
        assert!(options.peek().is_some());
        for option in options {
            assert!(option.expected.ends_with(&format!(" to {max}")), "{option}");
            let mut config = Configuration::default();
            config.set(option.key, &max).unwrap();
            assert!(config.set(option.key, &(MAX_PARALLELISM + 1).to_string()).is_err());
        }
    }

    #[test]
    fn the_name_of_flink_1_20_for_the_min_pause_is_accepted_too() {
        let mut config = Configuration::default();
        config.set("execution.batch.job-recovery.snapshot.min-pause", "7 s").unwrap();
        assert_eq!(config.snapshot_min_pause, Duration::from_secs(7));
    }

    #[test]
    fn arguments_of_a_job_are_sorted_in_whatever_order_they_are_given() {
        let job = JobArguments::new("job").with("to", 7).with("from", "x");
        assert_eq!(job.arguments, [("from", "x"), ("to", "7")].map(|(n, v)| (n.to_owned(), v.to_owned())));
    }

    #[test]
    fn a_misspelt_key_is_refused_with_the_right_one() {
        let error = Configuration::default().set("heartbeat.intervall", "1 s").unwrap_err();
        assert!(error.to_string().contains("did you mean 'heartbeat.interval'?"), "{error}");
    }

    #[test]
    fn a_value_of_the_wrong_unit_or_range_is_refused_with_an_example() {
        let mut config = Configuration::default();
        let error = config.set("heartbeat.interval", "10 parsecs").unwrap_err();
        assert!(
            error.to_string().contains("'10 parsecs' is not a duration from 1 ms, for example '10 s'"),
            "{error}"
        );
        assert!(config.set("taskmanager.numberOfTaskSlots", "0").is_err());
        assert!(config.set("job-event.store.write-buffer.size", "-1 kb").is_err());
        assert!(config.set("job-event.store.volume", "output").is_err());
        assert_eq!(config, Configuration::default());
    }
}
