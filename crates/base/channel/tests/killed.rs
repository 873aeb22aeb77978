//! A peer is killed before each of its steps in turn. The next peers continue within their deadlines, and learn of the
//! death if a change may be incomplete.

mod peer_support;

use kyozon_channel::error::Error;
use kyozon_channel::fuzz::{FakeGroup, FakePeer};
use kyozon_channel::park::Park;
use kyozon_channel::sync::{Acquired, Barrier, Condvar, RawMutex, RawRwLock, Semaphore};
use kyozon_channel::word::Word;
use kyozon_channel::{mpmc, spsc};
use peer_support::{clear_hook, kill_at, set_hook, Bytes, Hooked};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

const VICTIM: u8 = 7;

/// A generous deadline: a death is noticed after one heartbeat.
fn soon(peer: &FakePeer<'_>) -> Option<u64> {
    Some(peer.now() + 100 * peer.heartbeat())
}

/// Runs `scene` with its victim dying before step 0, 1 and so on, until the victim survives. Returns the number of
/// steps.
fn at_each_step(mut scene: impl FnMut(&FakeGroup, &mut dyn FnMut(&mut dyn FnMut()))) -> u64 {
    for at in 0.. {
        let world = FakeGroup::new();
        let mut survived = false;
        scene(&world, &mut |act| {
            survived = kill_at(at, act).is_some();
            if !survived {
                world.set_dead(1 << VICTIM);
            }
        });
        if survived {
            return at;
        }
        assert!(at < 10_000);
    }
    unreachable!()
}

/// Two words that are equal unless a peer is inside the lock.
#[derive(Default)]
struct Both(Hooked, Hooked);

impl Both {
    fn change(&self) {
        self.0.fetch_add(1, Relaxed);
        self.1.fetch_add(1, Relaxed);
    }
    /// Checks that the words are consistent if the lock is clean.
    fn check(&self, held: Acquired, poisoned: &mut u32) {
        assert!(held == Acquired::Poisoned || self.0.get() == self.1.get());
        *poisoned += u32::from(held == Acquired::Poisoned);
    }
}

#[test]
fn killed_while_holding_a_mutex() {
    let mut poisoned = 0;
    let steps = at_each_step(|world, kill| {
        let (mutex, both) = (RawMutex::<Hooked>::default(), Both::default());
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        kill(&mut || {
            assert_eq!(mutex.lock(&victim, None), Ok(Acquired::Clean));
            both.change();
            assert!(mutex.unlock(&victim, Acquired::Clean));
        });
        let held = mutex.lock(&next, soon(&next)).unwrap();
        both.check(held, &mut poisoned);
        assert!(mutex.unlock(&next, held));
        assert_eq!(mutex.lock(&next, soon(&next)), Ok(held), "the state is kept");
        assert!(mutex.unlock(&next, Acquired::Clean));
        assert_eq!(mutex.lock(&world.peer(2), soon(&next)), Ok(Acquired::Clean));
    });
    // Before each of the two changes, and before each of the two steps of releasing the lock.
    assert_eq!((steps, poisoned), (5, 4));
}

#[test]
fn killed_while_waiting_for_a_mutex() {
    at_each_step(|world, kill| {
        let mutex = RawMutex::<Hooked>::default();
        let (holder, victim, next) = (world.peer(0), world.peer(VICTIM), world.peer(1));
        assert_eq!(mutex.lock(&holder, None), Ok(Acquired::Clean));
        kill(&mut || {
            assert_eq!(mutex.lock(&victim, Some(victim.now() + 25)), Err(Error::TimedOut));
        });
        assert!(mutex.unlock(&holder, Acquired::Clean));
        assert_eq!(mutex.lock(&next, soon(&next)), Ok(Acquired::Clean));
    });
}

#[test]
fn a_waiter_that_gives_up_wakes_another() {
    let world = FakeGroup::new();
    let mutex = Rc::new(RawMutex::<Hooked>::default());
    let (holder, first, second) = (world.peer(0), world.peer(1), world.peer(2));
    assert_eq!(mutex.lock(&holder, None), Ok(Acquired::Clean));
    // Both stay registered.
    for waiter in [&first, &second] {
        assert!(kill_at(12, || mutex.lock(waiter, None)).is_none());
    }
    world.take_woken();
    assert!(mutex.unlock(&holder, Acquired::Clean));
    assert_eq!(world.take_woken(), 1 << 1);
    // Another peer acquires and releases the mutex at each step of the first waiter, so that none of its changes
    // succeeds.
    let world: &'static FakeGroup = Box::leak(Box::new(world));
    let first = world.peer(1);
    let (changed, mut held) = (mutex.clone(), false);
    set_hook(move |_| {
        let other = world.peer(3);
        if held {
            assert!(changed.unlock(&other, Acquired::Clean));
        } else {
            assert_eq!(changed.lock(&other, None), Ok(Acquired::Clean));
        }
        held = !held;
    });
    let result = mutex.lock(&first, Some(first.now() + 25));
    clear_hook();
    assert_eq!(result, Err(Error::TimedOut));
    assert_eq!(world.take_woken() & 1 << 2, 1 << 2);
}

