//! Rings and locks beside a peer that writes any value at any time: nothing outside is accessed, nothing panics, every
//! call ends after a bounded number of steps, and results are in range. Seeded;
//! `KYOZON_FUZZ_ROUNDS` rounds, 300 by default.

mod peer_support;

use kyozon_channel::error::Error;
use kyozon_channel::fuzz::{FakeGroup, FakePeer};
use kyozon_channel::park::Park;
use kyozon_channel::sync::{Acquired, Barrier, Condvar, RawMutex, RawRwLock, Semaphore};
use kyozon_channel::word::Word;
use kyozon_channel::{mpmc, spsc};
use peer_support::{clear_hook, counted, rounds, set_hook, Bytes, Hooked, Random};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes of data of the spsc ring.
const BYTES: usize = 256;
/// Deadline of a call: five and a half heartbeats of 10. A call takes some ten steps per heartbeat.
const PATIENCE: u64 = 55;
const STEPS: u64 = 400;
/// The mpmc ring makes up to 1024 attempts per check.
const MANY_STEPS: u64 = 40_000;

type Control = spsc::Control<Hooked>;
type Writer = spsc::Writer<Rc<Control>, Bytes>;
type Reader = spsc::Reader<Rc<Control>, Bytes>;

fn soon(peer: &FakePeer<'_>) -> Option<u64> {
    Some(peer.now() + PATIENCE)
}

struct Pair {
    control: Rc<Control>,
    data: Bytes,
    writer: Writer,
    reader: Reader,
}

fn pair(world: &FakeGroup) -> Pair {
    let (control, data) = (Rc::new(Control::default()), Bytes::new(BYTES));
    let writer = Writer::attach(control.clone(), data.clone(), &world.peer(0)).unwrap();
    let reader = Reader::attach(control.clone(), data.clone(), &world.peer(1)).unwrap();
    Pair { control, data, writer, reader }
}

/// Sends and receives in every way, and checks that results are in range.
fn exchange(pair: &mut Pair, world: &FakeGroup, outcomes: &mut Outcomes) {
    let (one, other) = (world.peer(0), world.peer(1));
    let limit = pair.writer.limit();
    let mut buffer = [0; BYTES];
    let text = [0x5a; BYTES];
    // Here the ring is empty; below, it is full.
    outcomes.see(counted(STEPS, || pair.reader.recv(&mut buffer, &other, soon(&other))).0);
    for len in [limit, 8, 61, 100] {
        let send = || pair.writer.send(&text[..len], &one, soon(&one));
        outcomes.see(counted(STEPS, send).0);
        let recv = || pair.reader.recv(&mut buffer, &other, soon(&other));
        let received = counted(STEPS, recv).0;
        assert!(received.is_err() || received.unwrap() <= limit);
        outcomes.see(received);
        let (sent, _) = counted(STEPS, || pair.writer.try_send(&text[..len], &one));
        outcomes.see(sent);
        if let (Ok(Some(view)), _) = counted(STEPS, || pair.reader.try_peek()) {
            assert!(view.len() <= limit && view.place().1 + view.len() <= BYTES);
            view.release(&other);
        }
    }
    for _ in 0..3 {
        outcomes.see(counted(STEPS, || pair.writer.send(&text[..limit], &one, soon(&one))).0);
    }
    outcomes.see(counted(STEPS, || pair.reader.recv(&mut buffer, &other, soon(&other))).0);
}

/// Counts outcomes, to prove that a test reaches its cases.
#[derive(Debug, Default)]
struct Outcomes {
    done: u64,
    late: u64,
    corrupt: u64,
    gone: u64,
    other: u64,
}

impl Outcomes {
    fn see<T>(&mut self, result: Result<T, Error>) {
        match result {
            Ok(_) => self.done += 1,
            Err(Error::TimedOut) => self.late += 1,
            Err(Error::Corrupt) => self.corrupt += 1,
            Err(Error::Closed | Error::PeerDied) => self.gone += 1,
            Err(_) => self.other += 1,
        }
    }
}

/// Values that break positions, sleep words and identities.
const VALUES: [u64; 20] = [
    0,
    1,
    7,
    8,
    64,
    248,
    256,
    264,
    512,
    1 << 32,
    1 << 32 | 8,
    1 << 32 | 248,
    2 << 32,
    64 << 32,
    65 << 32,
    1 << 63,
    1 << 63 | 63,
    1 << 62,
    u64::MAX - 7,
    u64::MAX,
];

