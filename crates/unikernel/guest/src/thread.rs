//! Threads that are virtual machines: same image, same statics, same heap, same stacks, a processor and an isolation of
//! their own. The interface is that of `std::thread`, so that the same source is a program of threads beside it.
//!
//! A thread that panics, crashes or is ended by others is seen by whoever joins it. Nothing unwinds: what it owned is
//! leaked, its locks are poisoned, and its stack stays, as others may have borrowed from it. Threads of a [`scope`]
//! do not outlive the thread in whose scope they are, however that ends.
//!
//! What cannot cross is told by `Send`: statics of one machine only are in [`crate::private`].

use crate::vm::{gone, Vm};
use crate::{clock, raw, sleep, Error, Result};
use alloc::alloc::{alloc, dealloc};
use alloc::boxed::Box;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use kyozon_abi::unikernel::*;
use kyozon_channel::border::{Mutex, MutexGuard};
use kyozon_channel::park::{Park, Peer};

/// Bytes of a stack where nobody says otherwise, and its guard.
const STACK_BYTES: usize = 256 << 10;
const PAGE: usize = 4096;
/// Bytes of a panic's words that its joiner gets, at most.
const WORDS: usize = 512;

const RUNNING: u32 = 0;
const DONE: u32 = 1;
const PANICKED: u32 = 2;
const LEFT_EARLY: u32 = 3;

/// Why a thread has no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It panicked: with these words, and where.
    Panicked(String),
    /// It left by [`leave`].
    Left,
    /// It crashed, was ended, or left by [`crate::exit`].
    Died,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Panicked(words) => write!(f, "the thread panicked: {words}"),
            Self::Left => f.write_str("the thread left"),
            Self::Died => f.write_str("the thread died"),
        }
    }
}

impl core::error::Error for Ended {}

/// How far a thread is, for others.
struct Progress {
    state: AtomicU32,
    /// Peers that wait for it, a bit for each.
    joiners: AtomicU64,
    /// Somebody asked how it ended.
    joined: AtomicBool,
    /// The time-stamp counter at its first instruction.
    first: AtomicU64,
    used: AtomicUsize,
    /// Written before the state says so, read after.
    words: UnsafeCell<[u8; WORDS]>,
}

// SAFETY: the words are written by the thread itself, once, before it sets the state, and read by those who saw that.
unsafe impl Sync for Progress {}

impl Progress {
    fn new() -> Self {
        Self {
            state: AtomicU32::new(RUNNING),
            joiners: AtomicU64::new(0),
            joined: AtomicBool::new(false),
            first: AtomicU64::new(0),
            used: AtomicUsize::new(0),
            words: UnsafeCell::new([0; WORDS]),
        }
    }

    /// Says that the result is there, and wakes those who wait.
    fn finish(&self) {
        self.state.store(DONE, Ordering::SeqCst);
        let mut waiting = self.joiners.load(Ordering::SeqCst);
        while waiting != 0 {
            sleep::unpark(waiting.trailing_zeros() as usize);
            waiting &= waiting - 1;
        }
    }

    /// Waits until it has ended; whether with a result. Who is gone gave everybody a token.
    fn wait(&self, peer: Peer) -> bool {
        self.joiners.fetch_or(Vm.me().bit(), Ordering::SeqCst);
        let mut spins = Vm.spins();
        loop {
            if self.state.load(Ordering::SeqCst) == DONE {
                return true;
            }
            if spins > 0 {
                spins -= 1;
                core::hint::spin_loop();
                continue;
            }
            if gone(peer) {
                // It may have finished and left in between.
                return self.state.load(Ordering::SeqCst) == DONE;
            }
            sleep::park(None);
        }
    }

    fn why(&self) -> Ended {
        match self.state.load(Ordering::SeqCst) {
            PANICKED => {}
            LEFT_EARLY => return Ended::Left,
            _ => return Ended::Died,
        }
        let used = self.used.load(Ordering::Relaxed).min(WORDS);
        // SAFETY: written before the state was set.
        let words = unsafe { &(&*self.words.get())[..used] };
        Ended::Panicked(String::from_utf8_lossy(words).into_owned())
    }
}

/// What a thread leaves.
struct Packet<T>(UnsafeCell<Option<T>>);

// SAFETY: the thread writes it before it says that it is done, and then only its joiner has it.
unsafe impl<T: Send> Sync for Packet<T> {}
// SAFETY: as above: the result goes from one thread to another.
unsafe impl<T: Send> Send for Packet<T> {}

