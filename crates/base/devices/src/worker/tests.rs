use super::*;
use rustix::event::{poll, PollFd, PollFlags};
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn a_dropped_worker_has_ended_and_took_no_signal() {
    let ended = Arc::new(AtomicBool::new(false));
    let set = ended.clone();
    let worker = Worker::start("test", move |stop| {
        // SAFETY: both calls write only the given value.
        let blocked = unsafe {
            let mut now = std::mem::zeroed();
            libc::pthread_sigmask(libc::SIG_SETMASK, std::ptr::null(), &mut now);
            libc::sigismember(&now, libc::SIGINT)
        };
        assert_eq!(blocked, 1);
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
