//! Files of another cluster id that lie on the shared volume of high availability before a run begins:
//! whatever goes wrong with this cluster's job is no reason to touch them.

use bytes::Bytes;
use revenant::disk::Volume;

use crate::disk::DisksState;

/// A log that looks like one of this cluster's, and a result.
const FILES: [(&str, &[u8]); 3] = [
    ("another-cluster/job-events/events.1.0", b"what another job has logged"),
    ("another-cluster/job-events/events.2.0", b"and its next leader"),
    ("another-cluster/job-result", b"what came of it"),
];

pub fn place(disks: &mut DisksState) {
    for (path, bytes) in FILES {
        let placed = disks.place(Volume::Ha, path, Bytes::from_static(bytes));
        placed.expect("an empty volume takes these files");
    }
}

pub fn is_foreign(volume: Volume, path: &str) -> bool {
    volume == Volume::Ha && FILES.iter().any(|(foreign, _)| *foreign == path)
}

/// What is not as it was.
pub fn harm(disks: &DisksState) -> Vec<String> {
    let harmed = FILES.iter().filter_map(|(path, bytes)| {
        match disks.files().find(|(_, volume, found, _)| *volume == Volume::Ha && found == path) {
            None => Some(format!("the file {path} of another cluster is gone")),
            Some((.., found)) => {
                (found != bytes).then(|| format!("the file {path} of another cluster was changed"))
            }
        }
    });
    harmed.collect()
}