/// Memory for a stack, and a guard that the thread itself cannot reach.
struct Stack {
    base: *mut u8,
    layout: Layout,
}

// SAFETY: memory of the heap, which is the same for all machines.
unsafe impl Send for Stack {}

impl Stack {
    fn new(bytes: usize) -> Result<Self> {
        let bytes = bytes.checked_next_multiple_of(PAGE).and_then(|bytes| bytes.checked_add(PAGE));
        let layout =
            bytes.and_then(|bytes| Layout::from_size_align(bytes.max(4 * PAGE), PAGE).ok());
        let layout = layout.ok_or(Error::Argument)?;
        // SAFETY: not of no bytes.
        let base = unsafe { alloc(layout) };
        if base.is_null() {
            return Err(Error::Full);
        }
        Ok(Self { base, layout })
    }

    /// Gives it back.
    ///
    /// # Safety
    ///
    /// Nobody runs on it, and nobody has borrowed from it.
    unsafe fn free(self) {
        // SAFETY: allocated with this layout; the rest is the caller's promise.
        unsafe { dealloc(self.base, self.layout) };
    }
}

/// A thread that may not be gone yet, and what it runs on.
struct Running {
    peer: Peer,
    stack: Stack,
    progress: Arc<Progress>,
}

/// Threads that nobody will ask about any more, until they are gone.
static LEFT: Mutex<Vec<Running>> = Mutex::new(Vec::new());

/// The list, unless somebody died while he had it: then what is there stays, and nothing is added.
fn left() -> Option<MutexGuard<'static, Vec<Running>, Vm>> {
    LEFT.lock(&Vm, None).ok()
}

impl Running {
    /// From now on nobody asks: its stack is given back when it is gone.
    fn leave(self) {
        if let Some(mut list) = left() {
            list.push(self);
        }
    }
}

/// Gives stacks back whose threads came to their end and are gone. Whether some that came to their end are not gone.
fn sweep() -> bool {
    let Some(mut list) = left() else { return false };
    let mut i = 0;
    let mut more = false;
    while i < list.len() {
        let Running { peer, progress, .. } = &list[i];
        match (gone(*peer), progress.state.load(Ordering::SeqCst)) {
            (true, state) => {
                let Running { stack, .. } = list.swap_remove(i);
                if matches!(state, DONE | LEFT_EARLY) {
                    // SAFETY: it came to its end, so nobody borrows from it, and it is gone.
                    unsafe { stack.free() };
                }
            }
            (false, state) => {
                more |= state == DONE;
                i += 1;
            }
        }
    }
    more
}

/// What a new machine is told.
struct Start<'a> {
    run: Box<dyn FnOnce() + Send + 'a>,
    progress: Arc<Progress>,
}

crate::private! {
    /// How far this thread is, where it is one.
    static CURRENT: *const Progress = core::ptr::null();
}

