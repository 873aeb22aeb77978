//! Jobs that run side by side, each with a number of the machine's CPUs.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;

/// CPUs that this program may use.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `jobs` in their order, as many at a time as fit into `cpus`; a job that takes more gets all of them.
///
/// `started` receives the running jobs whenever they change, `ended` each job with its result: `None` if it panicked.
/// The calling thread calls both, and `go_on` before each start. When that returns false, no more jobs start: the
/// others are returned.
pub fn run<J: Sync, R: Send>(
    jobs: &[J],
    cpus: usize,
    takes: impl Fn(&J) -> usize,
    go_on: impl Fn() -> bool,
    work: impl Fn(&J) -> R + Sync,
    started: impl Fn(&[&J]),
    mut ended: impl FnMut(&J, Option<R>),
) -> Vec<&J> {
    let takes = |job: &J| takes(job).min(cpus);
    let (sender, results) = mpsc::channel();
    let work = &work;
    thread::scope(|scope| {
        let mut waiting = jobs.iter().peekable();
        let mut running: Vec<&J> = Vec::new();
        loop {
            let mut free = cpus - running.iter().map(|job| takes(job)).sum::<usize>();
            while let Some(job) = waiting.next_if(|job| takes(job) <= free && go_on()) {
                free -= takes(job);
                running.push(job);
                let sender = sender.clone();
                scope.spawn(move || {
                    let returned = catch_unwind(AssertUnwindSafe(|| work(job))).ok();
                    // The receiver is gone if the calling thread has panicked.
                    let _ = sender.send((job, returned));
                });
            }
            if running.is_empty() {
                break;
            }
            started(&running);
            let (job, returned) = results.recv().expect("this thread holds a sender, too");
            running.retain(|other| !std::ptr::eq(*other, job));
            ended(job, returned);
        }
        waiting.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    /// Maximum CPUs taken at a time, and the jobs that ran together.
    fn max_taken(jobs: &[usize], cpus: usize) -> (usize, Vec<Vec<usize>>) {
        let (taken, max) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let together = RefCell::new(Vec::new());
        let mut count = 0;
        run(
            jobs,
            cpus,
            |job| *job,
            || true,
            |job| {
                let now = taken.fetch_add((*job).min(cpus), SeqCst) + (*job).min(cpus);
                max.fetch_max(now, SeqCst);
                thread::sleep(Duration::from_millis(20));
                taken.fetch_sub((*job).min(cpus), SeqCst);
            },
            |running| together.borrow_mut().push(running.iter().map(|job| **job).collect()),
            |_, returned| count += usize::from(returned.is_some()),
        );
        assert_eq!(count, jobs.len());
        (max.into_inner(), together.into_inner())
    }

    #[test]
    fn running_jobs_fit_into_the_cpus() {
        let (max, together) = max_taken(&[1, 1, 1, 2, 9], 2);
        assert_eq!(max, 2);
        assert_eq!(together[0], [1, 1]);
        assert_eq!(together[3..], [vec![2], vec![9]]);
    }

    #[test]
    fn one_cpu_runs_all_jobs_in_turn() {
        assert_eq!(max_taken(&[1, 2, 1], 1), (1, vec![vec![1], vec![2], vec![1]]));
    }

    #[test]
    fn a_panic_ends_one_job_only() {
        let mut outcomes = Vec::new();
        let work = |job: &u8| assert_ne!(*job, 1, "meant");
        let ended = |job: &u8, returned| outcomes.push((*job, returned));
        run(&[0, 1, 2], 1, |_| 1, || true, work, |_| (), ended);
        assert_eq!(outcomes, [(0, Some(())), (1, None), (2, Some(()))]);
    }

    #[test]
    fn jobs_that_may_not_start_are_returned() {
        let done = AtomicUsize::new(0);
        let work = |_: &u8| done.fetch_add(1, SeqCst);
        let left = run(&[1, 2, 3], 1, |_| 1, || done.load(SeqCst) < 2, work, |_| (), |_, _| ());
        assert_eq!(left, [&3]);
    }
}
