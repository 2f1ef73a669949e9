//! What people find in a process's log of the notes of its actors: sentences for what they must
//! know, and the plain notes for those who look for more. It never changes what an actor does.

use tracing::Level;

use crate::message::JobOutcome;
use crate::note::Note;

pub fn write(note: &Note) {
    match sentence(note) {
        Some((Level::WARN, text)) => tracing::warn!("{text}"),
        Some((_, text)) => tracing::info!("{text}"),
        None => tracing::debug!(?note),
    }
}

/// The note for people, if it is one for them: a warning or information.
fn sentence(note: &Note) -> Option<(Level, String)> {
    Some(match note {
        Note::Warning { text } => (Level::WARN, text.clone()),
        Note::TaskManagerLost { process, reason } => (Level::WARN, format!("lost {process}: {reason}")),
        Note::Replayed { damage: Some(damage), .. } => {
            (Level::WARN, format!("the job event log cannot be used, and the job begins anew: {damage}"))
        }
        Note::Replayed { events, finished, damage: None, .. } => {
            let finished = finished.len();
            (
                Level::INFO,
                format!("read {events} job events of earlier leaders: {finished} tasks had finished"),
            )
        }
        Note::Recovered { kept, reset, .. } => {
            let (kept, reset) = (kept.len(), reset.len());
            (Level::INFO, format!("recovered: {kept} finished tasks are kept, {reset} run again"))
        }
        Note::JobStatusChanged { status, .. } => {
            (Level::INFO, format!("the job is {}", format!("{status:?}").to_lowercase()))
        }
        Note::LeadershipAcquired { token } => (Level::INFO, format!("leads with token {}", token.0)),
        Note::JobEnded { outcome: JobOutcome::Finished { committed, .. } } => {
            (Level::INFO, format!("the job finished and committed {committed} files"))
        }
        Note::JobEnded { outcome: JobOutcome::Failed { reason } } => {
            (Level::WARN, format!("the job failed: {reason}"))
        }
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::{FencingToken, ProcessId};

    #[test]
    fn damage_and_losses_are_warnings_and_recovery_is_told() {
        let token = FencingToken(2);
        let damage = Some("job-events/events.1 at offset 12: bad".to_owned());
        let (level, text) =
            sentence(&Note::Replayed { token, events: 0, finished: Vec::new(), damage }).unwrap();
        assert_eq!(level, Level::WARN);
        assert!(text.contains("begins anew: job-events/events.1 at offset 12: bad"), "{text}");
        let whole = Note::Replayed { token, events: 7, finished: Vec::new(), damage: None };
        assert_eq!(sentence(&whole).unwrap().0, Level::INFO);
        let process = ProcessId::TaskManager(1);
        let lost = sentence(&Note::TaskManagerLost { process, reason: "silence".to_owned() });
        assert_eq!(lost, Some((Level::WARN, "lost task-manager-1: silence".to_owned())));
        let recovered = sentence(&Note::Recovered { token, kept: Vec::new(), reset: Vec::new() }).unwrap();
        assert_eq!(recovered, (Level::INFO, "recovered: 0 finished tasks are kept, 0 run again".to_owned()));
        assert_eq!(sentence(&Note::JobManagerLost { token }), None);
    }
}
