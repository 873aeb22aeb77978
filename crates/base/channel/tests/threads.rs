//! Locks and rings between threads of this process, in raw memory, as programs use them. `KYOZON_STRESS` multiplies the
//! amount of work.

use kyozon_channel::border::{LockError, Mutex, Plain, Region, RwLock, Shared, TrustedGroup};
use kyozon_channel::error::Error;
use kyozon_channel::park::Park;
use kyozon_channel::sync::{Acquired, Barrier, Condvar, RawMutex, Semaphore, Woken};
use kyozon_channel::threads::{Member, Threads};
use kyozon_channel::{mpmc, spsc};
use std::cell::UnsafeCell;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

/// Zeroed memory, aligned to a page.
struct Memory(Box<[Page]>);

#[repr(C, align(4096))]
struct Page(UnsafeCell<[u8; 4096]>);

impl Memory {
    fn new(bytes: usize) -> Self {
        let page = |_| Page(UnsafeCell::new([0; 4096]));
        Self((0..bytes.div_ceil(4096)).map(page).collect())
    }

    fn region(&self) -> Region<'_> {
        // SAFETY: the pages, which are accessed through this only.
        unsafe { Region::new(self.0.as_ptr() as *mut u8, self.0.len() * 4096) }
    }
}

fn rounds(default: usize) -> usize {
    let times = std::env::var("KYOZON_STRESS").ok().and_then(|text| text.parse().ok());
    let default = if cfg!(miri) { default.min(20) } else { default };
    default * times.unwrap_or(1)
}

const SPINS: u32 = if cfg!(miri) { 1 } else { 100 };

/// Longer than any of these tests takes, so that none hangs, not even after an error.
fn limit(me: &Member) -> Option<u64> {
    Some(me.now() + 120_000_000_000)
}

/// Runs `body` in `count` threads of `group`, each with its member.
fn each<'a>(group: &Arc<Threads>, count: u8, body: impl Fn(&Member) + Send + Sync + 'a) {
    thread::scope(|scope| {
        for number in 0..count {
            let (group, body) = (group.clone(), &body);
            scope.spawn(move || body(&group.join(number).unwrap()));
        }
    });
}

#[test]
fn a_mutex_protects_a_counter() {
    let group = Threads::new(SPINS);
    let memory = Memory::new(4096);
    let counter: &Mutex<u64> = memory.region().get(64).unwrap();
    let times = rounds(20_000);
    each(&group, 4, |me| {
        for _ in 0..times {
            *counter.lock(me, limit(me)).unwrap() += 1;
        }
    });
    each(&group, 1, |me| assert_eq!(*counter.lock(me, None).unwrap(), 4 * times as u64));
}

#[test]
fn a_reader_never_sees_half_a_write() {
    let group = Threads::new(SPINS);
    let memory = Memory::new(4096);
    let both: &RwLock<[u64; 2]> = memory.region().get(0).unwrap();
    let times = rounds(5_000);
    each(&group, 4, |me| {
        for round in 0..times {
            if round % 4 == usize::from(me.me().number()) {
                let mut both = both.write(me, limit(me)).unwrap();
                both[0] += 1;
                both[1] += 1;
            } else {
                let both = both.read(me, limit(me)).unwrap();
                assert_eq!(both[0], both[1]);
            }
        }
    });
    each(&group, 1, |me| {
        assert_eq!(both.read(me, None).unwrap()[0] as usize, times.div_ceil(4) * 4)
    });
}

