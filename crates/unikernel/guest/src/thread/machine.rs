//! The virtual machine of a thread: its start, its end, and the return of its stack.

use super::progress::{Packet, Progress};
use super::stack::Stack;
use crate::vm::{gone, with_member};
use crate::{clock, raw, sleep, system, Error, Result};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use kyozon_abi::unikernel::*;
use kyozon_channel::border::{LockError, Mutex};
use kyozon_channel::park::Peer;

/// A thread that may still run, and the memory that it uses.
pub(super) struct Machine {
    pub peer: Peer,
    pub progress: Arc<Progress>,
    stack: Stack,
}

/// Threads without a joiner. Their stacks are freed when they are gone.
static DETACHED: Mutex<Vec<Machine>> = Mutex::new(Vec::new());

/// Calls `work` with the list. If a thread died while it held the lock, a new list takes the place of the old one,
/// whose stacks stay allocated. `None` if this thread holds the lock.
fn with_detached<R>(work: impl FnOnce(&mut Vec<Machine>) -> R) -> Option<R> {
    with_member(|me| {
        let mut list = match DETACHED.lock(me, None) {
            Ok(list) => list,
            Err(LockError::Poisoned(list)) => list.replace(Vec::new()),
            Err(LockError::Failed(_)) => return None,
        };
        Some(work(&mut list))
    })
}

impl Machine {
    /// Gives up the handle: the stack is freed when the thread is gone, if it ended cleanly.
    pub fn detach(self) {
        with_detached(|list| list.push(self));
    }
}

/// Frees the stacks of detached threads that ended cleanly and are gone. Returns whether more will follow: threads that
/// are done, but not gone yet.
fn sweep() -> bool {
    let swept = with_detached(|list| {
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
    });
    swept.unwrap_or(false)
}

/// The argument of a new machine's entry.
struct Start<F, T> {
    work: F,
    progress: Arc<Progress>,
    packet: Arc<Packet<T>>,
}

/// A reference to a [`Packet`] of some type, and the function that drops it.
type PacketReference = (*const (), unsafe fn(*const ()));

crate::private! {
    /// This machine's reference to the progress of its thread; null in the first thread of a family.
    static CURRENT: *const Progress = core::ptr::null();
    /// This machine's reference to the packet of its thread.
    static PACKET: Option<PacketReference> = None;
}

/// Progress of the calling thread; `None` in the first thread of a family.
fn current() -> Option<&'static Progress> {
    // SAFETY: null, or kept alive by the reference of `entry`, which `finish` takes before it drops that.
    unsafe { CURRENT.get().as_ref() }
}

/// Drops a reference to a packet.
///
/// # Safety
///
/// The reference came from [`Arc::into_raw`] of an `Arc<Packet<T>>`, and is not used any more.
unsafe fn drop_packet<T>(packet: *const ()) {
    // SAFETY: the caller's promise.
    drop(unsafe { Arc::from_raw(packet.cast::<Packet<T>>()) });
}

/// A thread's first function. Nothing that `finish` does not free is on its stack while the work runs, as the work may
/// end the thread by [`leave`].
extern "C" fn entry<F: FnOnce() -> T, T>(boot: &'static GuestBoot) -> ! {
    let first = clock::counter();
    // SAFETY: the argument is the box that `start` made for this thread alone.
    let Start { work, progress, packet } =
        *unsafe { Box::from_raw(boot.argument as *mut Start<F, T>) };
    progress.set_first(first);
    CURRENT.set(Arc::into_raw(progress));
    let packet = Arc::into_raw(packet);
    PACKET.set(Some((packet.cast(), drop_packet::<T>)));
    let value = work();
    // SAFETY: this is the thread, which publishes only later that it is done; `finish` has not dropped the reference.
    unsafe { (*packet).put(value) };
    finish(Progress::finish)
}

/// Ends the calling thread, which publishes its end by `publish`.
fn finish(publish: fn(&Progress)) -> ! {
    if let Some((packet, drop)) = PACKET.replace(None) {
        // SAFETY: made by `entry` with its type. If nobody joins the thread, this drops its result.
        unsafe { drop(packet) };
    }
    let progress = CURRENT.replace(core::ptr::null());
    // Before the joiners wake: the first thread may then end the family, and this thread with it at any instruction.
    // If that happened inside the heap, the heap's lock would be poisoned.
    give_back();
    if !progress.is_null() {
        // SAFETY: the reference that `entry` made. It is not the last one: who frees the stack holds another.
        let progress = unsafe { Arc::from_raw(progress) };
        publish(&progress);
    }
    system::end(0, EXIT_ALONE)
}

/// Returns the free pieces that this machine has kept to the heap.
fn give_back() {
    #[cfg(feature = "guest")]
    crate::heap::give_back();
}

/// Ends the calling thread without a result. In the first thread of a family it ends the whole family. What the thread
/// owned, except what this module made for it, is leaked.
///
/// # Safety
///
/// No thread has borrowed from this thread's stack, which is freed. What this thread has borrowed is in a valid state.
pub unsafe fn leave() -> ! {
    finish(Progress::leave)
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
    let start =
        Box::into_raw(Box::new(Start { work, progress: progress.clone(), packet: packet.clone() }));
    let entry = entry::<F, T> as extern "C" fn(&'static GuestBoot) -> !;
    let arguments = [entry as usize as u64, start as u64, stack.base(), stack.bytes(), bound];
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
///
/// # Safety
///
/// What the peer has borrowed from threads that go on is in a valid state at each instruction that it may have reached.
pub(super) unsafe fn end(peer: Peer) {
    // SAFETY: what the peer owned is leaked, and its stack is kept, as `sweep` frees only stacks of clean ends. The
    // rest is the caller's promise.
    let _ = unsafe { raw::hypercall(ASK_END, &[peer.number().into(), peer.generation().into()]) };
}
