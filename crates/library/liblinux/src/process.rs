//! This process as the kernel's host.

use kyozon_devices::bus::Bus;
use kyozon_devices::ram::Ram;
use kyozon_library_host::Host;
use std::ptr;
use std::sync::atomic::AtomicU32;
use std::time::Duration;

/// Takes text of the kernel's log, any number of bytes at a time.
pub type Log = Box<dyn Fn(&[u8]) + Send + Sync>;

/// Functions around each call of the kernel to this process, for programs whose threads enter the kernel in a state in
/// which ordinary code must not run.
#[derive(Clone, Copy)]
pub struct Around {
    /// Makes ordinary code possible. The result goes to `leave`.
    pub enter: fn() -> u64,
    /// Goes back to the state from before.
    pub leave: fn(u64),
}

/// The end of a call to this process.
struct Ordinary(Option<(Around, u64)>);

impl Drop for Ordinary {
    fn drop(&mut self) {
        if let Some((around, before)) = self.0 {
            (around.leave)(before);
        }
    }
}

/// Clock, futexes, log and devices of this process.
pub struct Process {
    log: Log,
    bus: Bus<Ram>,
    barriers: bool,
    around: Option<Around>,
}

/// membarrier(2). Commands of linux/membarrier.h.
fn membarrier(command: i32) -> bool {
    // SAFETY: the call takes no address.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

impl Process {
    /// A host whose kernel logs to `log`, with the devices on `bus`.
    pub fn new(log: Log, bus: Bus<Ram>, around: Option<Around>) -> Self {
        let barriers = membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED);
        Self { log, bus, barriers, around }
    }

    #[inline]
    fn ordinary(&self) -> Ordinary {
        Ordinary(self.around.map(|around| (around, (around.enter)())))
    }
}

fn clock(id: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure is valid; the two clocks below exist on every Linux.
    unsafe { libc::clock_gettime(id, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

impl Host for Process {
    fn now(&self) -> u64 {
        let _ordinary = self.ordinary();
        clock(libc::CLOCK_MONOTONIC)
    }

    fn realtime(&self) -> u64 {
        let _ordinary = self.ordinary();
        clock(libc::CLOCK_REALTIME)
    }

    fn print(&self, text: &[u8]) {
        let _ordinary = self.ordinary();
        (self.log)(text);
    }

    fn park(&self, word: &AtomicU32, value: u32, deadline: Option<u64>) {
        let _ordinary = self.ordinary();
        let time = deadline.map(|ns| libc::timespec {
            tv_sec: (ns / 1_000_000_000) as i64,
            tv_nsec: (ns % 1_000_000_000) as i64,
        });
        // An absolute deadline on CLOCK_MONOTONIC, futex(2).
        let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: word and time live through the call.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                operation,
                value,
                time.as_ref().map_or(ptr::null(), ptr::from_ref),
                ptr::null::<u32>(),
                libc::FUTEX_BITSET_MATCH_ANY,
            )
        };
    }

    fn wait(&self, word: &AtomicU32, value: u32, deadline: Option<u64>) {
        let _ordinary = self.ordinary();
        let until = |deadline: u64| deadline.saturating_sub(clock(libc::CLOCK_MONOTONIC));
        let left = || deadline.map(|deadline| Duration::from_nanos(until(deadline)));
        if !self.bus.poller().wait(word, value, left) {
            self.park(word, value, deadline);
        }
    }

    fn unpark(&self, word: &AtomicU32, count: u32) {
        let _ordinary = self.ordinary();
        if self.bus.poller().wake(word) {
            return;
        }
        // SAFETY: a wake-up only compares the address; it may be of a word that has just been freed.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                word.as_ptr(),
                libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG,
                count,
            )
        };
    }

    fn barrier(&self) -> bool {
        let _ordinary = self.ordinary();
        self.barriers && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED)
    }

    fn mmio_read(&self, address: u64, bytes: u32) -> u64 {
        let _ordinary = self.ordinary();
        self.bus.access(address, bytes as u8, false, 0)
    }

    fn mmio_write(&self, address: u64, bytes: u32, value: u64) {
        let _ordinary = self.ordinary();
        self.bus.access(address, bytes as u8, true, value);
    }
}
