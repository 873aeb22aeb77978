//! Locks, semaphore, barrier and condition variable under a model checker: they exclude; no wake-up is lost (the
//! checker reports when all remaining threads sleep); a time-out takes nothing from others; and a dead owner blocks no
//! peer.

mod model_support;

use kyozon_channel::error::Error;
use kyozon_channel::sync::{Acquired, Barrier, Condvar, RawMutex, RawRwLock, Semaphore, Woken};
use kyozon_channel::word::Word;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use loom::sync::Arc;
use loom::thread;
use model_support::{check, deadlocks, model_peer, ModelGroup, ModelPeer, Strong, Weak};

/// Runs each of `bodies` in a thread of its own, as peer 0, 1 and so on.
fn run<T: 'static>(shared: T, bodies: &[fn(&T, ModelPeer)]) {
    let group = ModelGroup::new(bodies.len());
    let shared = Arc::new(shared);
    let threads: Vec<_> = bodies
        .iter()
        .enumerate()
        .map(|(number, body)| {
            let (shared, body) = (shared.clone(), *body);
            let me = model_peer(&group, number as u8);
            thread::spawn(move || body(&shared, me))
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
}

#[derive(Default)]
struct Locked<L> {
    lock: L,
    inside: UnsafeCell<u64>,
}

impl<L> Locked<L> {
    /// The checker reports a race if another thread is inside.
    fn change(&self) {
        // SAFETY: the checker runs one thread at a time and reports races.
        self.inside.with_mut(|value| unsafe { *value += 1 });
    }
    fn read(&self) -> u64 {
        // SAFETY: as above.
        self.inside.with(|value| unsafe { *value })
    }
}

fn lock_once<W: Word>(shared: &Locked<RawMutex<W>>, me: ModelPeer) {
    assert_eq!(shared.lock.lock(&me, None), Ok(Acquired::Clean));
    shared.change();
    assert!(shared.lock.unlock(&me, Acquired::Clean));
}

fn lock_twice<W: Word>(shared: &Locked<RawMutex<W>>, me: ModelPeer) {
    for _ in 0..2 {
        assert_eq!(shared.lock.lock(&me, None), Ok(Acquired::Clean));
        shared.change();
        assert!(shared.lock.unlock(&me, Acquired::Clean));
    }
}

/// Changes the data if it gets the lock.
fn lock_in_time(shared: &Locked<RawMutex<Strong>>, me: ModelPeer) {
    match shared.lock.lock(&me, Some(10)) {
        Ok(Acquired::Clean) => {
            shared.change();
            assert!(shared.lock.unlock(&me, Acquired::Clean));
        }
        other => assert_eq!(other, Err(Error::TimedOut)),
    }
}

fn lock_and_die(shared: &Locked<RawMutex<Strong>>, me: ModelPeer) {
    let _ = shared.lock.lock(&me, None).unwrap();
    shared.change();
    me.die();
}

/// Accepts either state: a peer may have died in the lock before.
fn lock_and_repair(shared: &Locked<RawMutex<Strong>>, me: ModelPeer) {
    let _ = shared.lock.lock(&me, None).unwrap();
    assert!(shared.lock.unlock(&me, Acquired::Clean));
}

#[test]
fn a_mutex_excludes_two() {
    check(4, || run(Locked::<RawMutex<Strong>>::default(), &[lock_twice, lock_twice]));
}

#[test]
fn a_mutex_excludes_three() {
    check(2, || run(Locked::<RawMutex<Strong>>::default(), &[lock_once, lock_once, lock_once]));
}

#[test]
#[ignore = "minutes"]
fn a_mutex_excludes_three_deep() {
    check(3, || run(Locked::<RawMutex<Strong>>::default(), &[lock_once, lock_once, lock_once]));
}

/// The checker finds the error: without sequential consistency, a wake-up is lost.
#[test]
fn a_mutex_over_weaker_words_loses_a_wake_up() {
    deadlocks("a_mutex_over_weaker_words_loses_a_wake_up", || {
        check(2, || run(Locked::<RawMutex<Weak>>::default(), &[lock_once, lock_once, lock_once]));
    });
}

#[test]
fn a_mutex_time_out_passes_the_wake_up_on() {
    check(2, || {
        run(Locked::<RawMutex<Strong>>::default(), &[lock_once, lock_in_time, lock_once]);
    });
}

#[test]
fn a_dead_owner_poisons_a_mutex() {
    check(4, || {
        run(Locked::<RawMutex<Strong>>::default(), &[lock_and_die, lock_and_repair]);
    });
}

#[test]
fn one_of_two_gets_a_dead_owners_mutex() {
    check(2, || {
        run(
            Locked::<RawMutex<Strong>>::default(),
            &[lock_and_die, lock_and_repair, lock_and_repair],
        );
    });
}

#[test]
fn each_permit_admits_one_peer() {
    check(2, || {
        run(
            Semaphore::<Strong>::default(),
            &[
                |semaphore, me| {
                    semaphore.release(&me, 1);
                    semaphore.release(&me, 1);
                },
                |semaphore, me| semaphore.acquire(&me, None).unwrap(),
                |semaphore, me| semaphore.acquire(&me, None).unwrap(),
            ],
        );
    });
}

#[test]
fn a_semaphore_time_out_passes_the_wake_up_on() {
    check(2, || {
        run(
            Semaphore::<Strong>::default(),
            &[
                |semaphore, me| semaphore.release(&me, 1),
                |semaphore, me| {
                    if semaphore.acquire(&me, Some(10)).is_ok() {
                        semaphore.release(&me, 1);
                    }
                },
                |semaphore, me| semaphore.acquire(&me, None).unwrap(),
            ],
        );
    });
}

/// A barrier, and the number of calls that were its last.
#[derive(Default)]
struct Meeting {
    barrier: Barrier<Strong>,
    last: AtomicUsize,
    here: [AtomicUsize; 3],
}

impl Meeting {
    fn meet(&self, me: &ModelPeer, members: u64, rounds: usize) {
        use kyozon_channel::park::Park;
        for round in 1..=rounds {
            self.here[me.me().number() as usize].store(round, Ordering::Relaxed);
            if self.barrier.wait(me, members, None).unwrap() {
                self.last.fetch_add(1, Ordering::Relaxed);
            }
            for (number, here) in self.here.iter().enumerate() {
                if members & 1 << number != 0 {
                    assert!(here.load(Ordering::Relaxed) >= round);
                }
            }
        }
    }
}

#[test]
fn no_peer_passes_a_barrier_before_all_arrive() {
    check(4, || {
        run(
            Meeting::default(),
            &[|meeting, me| meeting.meet(&me, 0b11, 2), |meeting, me| meeting.meet(&me, 0b11, 2)],
        );
    });
}

#[test]
fn three_meet_at_a_barrier() {
    fn body(meeting: &Meeting, me: ModelPeer) {
        meeting.meet(&me, 0b111, 1);
    }
    check(2, || run(Meeting::default(), &[body, body, body]));
}

#[test]
#[ignore = "minutes"]
fn three_meet_at_a_barrier_deep() {
    fn body(meeting: &Meeting, me: ModelPeer) {
        meeting.meet(&me, 0b111, 2);
    }
    check(2, || run(Meeting::default(), &[body, body, body]));
}

/// All members pass, or none does.
#[test]
fn a_barrier_time_out_lets_all_pass_or_none() {
    #[derive(Default)]
    struct Shared {
        barrier: Barrier<Strong>,
        passed: AtomicUsize,
        out: AtomicUsize,
    }
    fn count(shared: &Shared, result: Result<bool, Error>) {
        if result.is_ok() {
            shared.passed.fetch_add(1, Ordering::Relaxed);
        }
        if shared.out.fetch_add(1, Ordering::AcqRel) == 1 {
            let passed = shared.passed.load(Ordering::Relaxed);
            assert!(passed == 0 || passed == 2, "{passed}");
        }
    }
    check(4, || {
        run(
            Shared::default(),
            &[
                |shared, me| count(shared, shared.barrier.wait(&me, 0b11, Some(10))),
                |shared, me| {
                    let result = shared.barrier.wait(&me, 0b11, None);
                    assert!(result.is_ok() || result == Err(Error::Poisoned));
                    count(shared, result);
                },
            ],
        );
    });
}

#[test]
fn a_barrier_does_not_wait_for_a_dead_peer() {
    check(4, || {
        run(
            Barrier::<Strong>::default(),
            &[
                |_, me| me.die(),
                |barrier, me| assert_eq!(barrier.wait(&me, 0b11, None), Err(Error::Poisoned)),
            ],
        );
    });
}

#[derive(Default)]
struct Notice {
    mutex: RawMutex<Strong>,
    condvar: Condvar<Strong>,
    posted: AtomicBool,
}

impl Notice {
    fn wait(&self, me: ModelPeer, deadline: Option<u64>) {
        let mut held = self.mutex.lock(&me, None).unwrap();
        while !self.posted.load(Ordering::Relaxed) {
            match self.condvar.wait(&me, &self.mutex, held, deadline) {
                Ok((again, woken)) => {
                    held = again;
                    if woken == Woken::TimedOut {
                        break;
                    }
                }
                // The mutex could not be acquired in time.
                Err(error) => return assert_eq!((error, deadline), (Error::TimedOut, Some(10))),
            }
        }
        assert!(self.mutex.unlock(&me, held));
    }
    fn post(&self, me: &ModelPeer) {
        let held = self.mutex.lock(me, None).unwrap();
        self.posted.store(true, Ordering::Relaxed);
        assert!(self.mutex.unlock(me, held));
    }
}

#[test]
fn a_notification_is_not_lost() {
    check(4, || {
        run(
            Notice::default(),
            &[
                |notice, me| notice.wait(me, None),
                |notice, me| {
                    notice.post(&me);
                    notice.condvar.notify_one(&me);
                },
            ],
        );
    });
}

#[test]
fn notify_all_wakes_all() {
    check(2, || {
        run(
            Notice::default(),
            &[
                |notice, me| notice.wait(me, None),
                |notice, me| notice.wait(me, None),
                |notice, me| {
                    notice.post(&me);
                    notice.condvar.notify_all(&me);
                },
            ],
        );
    });
}

#[test]
fn a_notification_goes_to_a_waiting_peer() {
    check(2, || {
        run(
            Notice::default(),
            &[
                |notice, me| notice.wait(me, None),
                |notice, me| notice.wait(me, Some(10)),
                |notice, me| {
                    notice.post(&me);
                    notice.condvar.notify_one(&me);
                    notice.condvar.notify_one(&me);
                },
            ],
        );
    });
}

type Shelf<const PEERS: usize> = Locked<RawRwLock<Strong, PEERS>>;

fn write<const PEERS: usize>(shelf: &Shelf<PEERS>, me: ModelPeer) {
    assert_eq!(shelf.lock.write(&me, None), Ok(Acquired::Clean));
    shelf.change();
    assert!(shelf.lock.unlock_write(&me, Acquired::Clean));
}

fn read<const PEERS: usize>(shelf: &Shelf<PEERS>, me: ModelPeer) {
    assert_eq!(shelf.lock.read(&me, None), Ok(Acquired::Clean));
    shelf.read();
    assert!(shelf.lock.unlock_read(&me));
}

#[test]
fn a_writer_excludes_a_reader() {
    check(4, || run(Shelf::<2>::default(), &[write, read]));
}

#[test]
fn a_writer_excludes_a_writer() {
    check(4, || run(Shelf::<2>::default(), &[write, write]));
}

#[test]
fn a_writer_excludes_a_writer_and_a_reader() {
    check(2, || run(Shelf::<3>::default(), &[write, write, read]));
}

#[test]
#[ignore = "minutes"]
fn a_writer_excludes_two_readers_deep() {
    check(3, || run(Shelf::<3>::default(), &[write, read, read]));
}

#[test]
fn a_writer_time_out_lets_others_in() {
    check(2, || {
        run(
            Shelf::<3>::default(),
            &[read, read, |shelf, me| {
                if shelf.lock.write(&me, Some(10)).is_ok() {
                    shelf.change();
                    assert!(shelf.lock.unlock_write(&me, Acquired::Clean));
                }
            }],
        );
    });
}

#[test]
fn a_dead_writer_or_reader_poisons() {
    check(2, || {
        run(
            Shelf::<2>::default(),
            &[
                |shelf, me| {
                    let _ = shelf.lock.write(&me, None).unwrap();
                    me.die();
                },
                |shelf, me| {
                    let _ = shelf.lock.read(&me, None).unwrap();
                    assert!(shelf.lock.unlock_read(&me));
                    let held = shelf.lock.write(&me, None).unwrap();
                    assert!(shelf.lock.unlock_write(&me, held));
                },
            ],
        );
    });
    check(2, || {
        run(
            Shelf::<2>::default(),
            &[
                |shelf, me| {
                    let _ = shelf.lock.read(&me, None).unwrap();
                    me.die();
                },
                |shelf, me| {
                    // The reader may not have begun.
                    assert!(shelf.lock.write(&me, None).is_ok());
                    shelf.change();
                    assert!(shelf.lock.unlock_write(&me, Acquired::Clean));
                },
            ],
        );
    });
}
