//! Words, payload and peers whose every access the model checker sees.
#![allow(dead_code)] // each test uses a part of it

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
    /// How this run implements sequentially consistent accesses; see [`Strong`].
    static TRAILING: Cell<bool> = const { Cell::new(false) };
}

/// Checks every order with at most `LOOM_MAX_PREEMPTIONS` preemptions; `preemptions` if that is not set.
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

/// Checks that `body`, which is the whole test named `test`, ends in a deadlock. The checker aborts the process then,
/// so the body runs in a child process.
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

/// A word. The checker implements sequentially consistent fences, but not such accesses. There are two ways to build an
/// access from fences: a fence before each access, or a fence after each access that writes (C. Batty et al.,
/// Clarifying and compiling C/C++ concurrency: from C++11 to POWER, POPL 2012). Each way also orders other accesses,
/// earlier ones or later ones, which is more than the memory model promises. So every test runs both ways.
#[derive(Debug, Default)]
pub struct Strong(AtomicU64);

/// A word whose sequentially consistent accesses are weaker, to prove that the checker finds the error.
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
            /// Performs `access` with its order and the fences that the checker needs for it.
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

        // SAFETY: the model checker's atomic word.
        unsafe impl Word for $type {
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

/// A group of peers, each a thread of the checker.
pub struct ModelGroup {
    seats: Vec<Seat>,
}

struct Seat {
    alive: AtomicBool,
    token: AtomicBool,
    /// The thread while it sleeps. The checker runs one thread at a time and does not see this mutex, only the token.
    asleep: Mutex<Option<Thread>>,
    now: std::sync::atomic::AtomicU64,
}

/// One peer of a [`ModelGroup`].
pub struct ModelPeer {
    group: Arc<ModelGroup>,
    number: u8,
}

impl ModelGroup {
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

pub fn model_peer(group: &Arc<ModelGroup>, number: u8) -> ModelPeer {
    ModelPeer { group: group.clone(), number }
}

impl ModelPeer {
    fn seat(&self) -> &Seat {
        &self.group.seats[usize::from(self.number)]
    }

    /// Dies. All sleepers wake and check which peers live, as at a heartbeat.
    pub fn die(self) {
        self.seat().alive.store(false, Ordering::Release);
        for number in 0..self.group.seats.len() as u8 {
            self.unpark(number);
        }
    }
}

impl Park for ModelPeer {
    fn me(&self) -> Peer {
        Peer::new(self.number, 1).unwrap()
    }

    fn now(&self) -> u64 {
        self.seat().now.load(Ordering::Relaxed)
    }

    /// A sleep with a deadline ends at the deadline; the checker tries everything that other peers can do before it.
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
        let seat = &self.group.seats[usize::from(number)];
        seat.token.swap(true, Ordering::AcqRel);
        // Only a sleeping thread: `Thread::unpark` would make all our writes visible to a thread that is awake.
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

impl Peers for ModelPeer {
    fn life(&self, number: u8) -> Life {
        match self.group.seats.get(usize::from(number)) {
            None => Life::NotYet,
            Some(seat) if seat.alive.load(Ordering::Acquire) => Life::Alive(1),
            Some(_) => Life::Dead,
        }
    }
}

/// Payload for which the checker reports data races. A copy accesses its first word only, because the others would
/// repeat the same check.
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
        // SAFETY: the checker runs one thread at a time and reports races.
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
