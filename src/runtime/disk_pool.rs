//! A few threads that do disk operations, so that no actor waits for a disk. Operations on one path
//! are done in the order in which they were asked for; others overtake each other.

use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread;

use crate::disk::{DiskOp, DiskResult, Volume};

use super::disk::Disk;

const THREADS: usize = 4;

type Done = Box<dyn FnOnce(DiskResult) + Send>;

pub struct DiskPool {
    workers: Vec<Sender<(Volume, DiskOp, Done)>>,
}

impl DiskPool {
    pub fn start(disk: Arc<Disk>) -> std::io::Result<Self> {
        let worker = |number| {
            let (sender, jobs) = mpsc::channel::<(Volume, DiskOp, Done)>();
            let disk = Arc::clone(&disk);
            thread::Builder::new().name(format!("disk-{number}")).spawn(move || {
                for (volume, action, done) in jobs {
                    done(disk.perform(volume, &action));
                }
            })?;
            Ok(sender)
        };
        (0..THREADS).map(worker).collect::<std::io::Result<_>>().map(|workers| Self { workers })
    }

    pub fn submit(&self, volume: Volume, action: DiskOp, done: Done) {
        let digest = crc32fast::hash(action.path().as_bytes()) as usize;
        // A worker ends only after this side is dropped.
        let _ = self.workers[digest % self.workers.len()].send((volume, action, done));
    }
}
