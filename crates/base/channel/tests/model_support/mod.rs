//! Words, payload and peers whose every step the checker sees.
#![allow(dead_code)] // each test uses some of it

use kyozon_channel::data::Data;
use kyozon_channel::park::{Life, Park, Peer, Peers};
use kyozon_channel::word::Word;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{fence, AtomicBool, AtomicU64, Ordering};
use loom::sync::Arc;
use loom::thread::{self, Thread};
use std::cell::Cell;
use std::sync::Mutex;

thread_local! {
    /// How this run makes sequentially consistent accesses; see [`Strong`].
    static TRAILING: Cell<bool> = const { Cell::new(false) };
}

/// Every order with at most `preemptions` preemptions, or as many as `LOOM_MAX_PREEMPTIONS` says.
pub fn check(preemptions: usize, body: impl Fn() + Sync + Send + 'static) {
    let body = std::sync::Arc::new(body);
    for trailing in [false, true] {
        TRAILING.set(trailing);
        let mut model = loom::model::Builder::new();
        model.preemption_bound.get_or_insert(preemptions);
        let body = body.clone();
        model.check(move || body());
    }
}

/// That `body`, which is all of `test`, ends in a deadlock. The checker aborts the process then, so it runs in a child.
pub fn deadlocks(test: &str, body: impl FnOnce()) {
    const CHILD: &str = "KYOZON_MODEL_CHILD";
    if std::env::var_os(CHILD).is_some() {
        return body();
    }
    let mut child = std::process::Command::new(std::env::current_exe().unwrap());
    let output = child.args(["--exact", test, "--nocapture"]).env(CHILD, "1").output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && text.contains("deadlock; threads"), "{text}");
}

/// A word. The checker knows no sequentially consistent accesses, but fences. There are two ways to make the former of
/// the latter: a fence before each, or one after each that writes (C. Batty et al., Clarifying and compiling C/C++
/// concurrency: from C++11 to POWER, POPL 2012). Each also orders other accesses, the one earlier and the other later
/// ones, which is more than the memory model promises; so everything is checked both ways.
#[derive(Debug, Default)]
pub struct Strong(AtomicU64);

/// A word whose sequentially consistent accesses are not: to see that the checker would find it.
#[derive(Debug, Default)]
pub struct Weak(AtomicU64);

fn weaker(order: Ordering, then: Ordering) -> Ordering {
    if order == Ordering::SeqCst {
        then
    } else {
        order
    }
}

macro_rules! word {
    ($type:ty, $strong:expr) => {
        impl $type {
            /// Does `access` with its order as the checker takes it, and the fences for it.
            fn with<T>(
                &self,
                order: Ordering,
                access: impl FnOnce(&AtomicU64) -> T,
                writes: bool,
            ) -> T {
                let consistent = order == Ordering::SeqCst && $strong;
                if consistent && !TRAILING.get() {
                    fence(Ordering::SeqCst);
                }
                let result = access(&self.0);
                if consistent && TRAILING.get() && writes {
                    fence(Ordering::SeqCst);
                }
                result
            }
        }

        impl Word for $type {
            fn load(&self, order: Ordering) -> u64 {
                let weak = weaker(order, Ordering::Acquire);
                self.with(order, |word| word.load(weak), false)
            }
            fn store(&self, value: u64, order: Ordering) {
                let weak = weaker(order, Ordering::Release);
                self.with(order, |word| word.store(value, weak), true);
            }
            fn replace(&self, current: u64, new: u64, order: Ordering) -> Result<u64, u64> {
                let weak = weaker(order, Ordering::AcqRel);
                let replace =
                    |word: &AtomicU64| word.compare_exchange(current, new, weak, Ordering::Relaxed);
                self.with(order, replace, true)
            }
            fn swap(&self, value: u64, order: Ordering) -> u64 {
                let weak = weaker(order, Ordering::AcqRel);
                self.with(order, |word| word.swap(value, weak), true)
            }
            fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
                let weak = weaker(order, Ordering::AcqRel);
                self.with(order, |word| word.fetch_add(value, weak), true)
            }
            fn fetch_or(&self, bits: u64, order: Ordering) -> u64 {
                let weak = weaker(order, Ordering::AcqRel);
                self.with(order, |word| word.fetch_or(bits, weak), true)
            }
            fn fetch_and(&self, bits: u64, order: Ordering) -> u64 {
                let weak = weaker(order, Ordering::AcqRel);
                self.with(order, |word| word.fetch_and(bits, weak), true)
            }
            fn fence(order: Ordering) {
                if order != Ordering::SeqCst || $strong {
                    fence(order);
                }
            }
        }
    };
}

