//! S15: what belongs to another job outlives this one's faults: files of another cluster id, which lie
//! on the shared volume before the run, are as they were after it. A cluster runs one job, so a TaskManager
//! holds state of no other; what two jobs can share is the volume of high availability, and there this is
//! judged. (A faulty recovery or clean-up that went by the volume's root instead of the cluster's directory
//! would show here.)

use super::{History, Violation};

pub fn check(history: &History) -> Result<(), Violation> {
    let outcome = history.outcome;
    outcome
        .foreign
        .first()
        .map_or(Ok(()), |what| Err(history.violation("S15", outcome.trace.len(), what.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::testing::{Story, caught, passes};

    #[test]
    fn a_file_of_another_cluster_that_is_gone_is_caught() {
        let mut story = Story::finished();
        passes(check, &story);
        story.harm("another-cluster/job-result is gone");
        caught(check, &story, "another-cluster/job-result is gone");
    }
}