extern "C" fn entry(boot: &'static GuestBoot) -> ! {
    let first = clock::counter();
    // SAFETY: the argument is the box that `begin` made for this thread alone.
    let Start { run, progress } = *unsafe { Box::from_raw(boot.argument as *mut Start<'static>) };
    CURRENT.set(Arc::as_ptr(&progress));
    progress.first.store(first, Ordering::Relaxed);
    run();
    CURRENT.set(core::ptr::null());
    // Before the end is told, after which whoever waited may go, and this thread with him, wherever it is: inside the
    // heap that would be the end of that, too.
    give_back();
    progress.finish();
    // Not the last to have it: that is who gives back the stack, when this thread is gone.
    drop(progress);
    crate::exit(0)
}

/// What this machine has kept of the heap is for others again.
fn give_back() {
    #[cfg(feature = "guest")]
    crate::heap::give_back();
}

/// Ends the calling thread, which has no result; the first thread of a family, and all of it.
///
/// # Safety
///
/// Nobody has borrowed from this thread, as its stack is given back.
pub unsafe fn leave() -> ! {
    give_back();
    // SAFETY: null, or kept alive by the thread's own closure, which never ends now.
    if let Some(progress) = unsafe { CURRENT.get().as_ref() } {
        progress.state.store(LEFT_EARLY, Ordering::SeqCst);
    }
    crate::exit(0)
}

/// Keeps a panic's words for who joins this thread.
#[cfg_attr(not(feature = "guest"), allow(dead_code))]
pub(crate) fn panicked(words: &[u8]) {
    // SAFETY: null, or kept alive by the thread's own closure, which never ends now.
    let Some(progress) = (unsafe { CURRENT.get().as_ref() }) else { return };
    let used = words.len().min(WORDS);
    // SAFETY: nobody else writes, and nobody reads before the state says so.
    unsafe { (&mut *progress.words.get())[..used].copy_from_slice(&words[..used]) };
    progress.used.store(used, Ordering::Relaxed);
    progress.state.store(PANICKED, Ordering::SeqCst);
}

/// What to make of a thread before it begins.
#[derive(Clone, Copy, Debug)]
pub struct Builder {
    stack: usize,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// As [`spawn`] does it.
    pub const fn new() -> Self {
        Self { stack: STACK_BYTES }
    }

    /// So many bytes of stack.
    pub const fn stack_size(self, bytes: usize) -> Self {
        Self { stack: bytes }
    }

    /// [`spawn`], with an error where there is no room for a machine or its stack.
    pub fn spawn<F, T>(self, work: F) -> Result<JoinHandle<T>>
    where
        F: FnOnce() -> T + Send + 'static,
        T: Send + 'static,
    {
        let (running, packet) = begin(self.stack, 0, work)?;
        Ok(JoinHandle { running: Some(running), packet })
    }

    /// [`Scope::spawn`], with an error where there is no room.
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        work: F,
    ) -> Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let mut list = scope.threads.lock(&Vm, None).map_err(|_| Error::Full)?;
        let (running, packet) = begin(self.stack, u64::from(scope.owner.number()) + 1, work)?;
        let (peer, progress) = (running.peer, running.progress.clone());
        list.push(running);
        Ok(ScopedJoinHandle { peer, progress, packet, scope: PhantomData })
    }
}

/// Starts a machine that does `work`, bound as [`ASK_SPAWN`] has it. Who calls sees to it that what it borrows lives until it is gone.
fn begin<'a, F, T>(stack: usize, bound: u64, work: F) -> Result<(Running, Arc<Packet<T>>)>
where
    F: FnOnce() -> T + Send + 'a,
    T: Send + 'a,
{
    let wait = sweep();
    let stack = Stack::new(stack)?;
    let progress = Arc::new(Progress::new());
    let packet = Arc::new(Packet(UnsafeCell::new(None)));
    let result = packet.clone();
    let run = Box::new(move || {
        let value = work();
        // SAFETY: nobody reads it before it is said that it is done.
        unsafe { *result.0.get() = Some(value) };
    });
    let start = Box::into_raw(Box::new(Start { run, progress: progress.clone() }));
    let arguments = [
        entry as *const () as u64,
        start as u64,
        stack.base as u64,
        stack.layout.size() as u64,
        bound,
    ];
    // SAFETY: the new peer runs `entry` on a stack that is nobody else's, with a box that is its own.
    let mut answer = unsafe { raw::ask(ASK_SPAWN, &arguments) };
    // Some have done all that they were to do, and are about to go.
    let end = clock::now() + 1_000_000_000;
    let mut wait = wait;
    while answer == Err(Error::Full) && wait && clock::now() < end {
        sleep::park(Some(clock::now() + 1_000_000));
        wait = sweep();
        // SAFETY: as above.
        answer = unsafe { raw::ask(ASK_SPAWN, &arguments) };
    }
    match answer {
        Ok(name) => {
            let peer = Peer::new(name as u8, (name >> 32) as u32).ok_or(Error::Full)?;
            Ok((Running { peer, stack, progress }, packet))
        }
        Err(error) => {
            // SAFETY: no peer came, so the box is this function's, and so is the stack.
            unsafe {
                drop(Box::from_raw(start));
                stack.free();
            }
            Err(error)
        }
    }
}

/// Ends a peer of this family that was spawned, wherever it is; does not wait for it.
fn end(peer: Peer) {
    // SAFETY: what the peer owned is leaked, and what it lent to others stays: see above.
    let _ = unsafe { raw::ask(ASK_END, &[peer.number().into(), peer.generation().into()]) };
}

/// The clock at a thread's first instruction; `None` where the counter is no clock, or it has not begun.
fn began(progress: &Progress) -> Option<u64> {
    match progress.first.load(Ordering::Relaxed) {
        0 => None,
        counter => clock::at_counter(counter),
    }
}

/// A thread, to wait for. Where it is dropped, the thread goes on.
pub struct JoinHandle<T> {
    running: Option<Running>,
    packet: Arc<Packet<T>>,
}

