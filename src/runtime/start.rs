//! What every process of a cluster is started with, and what is checked before any is.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;
use std::time::SystemTime;

use crate::actor::Boot;
use crate::api::Program;
use crate::config::{Configuration, JobArguments};
use crate::ids::{ProcessId, SessionId};
use crate::job_manager::submission;

use super::directories::volumes;

/// A number that no other incarnation of any process has.
pub fn fresh_session() -> SessionId {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    if let Ok(since) = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH) {
        hasher.write_u128(since.as_nanos());
    }
    SessionId(hasher.finish())
}

pub fn boot(process: ProcessId, config: Configuration) -> Boot {
    Boot { process, session: fresh_session(), config, volumes: Vec::new() }
}

/// Whether a JobManager that is started here could run the job.
pub fn check_job(program: &Program, config: &Configuration, job: &JobArguments) -> Result<(), String> {
    let graph = program.build(job).map_err(|error| error.to_string())?;
    let anywhere = Path::new("");
    let volumes = volumes(ProcessId::JOB_MANAGER, anywhere, Some(anywhere), None);
    submission::check(config, &graph, &volumes.into_keys().collect::<Vec<_>>())
}
