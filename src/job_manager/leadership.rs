//! Until this incarnation leads: contention, and what an earlier leader left behind. A leader that
//! learns of another one ends its process at once.

use std::sync::Arc;

use crate::actor::{ExitStatus, Outbox, Time};
use crate::ids::Address;
use crate::message::{
    Contend, JobRecord, JobResult, LeadershipGranted, OpenJobEventStore, RecordJob, RenewLease,
};
use crate::note::Note;

use super::{CONTEND, HEARTBEAT, JobMaster, Phase, RENEW_LEASE};

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
        out.cancel_timer(CONTEND);
        out.set_timer(RENEW_LEASE, now + self.boot.config.session_timeout / 3);
        out.set_timer(HEARTBEAT, now + self.boot.config.heartbeat_interval);
        out.note(Note::LeadershipAcquired { token: self.token });
        if let Some(job) = &message.job
            && *job != *self.record
        {
            out.exit(ExitStatus::Failure(format!(
                "this cluster runs job '{}' with {}, not '{}' with {}: use another high-availability.cluster-id, \
                 or the same job and arguments",
                job.name,
                describe(job),
                self.record.name,
                describe(&self.record),
            )));
            return;
        }
        match message.result {
            Some(JobResult::Clean(outcome)) => self.finish(outcome, out),
            Some(JobResult::Dirty(committables)) => self.commit_decided(committables, out),
            None if message.job.is_some() => self.job_recorded(now, out),
            None => {
                self.enter(Phase::RecordingJob, out);
                let job = JobRecord::clone(&self.record);
                out.send(Address::HIGH_AVAILABILITY, RecordJob { token: self.token, job });
            }
        }
        self.register_early(now, out);
    }

    /// The job is known to the HA service: its earlier progress is sought, if it may be kept.
    pub(super) fn job_recorded(&mut self, now: Time, out: &mut Outbox) {
        if !matches!(self.phase, Phase::Contending | Phase::RecordingJob) {
            return;
        }
        if self.boot.config.job_recovery_enabled {
            self.enter(Phase::OpeningStore, out);
            let fingerprint = self.record.fingerprint;
            out.send(Address::WRITER, OpenJobEventStore { token: self.token, fingerprint });
        } else {
            self.store_opened(now, &Arc::default(), out);
        }
    }

    pub(super) fn renew_lease(&mut self, now: Time, out: &mut Outbox) {
        out.send(Address::HIGH_AVAILABILITY, RenewLease { token: self.token });
        out.set_timer(RENEW_LEASE, now + self.boot.config.session_timeout / 3);
    }

    pub(super) fn lost_leadership(&mut self, out: &mut Outbox) {
        out.exit(ExitStatus::Failure(format!(
            "the leadership of token {} was lost to another leader",
            self.token
        )));
    }
}

fn describe(job: &JobRecord) -> String {
    let arguments: Vec<String> =
        job.arguments.iter().map(|(name, value)| format!("{name}={value}")).collect();
    format!("arguments [{}] and graph {:016x}", arguments.join(", "), job.fingerprint)
}
