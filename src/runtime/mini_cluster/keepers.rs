//! The keepers of all processes of a cluster. They are polled where they are held, so that to drop them
//! ends the processes before anything else is done.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;

use crate::ids::ProcessId;

use super::keeper::KeeperError;

type Kept = Result<(ProcessId, u32), KeeperError>;

#[derive(Default)]
pub struct Keepers {
    running: Vec<Pin<Box<dyn Future<Output = Kept> + Send>>>,
}

impl Keepers {
    /// Polls all until one ends; `None` when all have. Nothing is lost if this is given up.
    pub async fn next(&mut self) -> Option<Kept> {
        poll_fn(|context| {
            if self.running.is_empty() {
                return Poll::Ready(None);
            }
            let end = self.running.iter_mut().enumerate().find_map(|(position, keeper)| {
                match keeper.as_mut().poll(context) {
                    Poll::Ready(kept) => Some((position, kept)),
                    Poll::Pending => None,
                }
            });
            match end {
                Some((position, kept)) => {
                    drop(self.running.swap_remove(position));
                    Poll::Ready(Some(kept))
                }
                None => Poll::Pending,
            }
        })
        .await
    }
}

impl<F: Future<Output = Kept> + Send + 'static> FromIterator<F> for Keepers {
    fn from_iter<I: IntoIterator<Item = F>>(keepers: I) -> Self {
        let boxed = |keeper| Box::pin(keeper) as Pin<Box<dyn Future<Output = Kept> + Send>>;
        Self { running: keepers.into_iter().map(boxed).collect() }
    }
}
