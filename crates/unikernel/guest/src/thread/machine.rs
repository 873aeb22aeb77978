//! The virtual machine of a thread: its start, its end, and the return of its stack.

use super::progress::{Packet, Progress};
use super::stack::Stack;
use crate::vm::{gone, Vm};
use crate::{clock, raw, sleep, Error, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kyozon_abi::unikernel::*;
use kyozon_channel::border::{Mutex, MutexGuard};
use kyozon_channel::park::Peer;

/// A thread that may still run, and the memory that it uses.
pub(super) struct Machine {
    pub peer: Peer,
    pub progress: Arc<Progress>,
    stack: Stack,
}

/// Threads without a joiner. Their stacks are freed when they are gone.
static DETACHED: Mutex<Vec<Machine>> = Mutex::new(Vec::new());

/// The list; `None` if a thread died while it held the lock. Then its entries stay, and nothing is added.
fn detached() -> Option<MutexGuard<'static, Vec<Machine>, Vm>> {
    DETACHED.lock(&Vm, None).ok()
}

impl Machine {
    /// Gives up the handle: the stack is freed when the thread is gone.
    pub fn detach(self) {
        if let Some(mut list) = detached() {
            list.push(self);
        }
    }
}

/// Frees the stacks of detached threads that ended cleanly and are gone. Returns whether more will follow: threads that
/// are done, but not gone yet.
fn sweep() -> bool {
    let Some(mut list) = detached() else { return false };
    let mut i = 0;
    let mut more = false;
    while i < list.len() {
        let Machine { peer, progress, .. } = &list[i];
        if gone(*peer) {
            let Machine { stack, progress, .. } = list.swap_remove(i);
            if progress.ended_cleanly() {
                // SAFETY: the thread ended cleanly, so no thread borrows from its stack, and it is gone.
                unsafe { stack.free() };
            }
        } else {
            more |= progress.is_done();
            i += 1;
        }
    }
    more
}

/// The argument of a new machine's entry.
struct Start<'a> {
    run: Box<dyn FnOnce() + Send + 'a>,
    progress: Arc<Progress>,
}

crate::private! {
    /// Progress of the thread that this machine runs; null in the first thread of a family.
    static CURRENT: *const Progress = core::ptr::null();
}

/// Progress of the calling thread; `None` in the first thread of a family.
fn current() -> Option<&'static Progress> {
    // SAFETY: null, or kept alive by the reference of `entry`, which sets null before it drops that.
    unsafe { CURRENT.get().as_ref() }
}

extern "C" fn entry(boot: &'static GuestBoot) -> ! {
    let first = clock::counter();
    // SAFETY: the argument is the box that `start` made for this thread alone.
    let Start { run, progress } = *unsafe { Box::from_raw(boot.argument as *mut Start<'static>) };
    CURRENT.set(Arc::as_ptr(&progress));
    progress.set_first(first);
    run();
    CURRENT.set(core::ptr::null());
    // Before the joiners wake: the first thread may then end the family, and this thread with it at any instruction.
    // If that happened inside the heap, the heap's lock would be poisoned.
    give_back();
    progress.finish();
    // This is not the last reference: the thread that frees the stack holds another one.
    drop(progress);
    crate::exit(0)
}

/// Returns the free pieces that this machine has kept to the heap.
fn give_back() {
    #[cfg(feature = "guest")]
    crate::heap::give_back();
}

/// Ends the calling thread without a result. In the first thread of a family it ends the whole family.
///
/// # Safety
///
/// No thread has borrowed from this thread's stack, which is freed.
pub unsafe fn leave() -> ! {
    give_back();
    if let Some(progress) = current() {
        progress.leave();
    }
    crate::exit(0)
}

/// Keeps a panic's message for the thread that joins this one.
#[cfg_attr(not(feature = "guest"), allow(dead_code))]
pub(crate) fn record_panic(message: &[u8]) {
    if let Some(progress) = current() {
        // SAFETY: this is the thread itself, and a panic ends it.
        unsafe { progress.set_panic(message) };
    }
}

/// Starts a machine that does `work` on a stack of `stack` bytes, bound to another peer as [`ASK_SPAWN`] says in
/// `bound`. The caller must keep what `work` borrows alive until the machine is gone.
///
/// # Errors
///
/// [`Error::Full`]: the group has no number for it, or the heap or the host no memory. Other errors are those of
/// [`ASK_SPAWN`].
pub(super) fn start<'a, F, T>(
    stack: usize,
    bound: u64,
    work: F,
) -> Result<(Machine, Arc<Packet<T>>)>
where
    F: FnOnce() -> T + Send + 'a,
    T: Send + 'a,
{
    let mut more = sweep();
    let stack = Stack::new(stack)?;
    let progress = Arc::new(Progress::new());
    let packet = Arc::new(Packet::new());
    let result = packet.clone();
    // SAFETY: this is the thread, and `entry` publishes that it is done only afterwards.
    let run = Box::new(move || unsafe { result.put(work()) });
    let start = Box::into_raw(Box::new(Start { run, progress: progress.clone() }));
    let arguments = [entry as *const () as u64, start as u64, stack.base(), stack.bytes(), bound];
    // SAFETY: the new peer runs `entry` on a stack and with a box that no other thread has.
    let mut answer = unsafe { raw::hypercall(ASK_SPAWN, &arguments) };
    // Threads that are done are about to go, and free their numbers.
    let deadline = clock::now() + 1_000_000_000;
    while answer == Err(Error::Full) && more && clock::now() < deadline {
        sleep::park(Some(clock::now() + 1_000_000));
        more = sweep();
        // SAFETY: as above.
        answer = unsafe { raw::hypercall(ASK_SPAWN, &arguments) };
    }
    match answer {
        Ok(name) => {
            let peer = Peer::new(name as u8, (name >> 32) as u32).ok_or(Error::Full)?;
            Ok((Machine { peer, progress, stack }, packet))
        }
        Err(error) => {
            // SAFETY: no peer was started, so the box and the stack are still this function's.
            unsafe {
                drop(Box::from_raw(start));
                stack.free();
            }
            Err(error)
        }
    }
}

/// Ends a spawned peer of this family, at whatever instruction it is; does not wait for it.
pub(super) fn end(peer: Peer) {
    // SAFETY: what the peer owned is leaked, and its stack is kept, as `sweep` frees only stacks of clean ends.
    let _ = unsafe { raw::hypercall(ASK_END, &[peer.number().into(), peer.generation().into()]) };
}
