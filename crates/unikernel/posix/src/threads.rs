//! Threads: each is a peer of the family, bound to the first one.

use crate::errno::*;
use crate::{futex, with, Answer};
use core::cell::UnsafeCell;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use kyozon_abi::unikernel::{MAX_PEERS, MIN_STACK_BYTES};
use kyozon_channel::border::Mutex;
use kyozon_channel::park::Peer;
use kyozon_libc::seam::Thread;
use kyozon_unikernel::{clock, peer, sleep, Error};

/// How long a start waits for threads that have ended, but are not gone yet, in nanoseconds.
const PATIENCE: u64 = 1_000_000_000;

kyozon_unikernel::private! {
    /// The word of this thread that becomes 0 when it ends; null if there is none.
    static CLEAR: *mut c_int = core::ptr::null_mut();
}

/// Number of the first thread.
static FIRST: AtomicU32 = AtomicU32::new(0);
/// Threads beside the first one that have not ended.
static OTHERS: AtomicI32 = AtomicI32::new(0);

/// The place of a thread's first instructions. Afterwards it has the program's stack.
#[repr(align(4096))]
struct Place(UnsafeCell<[u8; MIN_STACK_BYTES as usize]>);

// SAFETY: a place belongs to one thread.
unsafe impl Sync for Place {}

static PLACES: [Place; MAX_PEERS] =
    [const { Place(UnsafeCell::new([0; MIN_STACK_BYTES as usize])) }; MAX_PEERS];

/// What a thread begins with. `entry` reads the first three.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct Begin {
    stack_end: *mut c_void,
    function: Option<unsafe extern "C" fn(*mut c_void) -> c_int>,
    argument: *mut c_void,
    fs_base: *mut c_void,
    tid: *mut c_int,
    clear_tid: *mut c_int,
    mask: u64,
}

const NOTHING: Begin = Begin {
    stack_end: core::ptr::null_mut(),
    function: None,
    argument: core::ptr::null_mut(),
    fs_base: core::ptr::null_mut(),
    tid: core::ptr::null_mut(),
    clear_tid: core::ptr::null_mut(),
    mask: 0,
};

struct Beginning(UnsafeCell<Begin>);

// SAFETY: the starter writes it before the thread exists, and then only the thread reads it.
unsafe impl Sync for Beginning {}

static BEGINNINGS: [Beginning; MAX_PEERS] =
    [const { Beginning(UnsafeCell::new(NOTHING)) }; MAX_PEERS];

/// The use of a place.
#[derive(Clone, Copy, Debug)]
enum Use {
    Free,
    /// By a thread that is being started.
    Taken,
    /// By this one, until it is gone.
    By(Peer),
}

static USES: Mutex<[Use; MAX_PEERS]> = Mutex::new([Use::Free; MAX_PEERS]);

/// The ID of a thread.
fn id(thread: Peer) -> c_int {
    (thread.generation() << 6 | u32::from(thread.number())) as c_int & c_int::MAX
}

/// The thread with an ID; `None` if it has ended.
pub fn find(id: c_int) -> Option<Peer> {
    let id = u32::try_from(id).ok()?;
    Peer::new((id % MAX_PEERS as u32) as u8, id >> 6).filter(|thread| !peer::is_gone(*thread))
}

/// The ID of the calling thread.
pub fn own_id() -> c_int {
    id(peer::own())
}

/// The ID of the process, which is that of its first thread.
pub fn process_id() -> c_int {
    FIRST.load(Ordering::Relaxed) as c_int
}

/// Number of the first thread.
pub fn first() -> usize {
    FIRST.load(Ordering::Relaxed) as usize % MAX_PEERS
}

/// The calling thread is the first.
pub fn set_up() {
    FIRST.store(own_id() as u32, Ordering::Relaxed);
}

/// `set_tid_address`.
pub fn set_clear(word: u64) -> Answer {
    CLEAR.set(word as *mut c_int);
    own_id().into()
}

/// Sets the FS base.
///
/// # Safety
///
/// It is the program's, and the processor has FSGSBASE, as the start made sure.
pub unsafe fn set_fs(base: u64) {
    // SAFETY: the host uses no thread-local data.
    unsafe { core::arch::asm!("wrfsbase {}", in(reg) base, options(nostack, preserves_flags)) };
}

