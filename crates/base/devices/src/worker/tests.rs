use super::*;
use rustix::event::{poll, PollFd, PollFlags};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_dropped_worker_has_ended_and_took_only_faults() {
    let ended = Arc::new(AtomicBool::new(false));
    let set = ended.clone();
    let worker = Worker::start("test", move |stop| {
        let blocked = |signal| {
            // SAFETY: both calls access only the given value.
            unsafe {
                let mut now = std::mem::zeroed();
                libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut now);
                libc::sigismember(&now, signal)
            }
        };
        assert_eq!([libc::SIGINT, libc::SIGALRM, libc::SIGCHLD].map(blocked), [1; 3]);
        assert_eq!(FAULTS.map(blocked), [0; 5]);
        poll(&mut [PollFd::new(stop, PollFlags::IN)], None).unwrap();
        set.store(true, Ordering::SeqCst);
    });
    drop(worker.unwrap());
    assert!(ended.load(Ordering::SeqCst));
}

#[test]
fn rings_before_a_look_count_once() {
    let bell = Bell::new().unwrap();
    assert!(!bell.clear());
    bell.ring();
    bell.ring();
    assert!(bell.clear() && !bell.clear());
}
