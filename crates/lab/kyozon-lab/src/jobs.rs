//! Jobs side by side, each of which takes some of the machine's CPUs.

use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::mpsc;
use std::thread;

/// CPUs that this program may use.
pub fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// Runs `jobs` in their order, as many at a time as `cpus` are enough for; one that takes more has them all.
///
/// `started` is told what runs whenever that changes, `ended` what each job has returned: `None` where it panicked.
/// Both are called by the calling thread.
pub fn run<J: Sync, R: Send>(
    jobs: &[J],
    cpus: usize,
    takes: impl Fn(&J) -> usize,
    work: impl Fn(&J) -> R + Sync,
    started: impl Fn(&[&J]),
    mut ended: impl FnMut(&J, Option<R>),
) {
    let takes = |job: &J| takes(job).min(cpus);
    let (tell, told) = mpsc::channel();
    let work = &work;
    thread::scope(|scope| {
        let mut waiting = jobs.iter().peekable();
        let mut running: Vec<&J> = Vec::new();
        loop {
            let mut free = cpus - running.iter().map(|job| takes(job)).sum::<usize>();
            while let Some(job) = waiting.next_if(|job| takes(job) <= free) {
                free -= takes(job);
                running.push(job);
                let tell = tell.clone();
                scope.spawn(move || {
                    let returned = catch_unwind(AssertUnwindSafe(|| work(job))).ok();
                    // Nobody listens where the calling thread has panicked.
                    let _ = tell.send((job, returned));
                });
            }
            if running.is_empty() {
                break;
            }
            started(&running);
            let (job, returned) = told.recv().expect("this thread has a sender, too");
            running.retain(|other| !std::ptr::eq(*other, job));
            ended(job, returned);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    use std::time::Duration;

    /// The most CPUs that were taken at a time, and what ran together.
    fn most(jobs: &[usize], cpus: usize) -> (usize, Vec<Vec<usize>>) {
        let (taken, most) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let together = RefCell::new(Vec::new());
        let mut count = 0;
        run(
            jobs,
            cpus,
            |job| *job,
            |job| {
                let now = taken.fetch_add((*job).min(cpus), SeqCst) + (*job).min(cpus);
                most.fetch_max(now, SeqCst);
                thread::sleep(Duration::from_millis(20));
                taken.fetch_sub((*job).min(cpus), SeqCst);
            },
            |running| together.borrow_mut().push(running.iter().map(|job| **job).collect()),
            |_, returned| count += usize::from(returned.is_some()),
        );
        assert_eq!(count, jobs.len());
        (most.into_inner(), together.into_inner())
    }

    #[test]
    fn no_more_run_than_there_are_cpus_for() {
        let (most_taken, together) = most(&[1, 1, 1, 2, 9], 2);
        assert_eq!(most_taken, 2);
        assert_eq!(together[0], [1, 1]);
        assert_eq!(together[3..], [vec![2], vec![9]]);
    }

    #[test]
    fn one_cpu_is_enough_for_all_in_turn() {
        assert_eq!(most(&[1, 2, 1], 1), (1, vec![vec![1], vec![2], vec![1]]));
    }

    #[test]
    fn a_panic_is_the_end_of_one() {
        let mut outcomes = Vec::new();
        let work = |job: &u8| assert_ne!(*job, 1, "meant");
        run(&[0, 1, 2], 1, |_| 1, work, |_| (), |job, returned| outcomes.push((*job, returned)));
        assert_eq!(outcomes, [(0, Some(())), (1, None), (2, Some(()))]);
    }
}
