//! Threads that serve devices while they wait for something else.
//!
//! A packet that wakes a device's thread, which wakes the thread that waits for the packet, costs one switch of threads
//! more than in the host's kernel. So one of the waiting threads, the *poller*, waits for the devices' descriptors at
//! the same time, and does the devices' work itself. A device's own thread steps back while there are pollers, and
//! takes over [`STANDBY`] after the last one left: a poller that comes back soon wakes nobody.
//!
//! Order of accesses. A poller publishes the word that it waits on, then looks at the word; a thread that wakes it
//! changes the word, then looks for a poller. A device's thread states that only a ring wakes it, then looks at the
//! number of turns; a poller counts its turn, then rings. So one of both sees the other's.

use crate::worker::Bell;
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::Timespec;
use rustix::io::Errno;
use std::io::{Error, ErrorKind, Result};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::atomic::{fence, AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, RwLock, RwLockReadGuard};
use std::time::Duration;

/// How long a device's thread leaves its descriptor to pollers after the last one came or left.
pub const STANDBY: Duration = Duration::from_micros(200);

/// Maximum number of devices.
const MAX_DEVICES: usize = 64;
/// Event data of the poller's bell. Smaller numbers are those of devices.
const BELL: u64 = u64::MAX;
/// Added to the address of the poller's word, a multiple of 4, while the poller does not sleep.
const AWAKE: usize = 1;

/// Work that a descriptor announces by becoming readable.
pub trait Source: Send + Sync {
    /// The descriptor.
    fn fd(&self) -> BorrowedFd<'_>;
    /// Does a bounded part of the work. Returns whether the descriptor announces the rest. If it does not, the device's
    /// thread must look after it.
    fn serve(&self) -> bool;
    /// Does what the device holds back until a thread waits: one is going to.
    fn pause(&self) {}
}

struct Device {
    source: Arc<dyn Source>,
    /// Wakes the device's thread.
    bell: Arc<Bell>,
    served: Mutex<Served>,
}

/// Who serves a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Served {
    /// Its thread.
    ByThread,
    /// Pollers, or its thread.
    ByPollers,
    /// Its thread, because a poller could not continue.
    Returned,
}

/// The devices of a guest, and at most one thread that serves them while it waits.
#[derive(Default)]
pub struct Poller {
    wait: OnceLock<Wait>,
    devices: RwLock<Vec<Arc<Device>>>,
    /// The address of the word that the poller waits on, plus [`AWAKE`]; 0 without a poller.
    word: AtomicUsize,
    /// How often a thread became the poller, and how often one ceased to be it.
    turns: AtomicU64,
    /// Devices whose threads wait for their descriptors: a bit for each.
    watching: AtomicU64,
    /// Devices whose threads wait for the end of a turn.
    asleep: AtomicU64,
    /// Devices that hold work back until a thread waits: a bit for each.
    holding: AtomicU64,
    /// The host does not let a thread wait for descriptors until a deadline.
    refused: AtomicBool,
}

/// The poller's descriptors.
struct Wait {
    epoll: OwnedFd,
    bell: Bell,
}

impl Wait {
    fn new() -> Result<Self> {
        let (epoll, bell) = (epoll::create(CreateFlags::CLOEXEC)?, Bell::new()?);
        epoll::add(&epoll, &bell, EventData::new_u64(BELL), EventFlags::IN)?;
        Ok(Self { epoll, bell })
    }
}

impl Poller {
    /// Adds a device with a thread, which `bell` wakes. The thread uses the result.
    ///
    /// # Errors
    /// Linux refuses another descriptor, or there are too many devices.
    pub fn add(self: &Arc<Self>, source: Arc<dyn Source>, bell: Arc<Bell>) -> Result<Seat> {
        let mut devices = self.devices.write().unwrap_or_else(|e| e.into_inner());
        if devices.len() == MAX_DEVICES {
            let text = format!("more than {MAX_DEVICES} devices with descriptors");
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        if self.wait.get().is_none() {
            // The lock is held, so that the cell is still empty.
            let _ = self.wait.set(Wait::new()?);
        }
        let device = Arc::new(Device { source, bell, served: Mutex::new(Served::ByThread) });
        devices.push(device.clone());
        Ok(Seat { poller: self.clone(), device, number: devices.len() - 1, seen: 0 })
    }

    /// Waits while `word` is `value`, until [`Poller::wake`] or the deadline, and serves devices meanwhile. `left`
    /// returns the time until the deadline. The result is false, at once, if another thread is the poller or there are
    /// no devices: then the caller must wait by other means.
    ///
    /// The calling thread may run the guest's code, as in an interrupt: it must hold no lock that this code takes.
    pub fn wait(&self, word: &AtomicU32, value: u32, left: impl Fn() -> Option<Duration>) -> bool {
        let Some(wait) = self.wait.get() else { return false };
        self.pause();
        let own = word.as_ptr() as usize;
        if self.word.load(SeqCst) != 0
            || self.refused.load(SeqCst)
            || self.word.compare_exchange(0, own, SeqCst, SeqCst).is_err()
        {
            return false;
        }
        self.turns.fetch_add(1, SeqCst);
        self.ring(&self.watching);
        while word.load(SeqCst) == value && !self.refused.load(SeqCst) {
            let left = left();
            if left == Some(Duration::ZERO) {
                break;
            }
            self.wait_once(wait, word, value, left);
            self.pause();
        }
        self.word.store(0, SeqCst);
        self.turns.fetch_add(1, SeqCst);
        self.ring(&self.asleep);
        true
    }

    fn pause(&self) {
        let mut numbers = self.holding.load(SeqCst);
        while numbers != 0 {
            if let Some(device) = self.devices().get(numbers.trailing_zeros() as usize) {
                device.source.pause();
            }
            numbers &= numbers - 1;
        }
    }

    fn wait_once(&self, wait: &Wait, word: &AtomicU32, value: u32, left: Option<Duration>) {
        let mut room = [const { MaybeUninit::<Event>::uninit() }; 8];
        let left = left.map(timespec);
        let events = match epoll::wait(&wait.epoll, &mut room[..], left.as_ref()) {
            Ok((events, _)) => events,
            Err(Errno::INTR) => return,
            Err(_) => return self.refused.store(true, SeqCst),
        };
        let own = word.as_ptr() as usize;
        self.word.store(own + AWAKE, SeqCst);
        for event in events {
            let number = event.data.u64();
            if number == BELL {
                wait.bell.clear();
                continue;
            }
            // What is not served now is announced again.
            let device = self.devices().get(number as usize).cloned();
            if let Some(device) = device.filter(|_| word.load(SeqCst) == value) {
                if !device.source.serve() {
                    device.unlist(wait, Served::Returned);
                    device.bell.ring();
                }
            }
        }
        self.word.store(own, SeqCst);
    }

    /// Wakes the poller if it waits on `word`, which was changed before. Returns whether it does.
    pub fn wake(&self, word: &AtomicU32) -> bool {
        fence(SeqCst);
        let (own, waits) = (word.as_ptr() as usize, self.word.load(SeqCst));
        if waits == own {
            if let Some(wait) = self.wait.get() {
                wait.bell.ring();
            }
        }
        // A poller that does not sleep looks at the word before it does.
        waits == own || waits == own + AWAKE
    }

    fn devices(&self) -> RwLockReadGuard<'_, Vec<Arc<Device>>> {
        self.devices.read().unwrap_or_else(|e| e.into_inner())
    }

