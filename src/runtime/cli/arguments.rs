//! The command line.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::config::{Configuration, JobArguments};

/// Batch dataflow jobs that survive the death of their JobManager.
#[derive(Debug, Parser)]
#[command(name = "revenant", version)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a job on a cluster of processes on this machine, starting those again that die.
    ///
    /// What the job prints is shown when it has finished, and what it collects is counted.
    ///
    /// In a local cluster these options have other defaults, which --set overrides:
    /// execution.batch.job-recovery.enabled is true, restart-strategy.type is fixed-delay with 3
    /// attempts, and heartbeats, leases and retries are faster.
    Local(LocalArguments),
    /// Run the high-availability process of a cluster.
    HighAvailability(HighAvailabilityArguments),
    /// Run a JobManager: it contends for leadership and runs the job.
    JobManager(JobManagerArguments),
    /// Run a TaskManager.
    TaskManager(TaskManagerArguments),
    /// Run a shuffle service, which keeps the results of tasks outside the TaskManagers; needs
    /// --set shuffle.service=external, as all processes of its cluster do.
    ShuffleService(ShuffleServiceArguments),
    /// Cancel the job of a cluster: ends when the job has ended, with success if it was cancelled.
    Cancel(CancelArguments),
    /// List all configuration options.
    Options,
    /// List the jobs of this program, with their arguments.
    Jobs,
}