#[test]
fn killed_while_reading_or_writing_under_a_lock() {
    let mut poisoned = 0;
    at_each_step(|world, kill| {
        let (lock, both) = (RawRwLock::<Hooked, 16>::default(), Both::default());
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        kill(&mut || {
            assert_eq!(lock.read(&victim, None), Ok(Acquired::Clean));
            // A reader can change what has its own synchronization.
            both.change();
            assert!(lock.unlock_read(&victim));
        });
        let seen = lock.write(&next, soon(&next)).unwrap();
        both.check(seen, &mut poisoned);
        assert!(lock.unlock_write(&next, Acquired::Clean));
        assert_eq!(lock.read(&next, soon(&next)), Ok(Acquired::Clean));
    });
    assert!(poisoned >= 4, "{poisoned}");
    // The writer that finds the dead reader dies as well, or gives up.
    at_each_step(|world, kill| {
        let lock = RawRwLock::<Hooked, 16>::default();
        let (reader, live) = (world.peer(VICTIM + 1), world.peer(2));
        assert_eq!(lock.read(&reader, None), Ok(Acquired::Clean));
        assert_eq!(lock.read(&live, None), Ok(Acquired::Clean));
        world.set_dead(1 << (VICTIM + 1));
        let victim = world.peer(VICTIM);
        kill(&mut || assert_eq!(lock.write(&victim, soon(&victim)), Err(Error::TimedOut)));
        world.set_dead(1 << (VICTIM + 1) | 1 << VICTIM);
        assert!(lock.unlock_read(&live));
        let next = world.peer(1);
        assert_eq!(lock.write(&next, soon(&next)), Ok(Acquired::Poisoned));
    });
    let mut poisoned = 0;
    at_each_step(|world, kill| {
        let (lock, both) = (RawRwLock::<Hooked, 16>::default(), Both::default());
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        kill(&mut || {
            assert_eq!(lock.write(&victim, None), Ok(Acquired::Clean));
            both.change();
            assert!(lock.unlock_write(&victim, Acquired::Clean));
        });
        let seen = lock.read(&next, soon(&next)).unwrap();
        both.check(seen, &mut poisoned);
        assert!(lock.unlock_read(&next));
        assert_eq!(lock.write(&next, soon(&next)), Ok(seen));
        assert!(lock.unlock_write(&next, Acquired::Clean));
        assert_eq!(lock.read(&next, soon(&next)), Ok(Acquired::Clean));
    });
    assert!(poisoned >= 4, "{poisoned}");
}

#[test]
fn killed_in_a_barrier() {
    at_each_step(|world, kill| {
        let barrier = Barrier::<Hooked>::default();
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        let members = 1 << VICTIM | 1 << 1;
        kill(&mut || {
            let result = barrier.wait(&victim, members, Some(victim.now() + 25));
            assert_eq!(result, Err(Error::TimedOut));
        });
        let result = barrier.wait(&next, members, soon(&next));
        assert!(result.is_ok() || result == Err(Error::Poisoned), "{result:?}");
        barrier.reset();
        assert_eq!(barrier.wait(&next, 1 << 1, soon(&next)), Ok(true));
    });
}

#[test]
fn killed_while_waiting_for_a_notification() {
    at_each_step(|world, kill| {
        let (mutex, condvar) = (RawMutex::<Hooked>::default(), Condvar::<Hooked>::default());
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        kill(&mut || {
            let held = mutex.lock(&victim, None).unwrap();
            let (held, _) = condvar.wait(&victim, &mutex, held, None).unwrap();
            assert!(mutex.unlock(&victim, held));
        });
        let held = mutex.lock(&next, soon(&next)).unwrap();
        condvar.notify_one(&next);
        assert!(mutex.unlock(&next, held));
        let held = mutex.lock(&next, soon(&next)).unwrap();
        assert!(condvar.wait(&next, &mutex, held, soon(&next)).is_ok());
    });
}

#[test]
fn killed_while_waiting_for_a_permit() {
    at_each_step(|world, kill| {
        let semaphore = Semaphore::<Hooked>::default();
        let (victim, next) = (world.peer(VICTIM), world.peer(1));
        kill(&mut || {
            let result = semaphore.acquire(&victim, Some(victim.now() + 25));
            assert_eq!(result, Err(Error::TimedOut));
        });
        semaphore.release(&next, 1);
        assert_eq!(semaphore.acquire(&next, soon(&next)), Ok(()));
    });
}

type Control = spsc::Control<Hooked>;

