//! Until this incarnation leads: contention, and what an earlier leader left behind. A leader that
//! learns of another one ends its process at once.

use std::sync::Arc;

use crate::actor::{ExitStatus, Outbox, Time};
use crate::ids::{Address, FencingToken};
use crate::job_event::JobEventWriter;
use crate::message::{
    Contend, DecideCommit, JobRecord, JobResult, LeadershipGranted, OpenJobEventStore, RecordJob,
    RecordJobResult, RecordedJob, RenewLease,
};
use crate::note::Note;
use crate::probe::Probe;
use crate::scheduler::RestartBackoff;

use super::{CONTEND, HEARTBEAT, JobMaster, Phase, RECOVERY_TIMEOUT, RENEW_LEASE};

impl JobMaster {
    pub(super) fn contend(&mut self, now: Time, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Contending) {
            return;
        }
        let message = Contend { session: self.boot.session, process: self.boot.process };
        out.send(Address::HIGH_AVAILABILITY, message);
        out.set_timer(CONTEND, now + self.boot.config.registration_retry);
    }

    pub(super) fn granted(&mut self, now: Time, message: LeadershipGranted, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Contending) || message.session != self.boot.session {
            return;
        }
        self.token = message.token;
        self.restarts = RestartBackoff::new(&self.boot.config, self.token);
        out.cancel_timer(CONTEND);
        out.set_timer(RENEW_LEASE, now + self.boot.config.session_timeout / 3);
        out.set_timer(HEARTBEAT, now + self.boot.config.heartbeat_interval);
        out.note(Note::LeadershipAcquired { token: self.token });
        if let Some(job) = message.job.as_ref().map(|job| &job.record)
            && *job != *self.record
        {
            out.exit(ExitStatus::Failure(format!(
                "this cluster runs job '{}' with {}, not '{}' with {}, and a cluster runs one job: start another \
                 cluster, with another high-availability.cluster-id, or the same job with the same arguments",
                job.name,
                describe(job),
                self.record.name,
                describe(&self.record),
            )));
            return;
        }
        let is_recorded = message.job.is_some();
        self.splits = message.job.map_or_else(Default::default, |job| job.splits);
        match message.result {
            Some(JobResult::Clean(outcome)) => {
                out.probe(Probe::EndTakenOver);
                self.clean_up(outcome, out);
            }
            Some(JobResult::Dirty(decision)) => {
                out.probe(Probe::CommitTakenOver);
                self.commit_decided(decision, out);
            }
            None if is_recorded => self.job_recorded(now, out),
            None => self.enumerate_splits(out),
        }
        if self.cancel_asked {
            self.cancel(out);
        }
        self.register_early(now, out);
    }

    /// The job is known to the HA service: its earlier progress is sought, if it may be kept.
    pub(super) fn job_recorded(&mut self, now: Time, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Contending | Phase::RecordingJob) {
            return;
        }
        self.recovery_until = now + self.boot.config.previous_worker_recovery_timeout;
        if self.boot.config.job_recovery_enabled {
            self.recording.begin();
            self.enter(Phase::OpeningStore, out);
            // The log takes its time, too, where no worker is to be waited for.
            let opening = now + self.boot.config.registration_retry;
            out.set_timer(RECOVERY_TIMEOUT, self.recovery_until.max(opening));
            self.ask_again(now, out);
            let fingerprint = self.log_fingerprint();
            out.send(self.writer(), OpenJobEventStore { token: self.token, fingerprint });
        } else {
            self.store_opened(now, &Arc::default(), out);
        }
    }

    /// What a log must be about to be this job's: the graph, and the option by which partitions are
    /// cut into subpartitions. Ranges of another cut would read the wrong rows.
    fn log_fingerprint(&self) -> u64 {
        let mut bytes = [0; 12];
        bytes[..8].copy_from_slice(&self.record.fingerprint.to_le_bytes());
        bytes[8..].copy_from_slice(&self.boot.config.max_parallelism.to_le_bytes());
        xxhash_rust::xxh3::xxh3_64(&bytes)
    }

    /// Sends what this phase wants of the HA service, again if it was sent before: the service may
    /// have died with the request, and answers a repeated one as it did the first.
    pub(super) fn ask_high_availability(&self, out: &mut Outbox) {
        let token = self.token;
        match &self.phase {
            Phase::RecordingJob => {
                let record = JobRecord::clone(&self.record);
                let job = RecordedJob { record, splits: self.splits.clone() };
                out.send(Address::HIGH_AVAILABILITY, RecordJob { token, job });
            }
            Phase::DecidingCommit { decision } => {
                let decision = decision.clone();
                out.send(Address::HIGH_AVAILABILITY, DecideCommit { token, decision });
            }
            Phase::RecordingResult { outcome } => {
                let outcome = outcome.clone();
                out.send(Address::HIGH_AVAILABILITY, RecordJobResult { token, outcome });
            }
            _ => {}
        }
    }

    pub(super) fn renew_lease(&mut self, now: Time, out: &mut Outbox) {
        out.send(Address::HIGH_AVAILABILITY, RenewLease { token: self.token });
        self.ask_high_availability(out);
        out.set_timer(RENEW_LEASE, now + self.boot.config.session_timeout / 3);
    }

    pub(super) fn lost_leadership(&mut self, out: &mut Outbox) {
        out.exit(ExitStatus::Failure(format!(
            "the leadership of token {} was lost to another leader",
            self.token
        )));
    }

    /// Another leader has begun a newer epoch of the log, or another cluster had.
    pub(super) fn fenced_by_log(&self, current: FencingToken, out: &mut Outbox) {
        let config = &self.boot.config;
        out.exit(ExitStatus::Failure(format!(
            "the leadership of token {} was lost to that of token {current}, of which the job event log has a file; if \
             there is no such leader, because the storage of the HA service was lost and the log was not, delete {} \
             on the volume '{}'",
            self.token,
            JobEventWriter::directory(config),
            config.job_event_volume,
        )));
    }
}

fn describe(job: &JobRecord) -> String {
    let arguments: Vec<String> =
        job.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("arguments [{}] and graph {:016x}", arguments.join(", "), job.fingerprint)
}