impl<T> JoinHandle<T> {
    fn running(&self) -> &Running {
        // It is taken by `join` and `drop` only, which have the handle.
        self.running.as_ref().unwrap_or_else(|| unreachable!())
    }

    /// Waits until the thread has ended; what it came to.
    pub fn join(mut self) -> core::result::Result<T, Ended> {
        let Some(running) = self.running.take() else { return Err(Ended::Died) };
        if !running.progress.wait(running.peer) {
            let why = running.progress.why();
            running.leave();
            return Err(why);
        }
        // SAFETY: the thread is done with it, and this is its only joiner.
        let value = unsafe { (*self.packet.0.get()).take() };
        running.leave();
        value.ok_or(Ended::Died)
    }

    /// Whether [`JoinHandle::join`] would not wait.
    pub fn is_finished(&self) -> bool {
        let Running { peer, progress, .. } = self.running();
        progress.state.load(Ordering::SeqCst) == DONE || gone(*peer)
    }

    /// Number of the thread in its group, and how many had it before.
    pub fn peer(&self) -> Peer {
        self.running().peer
    }

    /// Ends the thread, wherever it is; does not wait for it. Its locks are poisoned.
    pub fn end(&self) {
        end(self.peer());
    }

    /// The clock at its first instruction; `None` where the counter is no clock, or it has not begun.
    pub fn began(&self) -> Option<u64> {
        began(&self.running().progress)
    }
}

impl<T> Drop for JoinHandle<T> {
    fn drop(&mut self) {
        if let Some(running) = self.running.take() {
            running.leave();
        }
    }
}

/// Starts a thread.
///
/// # Panics
///
/// Where there is no room for one more; [`Builder::spawn`] says so instead.
pub fn spawn<F, T>(work: F) -> JoinHandle<T>
where
    F: FnOnce() -> T + Send + 'static,
    T: Send + 'static,
{
    Builder::new().spawn(work).unwrap_or_else(|error| panic!("no thread: {error}"))
}

/// Threads that may borrow what outlives `'scope`. See [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    /// Whose frames are lent.
    owner: Peer,
    threads: Mutex<Vec<Running>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A thread of a scope, to wait for.
pub struct ScopedJoinHandle<'scope, T> {
    peer: Peer,
    progress: Arc<Progress>,
    packet: Arc<Packet<T>>,
    scope: PhantomData<&'scope ()>,
}

/// Runs `work` with a scope in which threads can be started that borrow from around it. Returns when all of them have
/// ended.
///
/// # Panics
///
/// Where a thread of the scope has no result and nobody joined it.
pub fn scope<'env, F, T>(work: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let threads = Mutex::new(Vec::new());
    let scope = Scope { owner: Vm.me(), threads, scope: PhantomData, env: PhantomData };
    let value = work(&scope);
    let mut failed = false;
    // Threads may start more, until they have ended.
    while let Some(thread) = scope.last() {
        if thread.progress.wait(thread.peer) {
            thread.leave();
        } else {
            failed |= !thread.progress.joined.load(Ordering::SeqCst);
        }
    }
    assert!(!failed, "a thread of a scope has no result");
    value
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// A thread that was started. Where one died while it had the list, some are not known, and cannot be waited for.
    fn last(&self) -> Option<Running> {
        let mut list = self.threads.lock(&Vm, None);
        let list = list.as_mut();
        list.unwrap_or_else(|_| panic!("a thread died while it started another")).pop()
    }

    /// Starts a thread that ends before the scope does.
    ///
    /// # Panics
    ///
    /// Where there is no room for one more; [`Builder::spawn_scoped`] says so instead.
    pub fn spawn<F, T>(&'scope self, work: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let made = Builder::new().spawn_scoped(self, work);
        made.unwrap_or_else(|error| panic!("no thread: {error}"))
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended; what it came to.
    pub fn join(self) -> core::result::Result<T, Ended> {
        self.progress.joined.store(true, Ordering::SeqCst);
        if !self.progress.wait(self.peer) {
            return Err(self.progress.why());
        }
        // SAFETY: the thread is done with it, and this is its only joiner.
        unsafe { (*self.packet.0.get()).take() }.ok_or(Ended::Died)
    }

    /// Number of the thread in its group, and how many had it before.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Ends the thread, wherever it is; does not wait for it. Its locks are poisoned.
    pub fn end(&self) {
        end(self.peer);
    }

    /// The clock at its first instruction; `None` where the counter is no clock, or it has not begun.
    pub fn began(&self) -> Option<u64> {
        began(&self.progress)
    }
}