word!(Strong, true);
word!(Weak, false);

/// Peers, each a thread of the checker.
pub struct Village {
    seats: Vec<Seat>,
}

struct Seat {
    alive: AtomicBool,
    token: AtomicBool,
    /// Of the thread and only while it sleeps; the checker runs one thread at a time, and sees the token.
    asleep: Mutex<Option<Thread>>,
    now: std::sync::atomic::AtomicU64,
}

/// One of them.
pub struct Villager {
    village: Arc<Village>,
    number: u8,
}

impl Village {
    pub fn new(peers: usize) -> Arc<Self> {
        let seat = |_| Seat {
            alive: AtomicBool::new(true),
            token: AtomicBool::new(false),
            asleep: Mutex::new(None),
            now: Default::default(),
        };
        Arc::new(Self { seats: (0..peers).map(seat).collect() })
    }
}

pub fn villager(village: &Arc<Village>, number: u8) -> Villager {
    Villager { village: village.clone(), number }
}

impl Villager {
    fn seat(&self) -> &Seat {
        &self.village.seats[usize::from(self.number)]
    }

    /// Dies, and all who sleep look who it was, as they do at a heartbeat.
    pub fn die(self) {
        self.seat().alive.store(false, Ordering::Release);
        for number in 0..self.village.seats.len() as u8 {
            self.unpark(number);
        }
    }
}

impl Park for Villager {
    fn me(&self) -> Peer {
        Peer::new(self.number, 1).unwrap()
    }

    fn now(&self) -> u64 {
        self.seat().now.load(Ordering::Relaxed)
    }

    /// A sleep with a deadline ends at the deadline; the checker tries all that others do before.
    fn park(&self, deadline: Option<u64>) {
        while !self.seat().token.swap(false, Ordering::AcqRel) {
            if let Some(deadline) = deadline {
                self.seat().now.store(deadline, Ordering::Relaxed);
                return thread::yield_now();
            }
            *self.seat().asleep.lock().unwrap() = Some(thread::current());
            thread::park();
        }
    }

    fn unpark(&self, number: u8) {
        let seat = &self.village.seats[usize::from(number)];
        seat.token.swap(true, Ordering::AcqRel);
        // Not one that is awake: that would show it all that we have written.
        let asleep = seat.asleep.lock().unwrap().take();
        if let Some(thread) = asleep {
            thread.unpark();
        }
    }

    fn spins(&self) -> u32 {
        0
    }

    fn heartbeat(&self) -> u64 {
        u64::MAX
    }
}

impl Peers for Villager {
    fn life(&self, number: u8) -> Life {
        match self.village.seats.get(usize::from(number)) {
            None => Life::NotYet,
            Some(seat) if seat.alive.load(Ordering::Acquire) => Life::Alive(1),
            Some(_) => Life::Dead,
        }
    }
}

/// Payload of which the checker says when two touch a word at once. Of each copy it takes the first word only: the
/// others would be the same again.
#[derive(Clone)]
pub struct Payload(Arc<Vec<UnsafeCell<u64>>>);

impl Payload {
    pub fn new(words: usize) -> Self {
        Self(Arc::new((0..words).map(|_| UnsafeCell::new(0)).collect()))
    }
}

impl Data for Payload {
    fn bytes(&self) -> usize {
        self.0.len() * 8
    }
    fn load_word(&self, at: usize) -> u64 {
        // SAFETY: the checker runs one thread at a time, and complains of races.
        self.0[at / 8].with(|word| unsafe { *word })
    }
    fn store_word(&self, at: usize, value: u64) {
        // SAFETY: as above.
        self.0[at / 8].with_mut(|word| unsafe { *word = value });
    }
    fn read(&self, at: usize, to: &mut [u8]) {
        if !to.is_empty() {
            to[..8].copy_from_slice(&self.load_word(at).to_le_bytes());
        }
    }
    fn write(&self, at: usize, from: &[u8]) {
        if !from.is_empty() {
            self.store_word(at, u64::from_le_bytes(from[..8].try_into().unwrap()));
        }
    }
}