#[derive(Debug, Args)]
pub struct LocalArguments {
    #[command(flatten)]
    pub job: JobArgs,
    /// Number of TaskManager processes.
    #[arg(long, value_name = "N", default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=256))]
    pub task_managers: u32,
    /// Number of shuffle service processes; needs --set shuffle.service=external.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=256))]
    pub shuffle_services: u32,
    /// Directory for the job's output: new, or empty.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Directory that sources read from.
    #[arg(long, value_name = "DIR")]
    pub input: Option<PathBuf>,
    /// Directory for the cluster's working files, logs and pids: new, or empty; it is kept.
    /// Without it, a temporary directory is used and removed at the end.
    #[arg(long, value_name = "DIR")]
    pub storage: Option<PathBuf>,
    /// Keep the temporary directory.
    #[arg(long)]
    pub keep: bool,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct HighAvailabilityArguments {
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:6123")]
    pub listen: SocketAddr,
    /// Directory for the cluster's working files.
    #[arg(long, value_name = "DIR")]
    pub storage: PathBuf,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct JobManagerArguments {
    /// Number of this JobManager, from 1: no two of a cluster have the same. One leads, others stand by.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub id: u32,
    #[command(flatten)]
    pub job: JobArgs,
    #[command(flatten)]
    pub member: MemberArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct TaskManagerArguments {
    /// Number of this TaskManager, from 1: no two of a cluster have the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub id: u32,
    #[command(flatten)]
    pub member: MemberArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct ShuffleServiceArguments {
    /// Number of this shuffle service, from 1: no two of a cluster have the same.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub id: u32,
    #[command(flatten)]
    pub member: MemberArgs,
    #[command(flatten)]
    pub common: CommonArgs,
}

#[derive(Debug, Args)]
pub struct CancelArguments {
    /// Address of the high-availability process.
    #[arg(long, value_name = "ADDR")]
    pub ha: SocketAddr,
    /// Address to listen on, where the cluster can answer.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Seconds to wait for the high-availability process at the start.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub patience: u64,
    #[command(flatten)]
    pub common: CommonArgs,
}

/// What processes that join a cluster are told.
#[derive(Debug, Args)]
pub struct MemberArgs {
    /// Address of the high-availability process.
    #[arg(long, value_name = "ADDR")]
    pub ha: SocketAddr,
    /// Address to listen on.
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Directory for the cluster's working files; JobManagers of a cluster share it.
    #[arg(long, value_name = "DIR")]
    pub storage: PathBuf,
    /// Directory for the job's output; shared by the cluster.
    #[arg(long, value_name = "DIR")]
    pub out: PathBuf,
    /// Directory that sources read from; shared by the cluster.
    #[arg(long, value_name = "DIR")]
    pub input: Option<PathBuf>,
    /// Seconds to wait for the high-availability process at the start.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub patience: u64,
    /// End when the standard input ends.
    #[arg(long, hide = true)]
    pub attached: bool,
}

#[derive(Debug, Args)]
pub struct CommonArgs {
    /// Set a configuration option; `revenant options` lists them.
    #[arg(long = "set", value_name = "OPTION=VALUE")]
    pub set: Vec<String>,
    /// Record every event and its effects into this directory.
    #[arg(long, value_name = "DIR")]
    pub record: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub struct JobArgs {
    /// Name of the job; `revenant jobs` lists them.
    #[arg(value_name = "JOB")]
    pub name: String,
    /// Argument of the job.
    #[arg(long = "arg", value_name = "NAME=VALUE")]
    pub arguments: Vec<String>,
}

impl CommonArgs {
    pub fn apply(&self, config: &mut Configuration) -> Result<(), String> {
        let mut seen = BTreeSet::new();
        for setting in &self.set {
            let (key, value) = pair("--set", setting)?;
            if !seen.insert(key) {
                return Err(format!("option '{key}' is given twice"));
            }
            config.set(key, value).map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    /// Whether the option is among the settings.
    pub fn sets(&self, key: &str) -> bool {
        self.set.iter().any(|setting| pair("--set", setting).is_ok_and(|(set, _)| set == key))
    }
}

impl JobArgs {
    pub fn parse(&self) -> Result<JobArguments, String> {
        let mut arguments = BTreeMap::new();
        for argument in &self.arguments {
            let (name, value) = pair("--arg", argument)?;
            if arguments.insert(name.to_owned(), value.to_owned()).is_some() {
                return Err(format!("argument '{name}' of the job is given twice"));
            }
        }
        Ok(JobArguments { name: self.name.clone(), arguments: arguments.into_iter().collect() })
    }
}

fn pair<'a>(flag: &str, text: &'a str) -> Result<(&'a str, &'a str), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim(), value.trim())),
        _ => Err(format!("{flag} '{text}' is not of the form name=value")),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn job(arguments: &[&str]) -> Result<JobArguments, String> {
        let arguments = arguments.iter().map(ToString::to_string).collect();
        JobArgs { name: "job".to_owned(), arguments }.parse()
    }

    #[test]
    fn the_command_line_is_well_formed() {
        Cli::command().debug_assert();
    }

    #[test]
    fn job_arguments_are_sorted_and_need_a_name_each_once() {
        let sorted = vec![("a".to_owned(), "1".to_owned()), ("b".to_owned(), "x=y".to_owned())];
        assert_eq!(job(&["b=x=y", "a = 1"]).unwrap().arguments, sorted);
        assert!(job(&["a=1", "a=2"]).unwrap_err().contains("twice"));
        assert!(job(&["a"]).unwrap_err().contains("name=value"));
        assert!(job(&["=1"]).is_err());
    }

    #[test]
    fn settings_are_checked_and_given_once_each() {
        let common =
            |set: &[&str]| CommonArgs { set: set.iter().map(ToString::to_string).collect(), record: None };
        let mut config = Configuration::default();
        common(&["taskmanager.numberOfTaskSlots=3"]).apply(&mut config).unwrap();
        assert_eq!(config.task_slots, 3);
        let twice = common(&["taskmanager.numberOfTaskSlots=2", " taskmanager.numberOfTaskSlots =2"]);
        assert!(twice.apply(&mut config).unwrap_err().contains("given twice"));
        assert!(twice.sets("taskmanager.numberOfTaskSlots") && !twice.sets("heartbeat.interval"));
        assert!(common(&["taskmanager.numberOfTaskSlot=2"]).apply(&mut config).unwrap_err().contains("mean"));
    }
}