    /// Rings the bells of these devices' threads.
    fn ring(&self, set: &AtomicU64) {
        let mut numbers = set.load(SeqCst);
        while numbers != 0 {
            if let Some(device) = self.devices().get(numbers.trailing_zeros() as usize) {
                device.bell.ring();
            }
            numbers &= numbers - 1;
        }
    }
}

impl Device {
    fn served(&self) -> MutexGuard<'_, Served> {
        self.served.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Lets pollers wait for the descriptor. Returns whether they do.
    fn list(&self, wait: &Wait, number: usize) -> bool {
        let mut served = self.served();
        if *served != Served::ByPollers {
            let data = EventData::new_u64(number as u64);
            let added = epoll::add(&wait.epoll, self.source.fd(), data, EventFlags::IN);
            *served = if added.is_ok() { Served::ByPollers } else { Served::ByThread };
        }
        *served == Served::ByPollers
    }

    fn unlist(&self, wait: &Wait, now: Served) {
        let mut served = self.served();
        if *served == Served::ByPollers {
            // A descriptor that was added can be removed.
            let _ = epoll::delete(&wait.epoll, self.source.fd());
        }
        *served = now;
    }
}

/// How a device's thread waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Plan {
    /// For its descriptor and its bell.
    Watch,
    /// For its bell until the time has passed, then it asks again. For ever without a time.
    Stand(Option<Duration>),
}

/// A device's place at a poller. The device's thread uses it.
pub struct Seat {
    poller: Arc<Poller>,
    device: Arc<Device>,
    number: usize,
    /// Number of turns at the last plan.
    seen: u64,
}

/// How a device tells a poller that it holds work back.
#[derive(Clone)]
pub struct Holder {
    poller: Arc<Poller>,
    number: usize,
}

impl Holder {
    /// A number that changes whenever a thread begins to serve devices, or ceases to.
    pub fn turn(&self) -> u64 {
        self.poller.turns.load(SeqCst)
    }

    /// Sets whether [`Source::pause`] is called when a thread is going to wait.
    pub fn hold(&self, holds: bool) {
        let (set, bit) = (&self.poller.holding, 1 << self.number);
        if (set.load(SeqCst) & bit != 0) != holds {
            let _ = if holds { set.fetch_or(bit, SeqCst) } else { set.fetch_and(!bit, SeqCst) };
        }
    }
}

impl Seat {
    /// The device's way to hold work back.
    pub fn holder(&self) -> Holder {
        Holder { poller: self.poller.clone(), number: self.number }
    }

    /// Lets pollers serve the device, and says how the device's thread waits until [`Seat::woken`].
    pub fn plan(&mut self) -> Plan {
        let poller = &self.poller;
        if !poller.wait.get().is_some_and(|wait| self.device.list(wait, self.number)) {
            return Plan::Watch;
        }
        if poller.turns.load(SeqCst) == self.seen {
            let held = poller.word.load(SeqCst) != 0;
            let (set, plan) = if held {
                (&poller.asleep, Plan::Stand(None))
            } else {
                (&poller.watching, Plan::Watch)
            };
            set.fetch_or(1 << self.number, SeqCst);
            if poller.turns.load(SeqCst) == self.seen {
                return plan;
            }
            self.woken();
        }
        self.seen = poller.turns.load(SeqCst);
        Plan::Stand(Some(STANDBY))
    }

    /// The device's thread no longer waits.
    pub fn woken(&self) {
        for set in [&self.poller.watching, &self.poller.asleep] {
            if set.load(SeqCst) >> self.number & 1 != 0 {
                set.fetch_and(!(1 << self.number), SeqCst);
            }
        }
    }

    /// Whether a poller left the device's work to its thread.
    pub fn is_returned(&self) -> bool {
        *self.device.served() == Served::Returned
    }

    /// Keeps pollers from serving the device until the next plan.
    pub fn keep(&self) {
        if let Some(wait) = self.poller.wait.get() {
            self.device.unlist(wait, Served::ByThread);
        }
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}

#[cfg(test)]
mod tests;