#[test]
fn a_queue_of_mutex_and_condvar_delivers_all() {
    let group = Threads::new(SPINS);
    #[derive(Default)]
    struct Queue {
        items: Mutex<Vec<u64>>,
        filled: Condvar,
        drained: Condvar,
    }
    let (queue, total) = (Queue::default(), Mutex::<u64>::new(0));
    let times = rounds(2_000) as u64;
    each(&group, 4, |me| {
        let makes = me.me().number() < 2;
        let mut sum = 0;
        for number in 1..=times {
            let mut items = queue.items.lock(me, limit(me)).unwrap();
            while if makes { items.len() == 3 } else { items.is_empty() } {
                let wanted = if makes { &queue.drained } else { &queue.filled };
                let (again, woken) = items.wait(wanted, limit(me)).unwrap();
                assert_eq!(woken, Woken::Perhaps);
                items = again;
            }
            if makes {
                items.push(number);
                drop(items);
                queue.filled.notify_one(me);
            } else {
                sum += items.pop().unwrap();
                drop(items);
                queue.drained.notify_one(me);
            }
        }
        *total.lock(me, limit(me)).unwrap() += sum;
    });
    each(&group, 1, |me| assert_eq!(*total.lock(me, None).unwrap(), times * (times + 1)));
}

#[test]
fn a_semaphore_admits_two_at_a_time() {
    let group = Threads::new(SPINS);
    use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
    let (semaphore, inside) = (Semaphore::new(2), AtomicU32::new(0));
    let times = rounds(5_000);
    each(&group, 4, |me| {
        for _ in 0..times {
            semaphore.acquire(me, limit(me)).unwrap();
            assert!(inside.fetch_add(1, SeqCst) < 2);
            inside.fetch_sub(1, SeqCst);
            semaphore.release(me, 1);
        }
    });
    assert_eq!(semaphore.permits(), 2);
}

#[test]
fn a_barrier_keeps_all_in_step() {
    let group = Threads::new(SPINS);
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    let barrier = Barrier::new();
    let (steps, last) = ([const { AtomicUsize::new(0) }; 4], AtomicUsize::new(0));
    let times = rounds(500);
    each(&group, 4, |me| {
        for step in 1..=times {
            steps[usize::from(me.me().number())].store(step, Relaxed);
            if barrier.wait(me, 0b1111, limit(me)).unwrap() {
                last.fetch_add(1, Relaxed);
            }
            assert!(steps
                .iter()
                .all(|at| at.load(Relaxed) >= step && at.load(Relaxed) <= step + 1));
        }
    });
    assert_eq!(last.load(Relaxed), times);
}

#[test]
fn a_ring_between_two_delivers_everything() {
    const BYTES: usize = 1 << 16;
    let memory = Memory::new(BYTES + spsc::HEADER);
    let (control, data) = memory.region().spsc(0, BYTES).unwrap();
    let times = rounds(20_000);
    let len = |number: usize| number.wrapping_mul(0x9e37_79b9) >> 7 & [63, 1023, 16383][number % 3];
    let group = Threads::new(SPINS);
    let text: Vec<u8> = (0..16384 + 256).map(|i| (i % 251) as u8).collect();
    thread::scope(|scope| {
        scope.spawn(|| {
            let me = group.join(0).unwrap();
            let mut writer = spsc::Writer::attach(control, data, &me).unwrap();
            for number in 0..times {
                let at = number % 256;
                writer.send(&text[at..at + len(number)], &me, limit(&me)).unwrap();
            }
            writer.close(&me);
        });
        let me = group.join(1).unwrap();
        let mut reader = spsc::Reader::attach(control, data, &me).unwrap();
        let mut buffer = vec![0; 16384];
        for number in 0..times {
            let at = number % 256;
            assert_eq!(reader.recv(&mut buffer, &me, limit(&me)), Ok(len(number)));
            assert!(buffer[..len(number)] == text[at..at + len(number)], "record {number}");
        }
        assert_eq!(reader.recv(&mut buffer, &me, limit(&me)), Err(Error::Closed));
    });
}

