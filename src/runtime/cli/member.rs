//! The commands that run one process of a cluster.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::actor::{Actor, Boot, ExitStatus};
use crate::api::Program;
use crate::client::Client;
use crate::config::{Configuration, ShuffleServiceKind};
use crate::high_availability::HighAvailability;
use crate::ids::{ActorId, ProcessId};
use crate::message::{CancelJob, TaskDeploymentDescriptor};

use super::super::directories::volumes;
use super::super::start::{boot, check_job};
use super::super::{Engine, ProcessOptions, RunningProcess, StartError};
use super::arguments::{
    CancelArguments, CommonArgs, HighAvailabilityArguments, JobManagerArguments, MemberArgs,
    ShuffleServiceArguments, TaskManagerArguments,
};
use super::signals::{HANGUP, interrupted};
use super::{End, print};

/// Whoever comes through here runs no tasks: the high-availability process and the client.
pub struct Service;

impl Engine for Service {
    fn actor_ids(&self, process: ProcessId) -> &'static [ActorId] {
        crate::process::actor_ids(process)
    }

    fn actor(&self, boot: &Boot, id: ActorId) -> Option<Box<dyn Actor>> {
        match id {
            ActorId::HighAvailability => Some(Box::new(HighAvailability::new(boot))),
            ActorId::Client => Some(Box::new(Client::new(boot, true))),
            _ => None,
        }
    }

    fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
        #[derive(Debug)]
        struct Nobody;
        impl Actor for Nobody {
            fn handle(
                &mut self,
                _now: crate::actor::Time,
                _event: crate::actor::Event,
                _out: &mut crate::actor::Outbox,
            ) {
            }
        }
        Box::new(Nobody)
    }
}

fn configuration(common: &CommonArgs) -> Result<Configuration, String> {
    let mut config = Configuration::default();
    common.apply(&mut config)?;
    Ok(config)
}

pub async fn high_availability(arguments: HighAvailabilityArguments) -> Result<End, String> {
    let process = ProcessId::HighAvailability;
    let config = configuration(&arguments.common)?;
    let options = ProcessOptions {
        boot: boot(process, config),
        engine: Arc::new(Service),
        volumes: volumes(process, &arguments.storage, None, None),
        listen: arguments.listen,
        high_availability: None,
        patience: Duration::ZERO,
        record: arguments.common.record,
        observer: None,
    };
    run(options, false).await
}

pub async fn job_manager(program: &Arc<Program>, arguments: JobManagerArguments) -> Result<End, String> {
    let mut config = configuration(&arguments.common)?;
    let job = arguments.job.parse()?;
    check_job(program, &config, &job)?;
    config.job = Some(job);
    join(program, ProcessId::JobManager(arguments.id), config, arguments.member, arguments.common).await
}

pub async fn task_manager(program: &Arc<Program>, arguments: TaskManagerArguments) -> Result<End, String> {
    let config = configuration(&arguments.common)?;
    let process = ProcessId::TaskManager(arguments.id);
    join(program, process, config, arguments.member, arguments.common).await
}

pub async fn shuffle_service(
    program: &Arc<Program>,
    arguments: ShuffleServiceArguments,
) -> Result<End, String> {
    let config = configuration(&arguments.common)?;
    if config.shuffle_service != ShuffleServiceKind::External {
        return Err(
            "a shuffle service needs --set shuffle.service=external, as all processes of its cluster \
                    do"
            .to_owned(),
        );
    }
    let process = ProcessId::ShuffleService(arguments.id);
    join(program, process, config, arguments.member, arguments.common).await
}

async fn join(
    program: &Arc<Program>,
    process: ProcessId,
    config: Configuration,
    member: MemberArgs,
    common: CommonArgs,
) -> Result<End, String> {
    let options = ProcessOptions {
        boot: boot(process, config),
        engine: Arc::new(Arc::clone(program)),
        volumes: volumes(process, &member.storage, Some(&member.out), member.input.as_deref()),
        listen: member.listen,
        high_availability: Some(member.ha),
        patience: Duration::from_secs(member.patience),
        record: common.record,
        observer: None,
    };
    run(options, member.attached).await
}

/// Runs a client that is told to cancel the job, until the job has ended.
pub async fn cancel(arguments: CancelArguments) -> Result<End, String> {
    let options = ProcessOptions {
        boot: boot(ProcessId::Client, configuration(&arguments.common)?),
        engine: Arc::new(Service),
        volumes: BTreeMap::new(),
        listen: arguments.listen,
        high_availability: Some(arguments.ha),
        patience: Duration::from_secs(arguments.patience),
        record: arguments.common.record,
        observer: None,
    };
    let ending = started(options, |client| client.tell(ActorId::Client, CancelJob {}));
    let end = tokio::select! {
        biased;
        number = interrupted() => return Ok(End::Interrupted(number)),
        end = ending => end?,
    };
    Ok(match end {
        Ok(ExitStatus::Canceled) => print(std::iter::once("the job was cancelled".to_owned())),
        Ok(ExitStatus::Success) => {
            End::Failed("the job had finished before it could be cancelled".to_owned())
        }
        Ok(end) => End::from(end),
        Err(end) => end,
    })
}

async fn run(options: ProcessOptions, attached: bool) -> Result<End, String> {
    let name = options.boot.process;
    let ending = async {
        let listens = |process: &RunningProcess| tracing::info!("{name} listens on {}", process.endpoint());
        Ok(started(options, listens).await?.map_or_else(|end| end, End::from))
    };
    tokio::select! {
        biased;
        number = interrupted() => Ok(End::Interrupted(number)),
        () = orphaned(attached) => Ok(End::Interrupted(HANGUP)),
        end = ending => end,
    }
}

/// Starts a process, and waits for its end. The inner error is an end before the beginning.
async fn started(
    options: ProcessOptions,
    then: impl FnOnce(&RunningProcess),
) -> Result<Result<ExitStatus, End>, String> {
    let process = match RunningProcess::start(options).await {
        Ok(process) => process,
        Err(error @ StartError::Occupied(_)) => return Ok(Err(End::Failed(error.to_string()))),
        Err(error) => return Err(error.to_string()),
    };
    then(&process);
    let end = process.ended().await;
    process.shut_down().await;
    Ok(Ok(end))
}

/// Waits until whoever started this process is gone.
async fn orphaned(attached: bool) {
    if !attached {
        std::future::pending::<()>().await;
    }
    let (tell, gone) = tokio::sync::oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        let _ = tell.send(());
    });
    let _ = gone.await;
}