/// Sets every word of the header, and every word of data at which a record begins, at every step to every value.
#[test]
fn any_word_set_at_any_step_only_causes_an_error() {
    let world = FakeGroup::new();
    let (_, steps) =
        counted(10_000, || exchange(&mut pair(&world), &world, &mut Outcomes::default()));
    assert!(steps > 60, "{steps}");
    let mut outcomes = Outcomes::default();
    for at in 0..steps {
        for place in 0..6 + 4 {
            for value in VALUES {
                let mut pair = pair(&world);
                let (control, data) = (pair.control.clone(), pair.data.clone());
                let mut left = at + 1;
                set_hook(move |_| {
                    left = left.wrapping_sub(1);
                    match control.words().get(place) {
                        Some(word) if left == 0 => word.set(value),
                        None if left == 0 => data.set_word([0, 8, 72, 128][place - 6], value),
                        _ => {}
                    }
                });
                exchange(&mut pair, &world, &mut outcomes);
                clear_hook();
            }
        }
    }
    let Outcomes { done, late, corrupt, gone, .. } = outcomes;
    assert!([done, late, corrupt, gone].iter().all(|count| *count > 100), "{outcomes:?}");
}

#[test]
fn a_hostile_side_only_causes_an_error() {
    let mut outcomes = Outcomes::default();
    for seed in 1..=rounds(300) {
        println!("seed {seed}"); // the last seed in the output is the one that failed
        let world = FakeGroup::new();
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..20 {
            let mut pair = pair(&world);
            let (control, data, mut numbers) =
                (pair.control.clone(), pair.data.clone(), Random(random.next() | 1));
            let rarity = [4, 20, 60][seed as usize % 3];
            set_hook(move |word| {
                if numbers.below(rarity) > 0 {
                    return;
                }
                let any = control.words()[numbers.below(6) as usize];
                let word = word.filter(|_| numbers.below(2) > 0).unwrap_or(any);
                word.set(numbers.nasty(word.get()));
                let at = 8 * numbers.below(BYTES as u64 / 8) as usize;
                let kind = numbers.below(4) << 32;
                data.set_word(at, kind | (numbers.nasty(24) & 0xffff_ffff));
            });
            exchange(&mut pair, &world, &mut outcomes);
            // The header changes while a side attaches.
            let _ = Writer::attach(pair.control.clone(), pair.data.clone(), &world.peer(0));
            clear_hook();
        }
    }
    let Outcomes { done, late, corrupt, .. } = outcomes;
    assert!([done, late, corrupt].iter().all(|count| *count > 100), "{outcomes:?}");
}

#[test]
fn a_corrupt_ring_stays_unusable() {
    let world = FakeGroup::new();
    let (one, other) = (world.peer(0), world.peer(1));
    let mut pair = pair(&world);
    pair.control.words()[0].set(BYTES as u64 + 8);
    assert_eq!(pair.reader.try_peek().err(), Some(Error::Corrupt));
    pair.control.words()[0].set(0);
    assert_eq!(pair.reader.recv(&mut [0; BYTES], &other, None), Err(Error::Corrupt));
    while pair.writer.try_send(&[0; 24], &one) == Ok(true) {}
    pair.control.words()[3].set(BYTES as u64 + 8);
    assert_eq!(pair.writer.try_send(&[0; 24], &one), Err(Error::Corrupt));
    pair.control.words()[3].set(BYTES as u64);
    assert_eq!(pair.writer.send(&[0; 24], &one, None), Err(Error::Corrupt));
}

type Many = mpmc::Ring<Rc<mpmc::Control<Hooked>>, Rc<[mpmc::Slot<Hooked>]>, Bytes>;

#[test]
fn hostile_peers_only_cost_records_and_time() {
    let mut outcomes = Outcomes::default();
    for seed in 1..=rounds(300) {
        println!("seed {seed}"); // the last seed in the output is the one that failed
        let world = FakeGroup::new();
        let mut random = Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1);
        let control = Rc::new(mpmc::Control::default());
        let slots: Rc<[_]> = (0..4).map(|_| mpmc::Slot::default()).collect();
        let ring = Many::new(control.clone(), slots.clone(), Bytes::new(64)).unwrap();
        let mut numbers = Random(random.next() | 1);
        let rarity = [4, 40, 400][seed as usize % 3];
        set_hook(move |word| {
            if numbers.below(rarity) > 0 {
                return;
            }
            let any = match numbers.below(3) {
                0 => control.words()[numbers.below(4) as usize],
                _ => slots[numbers.below(4) as usize].words()[numbers.below(2) as usize],
            };
            let word = word.filter(|_| numbers.below(2) > 0).unwrap_or(any);
            word.set(numbers.nasty(word.get()));
        });
        for _ in 0..40 {
            world.set_dead(random.next() & random.next() & !0b1111);
            let me = world.peer(random.below(4) as u8);
            let len = random.below(17) as usize;
            let send = || ring.send(&[7; 16][..len], &me, soon(&me));
            outcomes.see(counted(MANY_STEPS, send).0);
            let mut buffer = [0; 16];
            let recv = || ring.recv(&mut buffer, &me, soon(&me));
            let received = counted(MANY_STEPS, recv).0;
            assert!(received.is_err() || received.unwrap() <= 16);
            outcomes.see(received);
        }
        clear_hook();
    }
    let Outcomes { done, late, corrupt, .. } = outcomes;
    assert!([done, late, corrupt].iter().all(|count| *count > 100), "{outcomes:?}");
}

