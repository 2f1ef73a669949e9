//! Spreads independent runs over threads. Which thread takes which run is chance; the results come
//! back in the order of the runs, so that nothing that is made of them depends on the number of
//! threads.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// `work(0)`, `work(1)`, … `work(count - 1)`, on `threads` threads; `done` is called after each.
pub fn map<R: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    done: impl Fn(&R) + Sync,
) -> Vec<R> {
    let results = map_while(count, threads, work, done, || true);
    results.into_iter().map(|result| result.expect("each index was taken once")).collect()
}

/// As [`map`], but nothing is begun any more once `go_on` says no. What was begun is finished.
pub fn map_while<R: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize) -> R + Sync,
    done: impl Fn(&R) + Sync,
    go_on: impl Fn() -> bool + Sync,
) -> Vec<Option<R>> {
    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<Option<R>>> = Mutex::new((0..count).map(|_| None).collect());
    let dispatch = tracing::dispatcher::get_default(Clone::clone);
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, count.max(1)) {
            scope.spawn(|| {
                tracing::dispatcher::with_default(&dispatch, || {
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        if index >= count || !go_on() {
                            break;
                        }
                        let result = work(index);
                        done(&result);
                        results.lock().expect("nothing panics under this lock")[index] = Some(result);
                    }
                });
            });
        }
    });
    results.into_inner().expect("nothing panics under this lock")
}

/// Threads that the machine runs at the same time.
pub fn available_threads() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order_whatever_the_number_of_threads() {
        let expected: Vec<usize> = (0..100).map(|n| n * n).collect();
        for threads in [0, 1, 3, 200] {
            let seen = AtomicUsize::new(0);
            let found = map(100, threads, |n| n * n, |_| _ = seen.fetch_add(1, Ordering::Relaxed));
            assert_eq!(found, expected);
            assert_eq!(seen.into_inner(), 100);
        }
        assert!(map(0, 4, |n| n, |_| ()).is_empty());
    }

    #[test]
    fn nothing_is_begun_after_the_end_was_called() {
        let seen = AtomicUsize::new(0);
        let count = |_: &usize| _ = seen.fetch_add(1, Ordering::Relaxed);
        let found = map_while(100, 1, |n| n, count, || seen.load(Ordering::Relaxed) < 7);
        let (begun, rest) = found.split_at(7);
        assert!(begun.iter().all(Option::is_some) && rest.iter().all(Option::is_none), "{found:?}");
    }
}