#[test]
fn killed_while_writing_to_a_ring() {
    let text: Vec<u8> = (0..100).collect();
    let steps = at_each_step(|world, kill| {
        let (control, data) = (Rc::new(Control::default()), Bytes::new(256));
        let (victim, other) = (world.peer(VICTIM), world.peer(1));
        let mut reader = spsc::Reader::attach(control.clone(), data.clone(), &other).unwrap();
        kill(&mut || {
            let mut writer = spsc::Writer::attach(control.clone(), data.clone(), &victim).unwrap();
            for len in [100, 60, 80, 90] {
                let _ = writer.send(&text[..len], &victim, Some(victim.now() + 25));
            }
            writer.close(&victim);
        });
        let mut buffer = [0; 120];
        let mut lengths = [100, 60, 80, 90].into_iter();
        let end = loop {
            match reader.recv(&mut buffer, &other, soon(&other)) {
                Ok(len) => assert_eq!((Some(len), &buffer[..len]), (lengths.next(), &text[..len])),
                Err(error) => break error,
            }
        };
        // The victim may have died before it attached.
        let ends = [Error::Closed, Error::PeerDied, Error::TimedOut];
        assert!(ends.contains(&end), "{end}");
        // Another writer continues.
        let mut writer = spsc::Writer::attach(control, data, &world.peer(2)).unwrap();
        assert_eq!(writer.send(&text, &world.peer(2), soon(&other)), Ok(()));
        assert_eq!(reader.recv(&mut buffer, &other, soon(&other)), Ok(100));
        assert_eq!(buffer[..100], text);
    });
    assert!(steps > 30);
}

#[test]
fn killed_while_reading_from_a_ring() {
    at_each_step(|world, kill| {
        let (control, data) = (Rc::new(Control::default()), Bytes::new(256));
        let (one, victim) = (world.peer(0), world.peer(VICTIM));
        let mut writer = spsc::Writer::attach(control.clone(), data.clone(), &one).unwrap();
        for number in 0..4 {
            assert_eq!(writer.try_send(&[number; 56], &one), Ok(true));
        }
        kill(&mut || {
            let mut reader = spsc::Reader::attach(control.clone(), data.clone(), &victim).unwrap();
            for _ in 0..5 {
                let _ = reader.recv(&mut [0; 120], &victim, Some(victim.now() + 25));
            }
        });
        let mut sent = 4;
        let end = loop {
            match writer.send(&[sent; 56], &one, soon(&one)) {
                Ok(()) => sent += 1,
                Err(error) => break error,
            }
        };
        assert!(end == Error::PeerDied || end == Error::TimedOut, "{end}");
        // Another reader gets the records in order.
        let other = world.peer(2);
        let mut reader = spsc::Reader::attach(control, data, &other).unwrap();
        let mut buffer = [0; 120];
        for number in sent - 4..sent {
            assert_eq!(reader.recv(&mut buffer, &other, soon(&other)), Ok(56));
            assert_eq!(buffer[..56], [number; 56]);
        }
    });
}

#[test]
fn killed_in_a_ring_between_many() {
    let act = |writes: bool| {
        at_each_step(|world, kill| {
            let slots = (0..4).map(|_| mpmc::Slot::<Hooked>::default()).collect::<Vec<_>>();
            let control = Box::new(mpmc::Control::default());
            let ring = mpmc::Ring::new(control, slots, Bytes::new(64)).unwrap();
            let (victim, one) = (world.peer(VICTIM), world.peer(1));
            let mut expected = vec![];
            for number in 0..2 {
                ring.send(&[number; 9], &one, None).unwrap();
                expected.push(number);
            }
            kill(&mut || {
                if writes {
                    ring.send(&[9; 9], &victim, None).unwrap();
                } else {
                    ring.recv(&mut [0; 16], &victim, None).unwrap();
                }
            });
            expected.push(5);
            ring.send(&[5; 9], &one, soon(&one)).unwrap();
            let mut found = vec![];
            let mut buffer = [0; 16];
            while let Ok(len) = ring.recv(&mut buffer, &one, soon(&one)) {
                assert!(len == 9 && buffer[..9].iter().all(|byte| *byte == buffer[0]));
                found.push(buffer[0]);
            }
            if writes {
                // The victim's own record may or may not have arrived.
                assert!(found == expected || found == [0, 1, 9, 5], "{found:?}");
            } else {
                assert!(found == expected || found == expected[1..], "{found:?}");
            }
            // Every slot is usable again.
            for lap in 0..2 {
                for number in 0..4 {
                    ring.send(&[lap, number], &one, soon(&one)).unwrap();
                }
                for number in 0..4 {
                    assert_eq!(ring.recv(&mut buffer, &one, soon(&one)), Ok(2));
                    assert_eq!(buffer[..2], [lap, number]);
                }
            }
        })
    };
    assert!(act(true) > 5 && act(false) > 5);
}