/// Changes every word of every lock at random while honest peers use it.
#[test]
fn hostile_words_in_locks_only_cause_errors() {
    let mut outcomes = Outcomes::default();
    let (mut clean, mut poisoned) = (0, 0);
    for seed in 1..=rounds(300) {
        println!("seed {seed}"); // the last seed in the output is the one that failed
        let world = FakeGroup::new();
        let mut random = Random(seed.wrapping_mul(0xd134_2543_de82_ef95) | 1);
        let mutex = RawMutex::<Hooked>::default();
        let (condvar, semaphore) = (Condvar::<Hooked>::default(), Semaphore::<Hooked>::default());
        let (barrier, lock) = (Barrier::<Hooked>::default(), RawRwLock::<Hooked, 8>::default());
        let mut numbers = Random(random.next() | 1);
        let rarity = [3, 10, 60][seed as usize % 3];
        set_hook(move |word| {
            if let (0, Some(word)) = (numbers.below(rarity), word) {
                word.set(numbers.nasty(word.get()));
            }
        });
        for _ in 0..30 {
            world.set_dead(random.next() & random.next() & !0b1111_1111);
            let me = world.peer(random.below(9) as u8);
            let mut see = |result: Result<Acquired, Error>| {
                outcomes.see(result);
                match result {
                    Ok(Acquired::Clean) => clean += 1,
                    Ok(Acquired::Poisoned) => poisoned += 1,
                    Err(_) => {}
                }
                result
            };
            if let Ok(held) = see(counted(STEPS, || mutex.lock(&me, soon(&me))).0) {
                let wait = || condvar.wait(&me, &mutex, held, soon(&me));
                if let (Ok((held, _)), _) = counted(STEPS, wait) {
                    counted(STEPS, || mutex.unlock(&me, held));
                }
            }
            counted(STEPS, || condvar.notify_one(&me));
            counted(STEPS, || condvar.notify_all(&me));
            let acquire = || semaphore.acquire(&me, soon(&me));
            let _ = see(counted(STEPS, acquire).0.map(|()| Acquired::Clean));
            counted(STEPS, || semaphore.release(&me, random.nasty(1)));
            let wait = || barrier.wait(&me, random.next() | me.me().bit(), soon(&me));
            let _ = see(counted(STEPS, wait).0.map(|_| Acquired::Clean));
            if random.below(4) == 0 {
                barrier.reset();
            }
            if see(counted(STEPS, || lock.read(&me, soon(&me))).0).is_ok() {
                counted(STEPS, || lock.unlock_read(&me));
            }
            if let Ok(held) = see(counted(STEPS, || lock.write(&me, soon(&me))).0) {
                counted(STEPS, || lock.unlock_write(&me, held));
            }
        }
        clear_hook();
    }
    let Outcomes { done, late, .. } = outcomes;
    assert!(done > 100 && late > 100 && clean > 100 && poisoned > 100, "{outcomes:?} {poisoned}");
}

#[test]
fn a_lock_with_an_impossible_owner_is_taken_over() {
    let world = FakeGroup::new();
    let me = world.peer(3);
    for word in [1, 65 << 32, 1 << 62, 1 << 39 | 4 << 32, 9 << 32 | 2] {
        let mutex = RawMutex::<Hooked>::default();
        set_first(word);
        let result = mutex.lock(&me, soon(&me));
        clear_hook();
        assert_eq!(result, Ok(Acquired::Poisoned), "{word:#x}");
    }
    let mutex = RawMutex::<Hooked>::default();
    set_first(4 << 32 | 1);
    assert_eq!(mutex.lock(&me, None), Err(Error::Deadlock));
    clear_hook();
    let stranger = world.peer(8);
    let lock = RawRwLock::<Hooked, 8>::default();
    assert_eq!(lock.read(&stranger, None), Err(Error::NotAMember));
    assert_eq!(lock.write(&stranger, None), Err(Error::NotAMember));
    assert!(!lock.unlock_read(&stranger) && !lock.unlock_write(&stranger, Acquired::Clean));
    assert_eq!(Barrier::<Hooked>::default().wait(&stranger, 0xff, None), Err(Error::NotAMember));
}

/// Sets the next accessed word to `value`.
fn set_first(value: u64) {
    let mut first = true;
    set_hook(move |word| {
        if let (true, Some(word)) = (std::mem::take(&mut first), word) {
            word.store(value, Relaxed);
        }
    });
}
