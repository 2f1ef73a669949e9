//! A few threads that do disk operations, so that no actor waits for a disk. Operations on one path
//! are done in the order in which they were asked for; others overtake each other.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread;

use tokio::sync::oneshot;

use crate::disk::{DiskOp, DiskResult, Volume};

use super::disk::Disk;

const THREADS: usize = 4;

type Done = Box<dyn FnOnce(DiskResult) + Send>;

enum Job {
    Operation(Volume, DiskOp, Done),
    /// Answers when all jobs before it are done.
    Barrier(oneshot::Sender<()>),
}

pub struct DiskPool {
    workers: Vec<Sender<Job>>,
    closed: Arc<AtomicBool>,
}

impl DiskPool {
    pub fn start(disk: Arc<Disk>) -> std::io::Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        let worker = |number| {
            let (sender, jobs) = mpsc::channel();
            let (disk, closed) = (Arc::clone(&disk), Arc::clone(&closed));
            thread::Builder::new().name(format!("disk-{number}")).spawn(move || {
                for job in jobs {
                    match job {
                        Job::Operation(..) if closed.load(Ordering::SeqCst) => {}
                        Job::Operation(volume, action, done) => done(disk.perform(volume, &action)),
                        Job::Barrier(reached) => drop(reached.send(())),
                    }
                }
            })?;
            Ok(sender)
        };
        let workers = (0..THREADS).map(worker).collect::<std::io::Result<_>>()?;
        Ok(Self { workers, closed })
    }

    /// Begins no operation any more, also none that waits.
    pub fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
    }

    pub fn submit(&self, volume: Volume, action: DiskOp, done: Done) {
        let digest = crc32fast::hash(action.path().as_bytes()) as usize;
        // A worker ends only after this side is dropped.
        let _ = self.workers[digest % self.workers.len()].send(Job::Operation(volume, action, done));
    }

    /// Waits until all is done that was asked for before.
    pub async fn settled(&self) {
        for worker in &self.workers {
            let (sender, reached) = oneshot::channel();
            let _ = worker.send(Job::Barrier(sender));
            let _ = reached.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::atomic::AtomicUsize;
    use std::time::Duration;

    use super::super::directories::WorkingDirectory;
    use super::*;

    fn pool() -> (DiskPool, WorkingDirectory) {
        let directory = WorkingDirectory::temporary(&std::env::temp_dir()).unwrap();
        let disk = Disk::new(BTreeMap::from([(Volume::Local, directory.path().to_owned())]));
        (DiskPool::start(Arc::new(disk)).unwrap(), directory)
    }

    fn list(pool: &DiskPool, path: usize, done: impl FnOnce() + Send + 'static) {
        pool.submit(Volume::Local, DiskOp::List { path: path.to_string() }, Box::new(|_| done()));
    }

    #[tokio::test]
    async fn a_settled_pool_has_done_all_that_was_asked_for() {
        let ((pool, _directory), done) = (pool(), Arc::new(AtomicUsize::new(0)));
        for path in 0..20 {
            let done = Arc::clone(&done);
            list(&pool, path, move || {
                thread::sleep(Duration::from_millis(2));
                done.fetch_add(1, Ordering::SeqCst);
            });
        }
        pool.settled().await;
        assert_eq!(done.load(Ordering::SeqCst), 20);
    }

    #[tokio::test]
    async fn a_closed_pool_begins_nothing_that_was_asked_for_before_or_after() {
        let ((pool, _directory), done) = (pool(), Arc::new(AtomicUsize::new(0)));
        let (release, held) = mpsc::channel();
        list(&pool, 0, move || held.recv().unwrap());
        let count = |done: &Arc<AtomicUsize>| {
            let done = Arc::clone(done);
            move || {
                done.fetch_add(1, Ordering::SeqCst);
            }
        };
        list(&pool, 0, count(&done));
        pool.close();
        list(&pool, 1, count(&done));
        release.send(()).unwrap();
        pool.settled().await;
        assert_eq!(done.load(Ordering::SeqCst), 0);
    }
}