/// The FS base.
pub fn fs() -> u64 {
    let base;
    // SAFETY: reads a register; the start made sure that the processor has FSGSBASE.
    unsafe { core::arch::asm!("rdfsbase {}", out(reg) base, options(nostack, preserves_flags)) };
    base
}

/// `start_thread` of the seam. `entry` is the first code of a thread.
///
/// # Safety
///
/// A valid call of the program; `entry` calls [`begin`] with its argument.
pub unsafe fn start(thread: &Thread, entry: unsafe extern "C" fn(), mask: u64) -> c_int {
    let place = with(&USES, |uses| {
        let free = |used: &Use| match used {
            Use::Free => true,
            Use::Taken => false,
            Use::By(thread) => peer::is_gone(*thread),
        };
        let place = uses.iter().position(free)?;
        uses[place] = Use::Taken;
        Some(place)
    });
    let Some(place) = place else { return EAGAIN as c_int };
    let begin = Begin {
        stack_end: thread.stack_end,
        function: Some(thread.function),
        argument: thread.argument,
        fs_base: thread.fs_base,
        tid: thread.tid,
        clear_tid: thread.clear_tid,
        mask,
    };
    // SAFETY: the place is this call's.
    unsafe { *BEGINNINGS[place].0.get() = begin };
    OTHERS.fetch_add(1, Ordering::Relaxed);
    let deadline = clock::now() + PATIENCE;
    let stack = PLACES[place].0.get().cast();
    let started = loop {
        let bytes = MIN_STACK_BYTES as usize;
        // SAFETY: the stack is this call's, and threads of the program are sound by its own rules.
        let started = unsafe { peer::spawn(entry, place as u64, stack, bytes, Some(first())) };
        let may_change = started == Err(Error::Full) && clock::now() < deadline;
        if !may_change || !with(&USES, |uses| uses.iter().any(is_leaving)) {
            break started;
        }
        sleep::park(Some(clock::now() + 1_000_000));
    };
    let used = started.map_or(Use::Free, Use::By);
    with(&USES, |uses| uses[place] = used);
    let Ok(started) = started else {
        others_fell();
        return EAGAIN as c_int;
    };
    // SAFETY: the program's word, which the thread sets to the same value.
    unsafe { thread.tid.write(id(started)) };
    id(started)
}

/// Whether the thread of a place has ended, or is about to.
fn is_leaving(used: &Use) -> bool {
    let Use::By(thread) = used else { return false };
    LEAVING[usize::from(thread.number())].load(Ordering::Relaxed) == thread.generation()
        && !peer::is_gone(*thread)
}

/// The generation of the last thread that left, by number.
static LEAVING: [AtomicU32; MAX_PEERS] = [const { AtomicU32::new(0) }; MAX_PEERS];

/// The first instructions of a thread, from its place in the table. What it returns is valid as long as the thread.
///
/// # Safety
///
/// Called once in a thread, with the argument of its start.
pub unsafe fn begin(place: usize) -> &'static Begin {
    // SAFETY: written before the thread was started, and not again until it is gone.
    let begin = unsafe { &*BEGINNINGS[place].0.get() };
    CLEAR.set(begin.clear_tid);
    // SAFETY: the program's word, and its FS base.
    unsafe {
        begin.tid.write(own_id());
        set_fs(begin.fs_base as u64);
    }
    crate::signals::begin(begin.mask);
    begin
}

fn others_fell() {
    if OTHERS.fetch_sub(1, Ordering::AcqRel) == 1 {
        sleep::unpark(first());
    }
}

/// `exit`: ends the calling thread. It runs on the host's own stack.
pub fn exit() -> ! {
    let word = CLEAR.replace(core::ptr::null_mut());
    if !word.is_null() {
        // SAFETY: the program's word. Its memory may be another's right after the store, so only the address is used.
        unsafe { AtomicI32::from_ptr(word) }.store(0, Ordering::Release);
        futex::wake_one(word as u64);
    }
    if own_id() != process_id() {
        let own = peer::own();
        LEAVING[usize::from(own.number())].store(own.generation(), Ordering::Relaxed);
        others_fell();
        peer::leave();
    }
    while OTHERS.load(Ordering::Acquire) > 0 {
        sleep::park(None);
    }
    kyozon_unikernel::exit(0)
}