#[test]
fn a_ring_between_many_delivers_everything() {
    let group = Threads::new(SPINS);
    const SLOTS: usize = 8;
    let memory = Memory::new(mpmc::bytes(SLOTS, 32).unwrap());
    let ring = memory.region().mpmc(0, SLOTS, 32).unwrap();
    let (times, total) = (rounds(10_000) as u64, Mutex::<u64>::new(0));
    each(&group, 4, |me| {
        let mut sum = 0;
        let mut last = [0; 2];
        for number in 1..=times {
            if me.me().number() < 2 {
                let mut record = [me.me().number(); 32];
                record[..8].copy_from_slice(&number.to_le_bytes());
                ring.send(&record[..9 + number as usize % 24], me, limit(me)).unwrap();
            } else {
                let mut record = [0; 32];
                let len = ring.recv(&mut record, me, limit(me)).unwrap();
                let number = u64::from_le_bytes(record[..8].try_into().unwrap());
                assert_eq!(len, 9 + number as usize % 24);
                assert!(record[8..len].iter().all(|byte| *byte == record[8]));
                // The records of one sender arrive in order at each receiver.
                let last = &mut last[usize::from(record[8])];
                assert!(number > *last);
                *last = number;
                sum += number;
            }
        }
        *total.lock(me, limit(me)).unwrap() += sum;
    });
    each(&group, 1, |me| assert_eq!(*total.lock(me, None).unwrap(), times * (times + 1)));
}

#[test]
fn a_dead_owner_poisons_its_lock() {
    let group = Threads::new(0);
    let shared = Arc::new(Mutex::<u64>::new(1));
    let (leaving, leaver) = (shared.clone(), group.clone());
    let left = thread::spawn(move || {
        let me = leaver.join(1).unwrap();
        std::mem::forget(leaving.lock(&me, None).unwrap());
    });
    left.join().unwrap();
    let me = group.join(0).unwrap();
    let error = shared.lock(&me, None).err().unwrap();
    assert_eq!(error.to_string(), "a peer died while it held this lock");
    drop(error);
    let Err(LockError::Poisoned(held)) = shared.lock(&me, None) else { panic!("it is clean") };
    let mut guard = held.recover_plain();
    assert_eq!(*guard, 1);
    *guard = 2;
    guard.clear_poison();
    drop(guard);
    assert_eq!(*shared.lock(&me, None).unwrap(), 2);
}

#[test]
fn lost_data_is_replaced_but_not_dropped() {
    struct Torn(u32);
    impl Drop for Torn {
        fn drop(&mut self) {
            assert_ne!(self.0, 1, "data of a dead owner is dropped");
        }
    }
    let (group, shared) = (Threads::new(0), Mutex::new(Torn(1)));
    let lock = <RwLock<Torn>>::new(Torn(1));
    thread::scope(|scope| {
        scope.spawn(|| {
            let me = group.join(1).unwrap();
            std::mem::forget(shared.lock(&me, None).unwrap());
            std::mem::forget(lock.write(&me, None).unwrap());
        });
    });
    let me = group.join(0).unwrap();
    let Err(LockError::Poisoned(held)) = shared.lock(&me, None) else { panic!("it is clean") };
    assert_eq!(held.replace(Torn(2)).0, 2);
    assert_eq!(shared.lock(&me, None).unwrap().0, 2);
    assert!(matches!(lock.read(&me, None), Err(LockError::Poisoned(_))));
    let Err(LockError::Poisoned(held)) = lock.write(&me, None) else { panic!("it is clean") };
    assert_eq!(held.replace(Torn(3)).0, 3);
    assert_eq!(lock.read(&me, None).unwrap().0, 3);
}

#[test]
fn a_panic_poisons_a_lock_like_std() {
    let (group, shared) = (Threads::new(0), Arc::new(Mutex::new(1)));
    let lock = Arc::new(<RwLock<u64>>::new(1));
    let (theirs, readers, leaver) = (shared.clone(), lock.clone(), group.clone());
    let panicked = thread::spawn(move || {
        let me = leaver.join(1).unwrap();
        let _reads = readers.read(&me, None).unwrap();
        let _guard = theirs.lock(&me, None).unwrap();
        std::panic::resume_unwind(Box::new("as a test wants"));
    });
    assert!(panicked.join().is_err());
    let me = group.join(0).unwrap();
    assert!(matches!(shared.lock(&me, Some(0)), Err(LockError::Poisoned(_))));
    assert_eq!(*lock.write(&me, Some(0)).unwrap(), 1, "who reads leaves no poison");
}

