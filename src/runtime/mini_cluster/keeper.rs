//! Keeps one process of a cluster in this operating-system process running. One that ends in an
//! orderly way is left alone; one that fails is started again as a new session, a few times.

use std::time::Duration;

use tokio::sync::watch;

use crate::actor::{Boot, ExitStatus};
use crate::ids::ProcessId;

use super::super::start::fresh_session;
use super::super::{ProcessOptions, RunningProcess, StartError};

/// A process that fails more often is not started again.
pub const RESTARTS_MAX: u32 = 5;
const RESTART_PAUSE: Duration = Duration::from_millis(50);

#[derive(Debug, thiserror::Error)]
pub enum KeeperError {
    #[error("cannot start {process}: {error}")]
    Start { process: ProcessId, error: StartError },
    #[error("{process} ended {times} times, at last with: {reason}")]
    KeepsFailing { process: ProcessId, times: u32, reason: String },
}

/// Runs the process until it ends in order or `stop` becomes true; gives how often it was started
/// again.
pub async fn keep(
    options: ProcessOptions,
    mut stop: watch::Receiver<bool>,
) -> Result<(ProcessId, u32), KeeperError> {
    let process = options.boot.process;
    let mut restarts = 0;
    loop {
        let boot = Boot { session: fresh_session(), ..options.boot.clone() };
        let incarnation = RunningProcess::start(ProcessOptions { boot, ..options.clone() })
            .await
            .map_err(|error| KeeperError::Start { process, error })?;
        let told = async { drop(stop.wait_for(|stop| *stop).await) };
        let end = tokio::select! {
            biased;
            () = told => None,
            end = incarnation.ended() => Some(end),
        };
        incarnation.shut_down().await;
        let Some(ExitStatus::Failure(reason)) = end else { return Ok((process, restarts)) };
        if restarts == RESTARTS_MAX {
            return Err(KeeperError::KeepsFailing { process, times: restarts + 1, reason });
        }
        tracing::warn!("{process} ended and is started again: {reason}");
        restarts += 1;
        tokio::time::sleep(RESTART_PAUSE).await;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;
    use crate::actor::{Actor, Event, Outbox, Time};
    use crate::config::Configuration;
    use crate::ids::ActorId;
    use crate::message::TaskDeploymentDescriptor;
    use crate::runtime::Engine;
    use crate::runtime::start::boot;

    /// Its process fails so many times, and then ends in order.
    struct Failing {
        failures: u32,
        started: Arc<AtomicU32>,
    }

    impl Engine for Failing {
        fn actor_ids(&self, _process: ProcessId) -> &'static [ActorId] {
            &[ActorId::Master]
        }

        fn actor(&self, _boot: &Boot, _id: ActorId) -> Option<Box<dyn Actor>> {
            let started = self.started.fetch_add(1, Ordering::SeqCst);
            Some(Box::new(Ending((started >= self.failures).then_some(()).ok_or("no luck"))))
        }

        fn task(&self, _boot: &Boot, _task: TaskDeploymentDescriptor) -> Box<dyn Actor> {
            Box::new(Ending(Ok(())))
        }
    }

    #[derive(Debug)]
    struct Ending(Result<(), &'static str>);

    impl Actor for Ending {
        fn handle(&mut self, _now: Time, _event: Event, out: &mut Outbox) {
            out.exit(self.0.map_or_else(|why| ExitStatus::Failure(why.to_owned()), |()| ExitStatus::Success));
        }
    }

    async fn kept(failures: u32) -> (Result<(ProcessId, u32), KeeperError>, u32) {
        let started = Arc::new(AtomicU32::new(0));
        let options = ProcessOptions {
            boot: boot(ProcessId::HighAvailability, Configuration::default()),
            engine: Arc::new(Failing { failures, started: Arc::clone(&started) }),
            volumes: BTreeMap::new(),
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            high_availability: None,
            patience: Duration::ZERO,
            record: None,
            observer: None,
        };
        let (_stop, stopped) = watch::channel(false);
        (keep(options, stopped).await, started.load(Ordering::SeqCst))
    }

    #[tokio::test]
    async fn a_process_that_fails_is_started_again_until_it_ends_in_order() {
        for failures in [0, 3, RESTARTS_MAX] {
            let (end, started) = kept(failures).await;
            assert_eq!((end.unwrap().1, started), (failures, failures + 1));
        }
    }

    #[tokio::test]
    async fn a_process_that_keeps_failing_is_an_error_with_the_reason() {
        let (end, started) = kept(RESTARTS_MAX + 1).await;
        let expected = "high-availability ended 6 times, at last with: no luck";
        assert_eq!((end.unwrap_err().to_string().as_str(), started), (expected, RESTARTS_MAX + 1));
    }
}
