use super::*;
use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::time::Instant;

const LONG: Duration = Duration::from_secs(10);

/// A source that counts its calls, and does `then` in each.
struct Count {
    bell: Bell,
    served: AtomicU32,
    continues: bool,
    then: Box<dyn Fn(u32) + Send + Sync>,
}

impl Source for Count {
    fn fd(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    fn serve(&self) -> bool {
        if self.continues {
            self.bell.clear();
        }
        (self.then)(self.served.fetch_add(1, SeqCst) + 1);
        self.continues
    }
}

struct Setting {
    poller: Arc<Poller>,
    source: Arc<Count>,
    bell: Arc<Bell>,
    seat: Seat,
}

fn setting(continues: bool, then: impl Fn(u32) + Send + Sync + 'static) -> Setting {
    let (served, bell) = (AtomicU32::new(0), Bell::new().unwrap());
    let source = Arc::new(Count { bell, served, continues, then: Box::new(then) });
    let (poller, bell) = (Arc::new(Poller::default()), Arc::new(Bell::new().unwrap()));
    let seat = poller.add(source.clone(), bell.clone()).unwrap();
    Setting { poller, source, bell, seat }
}

fn until(end: Instant) -> impl Fn() -> Option<Duration> {
    move || Some(end.saturating_duration_since(Instant::now()))
}

fn soon() -> impl Fn() -> Option<Duration> {
    until(Instant::now() + Duration::from_millis(20))
}

#[test]
fn a_waiting_thread_serves_devices_until_its_word_changes() {
    let word = Arc::new(AtomicU32::new(2));
    let change = word.clone();
    // The third call completes what the thread waits for.
    let mut s = setting(true, move |count| {
        if count == 3 {
            change.store(1, Ordering::SeqCst);
        }
    });
    assert_eq!(s.seat.plan(), Plan::Watch);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 1..=3 {
                s.source.bell.ring();
                let end = Instant::now() + LONG;
                while s.source.served.load(SeqCst) < round {
                    assert!(Instant::now() < end, "round {round}");
                    std::thread::yield_now();
                }
            }
        });
        assert!(s.poller.wait(&word, 2, until(Instant::now() + LONG)));
    });
    assert_eq!((word.load(SeqCst), s.source.served.load(SeqCst)), (1, 3));
    // A word that has changed is not waited for, and the device not served.
    s.source.bell.ring();
    assert!(s.poller.wait(&word, 2, || None));
    assert_eq!(s.source.served.load(SeqCst), 3);
}

#[test]
fn a_change_of_the_word_wakes_the_poller_and_nobody_else() {
    let (s, word, other) = (setting(true, |_| {}), AtomicU32::new(2), AtomicU32::new(2));
    assert!(!s.poller.wake(&word), "nobody waits");
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| s.poller.wait(&word, 2, || None));
        while !s.poller.wake(&word) {
            std::thread::yield_now();
        }
        // Woken early, it waits again: the word is the same. A second thread must wait otherwise.
        assert!(!s.poller.wait(&other, 2, || None));
        assert!(!s.poller.wake(&other));
        word.store(1, SeqCst);
        assert!(s.poller.wake(&word));
        assert!(waits.join().unwrap());
    });
    assert!(!s.poller.wake(&word));
}

#[test]
fn no_change_is_missed() {
    let (s, word) = (setting(true, |_| {}), AtomicU32::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for round in 0..20_000 {
                while word.load(SeqCst) == round {
                    assert!(s.poller.wait(&word, round, until(Instant::now() + LONG)));
                }
            }
        });
        for round in 1..=20_000 {
            word.store(round, SeqCst);
            s.poller.wake(&word);
            if round % 3 == 0 {
                std::thread::yield_now();
            }
        }
    });
}

#[test]
fn a_deadline_ends_the_wait_also_while_a_device_is_never_silent() {
    let (mut s, word) = (setting(true, |_| {}), AtomicU32::new(2));
    assert!(s.poller.wait(&word, 2, soon()));
    let noisy = s.source.clone();
    let noise = setting(true, |_| {});
    drop(noise);
    assert_eq!(s.seat.plan(), Plan::Stand(Some(STANDBY)));
    noisy.bell.ring();
    // The source is silent after each call; another one never is.
    let flood = Arc::new(Flood(Bell::new().unwrap(), AtomicU32::new(0)));
    flood.0.ring();
    let mut seat = s.poller.add(flood.clone(), s.bell.clone()).unwrap();
    seat.plan();
    assert!(s.poller.wait(&word, 2, soon()));
    assert!(flood.1.load(SeqCst) > 1 && noisy.served.load(SeqCst) == 1);
}

/// A source that always has work.
struct Flood(Bell, AtomicU32);

impl Source for Flood {
    fn fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }

    fn serve(&self) -> bool {
        self.1.fetch_add(1, SeqCst);
        true
    }
}

#[test]
fn the_devices_thread_steps_back_while_there_are_pollers() {
    let (mut s, word) = (setting(true, |_| {}), AtomicU32::new(2));
    assert_eq!(s.seat.plan(), Plan::Watch);
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| s.poller.wait(&word, 2, || None));
        // A poller calls the thread back that watches.
        let end = Instant::now() + LONG;
        while !s.bell.clear() {
            assert!(Instant::now() < end);
        }
        s.seat.woken();
        assert_eq!(s.seat.plan(), Plan::Stand(Some(STANDBY)));
        // The turn goes on: there is nothing to look for until it ends.
        assert_eq!(s.seat.plan(), Plan::Stand(None));
        assert!(!s.bell.clear());
        word.store(1, SeqCst);
        assert!(s.poller.wake(&word) && waits.join().unwrap());
    });
    assert!(s.bell.clear(), "the end of the turn wakes the thread");
    s.seat.woken();
    assert_eq!(s.seat.plan(), Plan::Stand(Some(STANDBY)));
    // Turns of which the thread is not told.
    word.store(2, SeqCst);
    assert!(s.poller.wait(&word, 2, soon()));
    assert!(!s.bell.clear());
    assert_eq!(s.seat.plan(), Plan::Stand(Some(STANDBY)));
    assert_eq!(s.seat.plan(), Plan::Watch);
}

#[test]
fn work_that_a_poller_cannot_continue_is_the_threads() {
    let (mut s, word) = (setting(false, |_| {}), AtomicU32::new(2));
    s.source.bell.ring();
    // Before the first plan, the device is not the pollers'.
    assert!(s.poller.wait(&word, 2, soon()));
    assert_eq!(s.source.served.load(SeqCst), 0);
    s.seat.plan();
    assert!(s.poller.wait(&word, 2, soon()));
    assert_eq!((s.source.served.load(SeqCst), s.bell.clear()), (1, true));
    assert!(s.seat.is_returned());
    s.seat.keep();
    assert!(s.poller.wait(&word, 2, soon()) && !s.seat.is_returned());
    assert_eq!(s.source.served.load(SeqCst), 1);
}