#[test]
fn an_owner_learns_before_the_release_that_a_peer_may_wait() {
    let (group, mutex) = (Threads::new(0), RawMutex::new());
    let me = group.join(0).unwrap();
    let mut told = 0;
    let mut turn = |mutex: &RawMutex, waits: bool| {
        let held = mutex.lock(&me, None).unwrap();
        thread::scope(|scope| {
            let lock = || {
                let me = group.join(1).unwrap();
                let held = mutex.lock(&me, None).unwrap();
                assert!(mutex.unlock(&me, held));
            };
            if waits {
                scope.spawn(lock);
                thread::sleep(Duration::from_millis(50));
            }
            assert!(mutex.unlock_with(&me, held, || {
                assert_eq!(mutex.try_lock(&me), None, "released before");
                told += 1;
            }));
        });
        told
    };
    assert_eq!([false, true, false].map(|waits| turn(&mutex, waits)), [0, 1, 1]);
}

/// `wait` gives up a heartbeat after its deadline; `sleep` leaves the mutex to the caller.
#[test]
fn a_late_sleeper_waits_for_the_mutex_as_long_as_it_likes() {
    let (group, mutex, condvar) = (Threads::new(0), RawMutex::new(), Condvar::new());
    thread::scope(|scope| {
        let me = group.join(0).unwrap();
        let held = mutex.lock(&me, None).unwrap();
        let holder = scope.spawn(|| {
            let me = group.join(1).unwrap();
            let held = mutex.lock(&me, None).unwrap();
            thread::sleep(Duration::from_millis(300));
            assert!(mutex.unlock(&me, held));
        });
        let until = me.now() + 20_000_000;
        let slept = condvar.sleep(&me, &mutex, held, Some(until)).unwrap();
        assert_eq!(slept.woken, Woken::TimedOut);
        assert_eq!(mutex.lock(&me, None), Ok(Acquired::Clean));
        assert!(holder.is_finished() || me.now() > until + 200_000_000);
        assert!(mutex.unlock(&me, held));
    });
}

#[test]
fn a_deadline_is_kept() {
    let group = Threads::new(0);
    let (me, other) = (group.join(0).unwrap(), Threads::new(0));
    let mutex = Mutex::<u64>::new(1);
    let _held = mutex.lock(&me, None).unwrap();
    assert!(matches!(mutex.lock(&me, None), Err(LockError::Failed(Error::Deadlock))));
    drop(other);
    thread::scope(|scope| {
        scope.spawn(|| {
            let me = group.join(1).unwrap();
            let at = me.now() + 5_000_000;
            assert!(matches!(mutex.lock(&me, Some(at)), Err(LockError::Failed(Error::TimedOut))));
            assert!(me.now() >= at);
        });
    });
}

/// Checks at compile time that these types may lie in regions.
#[test]
fn types_in_regions_are_plain() {
    fn plain<T: Plain>() {}
    fn trusted<T: TrustedGroup>() {}
    fn shared<T: Shared>() {}
    plain::<[u64; 4]>();
    shared::<Mutex<[u64; 4]>>();
    shared::<RwLock<u32>>();
    shared::<[RawMutex; 3]>();
    trusted::<Member>();
}

#[test]
fn a_lock_serves_one_group() {
    let (mutex, lock) = (Mutex::new(String::from("mine")), RwLock::<_>::new(String::from("mine")));
    let (one, other) = (Threads::new(SPINS), Threads::new(SPINS));
    let owner = one.join(0).unwrap();
    let (held, read) = (mutex.lock(&owner, None).unwrap(), lock.read(&owner, None).unwrap());
    // The number of the live owner is that of a dead peer in the other group.
    drop(other.join(0));
    let stranger = other.join(1).unwrap();
    assert!(matches!(mutex.lock(&stranger, None), Err(LockError::Failed(Error::NotAMember))));
    assert!(matches!(lock.write(&stranger, None), Err(LockError::Failed(Error::NotAMember))));
    assert!(matches!(lock.read(&stranger, None), Err(LockError::Failed(Error::NotAMember))));
    assert_eq!((held.as_str(), read.as_str()), ("mine", "mine"));
}
