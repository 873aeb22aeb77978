//! Threads that borrow from the thread that started them.

use super::machine::{end, start, Machine};
use super::progress::{Ended, Packet, Progress};
use super::Builder;
use crate::vm::{with_member, Vm};
use crate::{sleep, Error, Result};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::marker::PhantomData;
use kyozon_channel::border::Mutex;
use kyozon_channel::park::{Park, Peer};

/// Waits until a thread of a scope has ended. Returns whether it has a result.
///
/// If the thread died, this does not return: what it borrowed may be half changed. The tender ends the scope's owner,
/// and with that the caller, which is the owner or bound to it.
fn wait(progress: &Progress, peer: Peer) -> bool {
    let has_result = progress.wait(peer);
    while !has_result && progress.is_broken() {
        sleep::park(None);
    }
    has_result
}

/// Threads that may borrow what outlives `'scope`. See [`scope`].
pub struct Scope<'scope, 'env: 'scope> {
    /// The peer whose stack frames the threads borrow: they end with it.
    owner: Peer,
    threads: Mutex<Vec<Machine>>,
    scope: PhantomData<&'scope mut &'scope ()>,
    env: PhantomData<&'env mut &'env ()>,
}

/// A handle of a thread in a scope, to wait for the thread.
pub struct ScopedJoinHandle<'scope, T> {
    peer: Peer,
    progress: Arc<Progress>,
    packet: Arc<Packet<T>>,
    scope: PhantomData<&'scope ()>,
}

/// Runs `work` with a scope in which threads can be started that borrow from around it. Returns when all of them have
/// ended.
///
/// A thread of the scope that panics, crashes or exits ends the calling thread, too, as nothing restores what it had
/// borrowed; in the first thread of a family, that is the end of the program. A thread that shall be able to die alone
/// borrows nothing: [`spawn`](super::spawn) starts it.
pub fn scope<'env, F, T>(work: F) -> T
where
    F: for<'scope> FnOnce(&'scope Scope<'scope, 'env>) -> T,
{
    let threads = Mutex::new(Vec::new());
    let scope = Scope { owner: Vm.me(), threads, scope: PhantomData, env: PhantomData };
    let value = work(&scope);
    // Threads of the scope may start more of them until they have ended.
    while let Some(thread) = scope.last() {
        wait(&thread.progress, thread.peer);
        thread.detach();
    }
    value
}

impl<'scope, 'env> Scope<'scope, 'env> {
    /// Removes the thread that was added last. If a thread died while it held the list, entries may be missing, so the
    /// scope cannot wait for all threads: it panics.
    fn last(&self) -> Option<Machine> {
        with_member(|me| {
            let mut list = self.threads.lock(me, None);
            let list = list.as_mut();
            list.unwrap_or_else(|_| panic!("a thread died while it started another")).pop()
        })
    }

    /// Starts a thread that ends before the scope does.
    ///
    /// # Panics
    ///
    /// Panics if there is no room for one more thread; [`Builder::spawn_scoped`] returns an error instead.
    pub fn spawn<F, T>(&'scope self, work: F) -> ScopedJoinHandle<'scope, T>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        let made = Builder::new().spawn_scoped(self, work);
        made.unwrap_or_else(|error| panic!("no thread: {error}"))
    }
}

impl Builder {
    /// [`Scope::spawn`], with an error instead of a panic.
    ///
    /// # Errors
    ///
    /// [`Error::Full`]: there is no room for one more machine or its stack, or a thread died while it started another
    /// in this scope. [`Error::Argument`]: the size of the stack.
    pub fn spawn_scoped<'scope, 'env, F, T>(
        self,
        scope: &'scope Scope<'scope, 'env>,
        work: F,
    ) -> Result<ScopedJoinHandle<'scope, T>>
    where
        F: FnOnce() -> T + Send + 'scope,
        T: Send + 'scope,
    {
        with_member(|me| {
            let mut list = scope.threads.lock(me, None).map_err(|_| Error::Full)?;
            let (machine, packet) = start(self.stack, u64::from(scope.owner.number()) + 1, work)?;
            let (peer, progress) = (machine.peer, machine.progress.clone());
            list.push(machine);
            Ok(ScopedJoinHandle { peer, progress, packet, scope: PhantomData })
        })
    }
}

impl<T> ScopedJoinHandle<'_, T> {
    /// Waits until the thread has ended. Does not return if the thread died, see [`scope`].
    ///
    /// # Errors
    ///
    /// [`Ended::Left`]: the thread called [`leave`](super::leave). [`Ended::Died`]: another thread ended it by
    /// [`ScopedJoinHandle::end`].
    pub fn join(self) -> core::result::Result<T, Ended> {
        if !wait(&self.progress, self.peer) {
            return Err(self.progress.reason());
        }
        // SAFETY: the thread is done, and the handle, which is its only joiner, is consumed.
        unsafe { self.packet.take() }.ok_or(Ended::Died)
    }

    /// Number of the thread in its group, and its generation: how many threads had that number before.
    pub fn peer(&self) -> Peer {
        self.peer
    }

    /// Ends the thread at whatever instruction it is, without waiting for it. Its locks are poisoned. The scope goes
    /// on.
    ///
    /// # Safety
    ///
    /// What the thread, and those in its own scopes, have borrowed is in a valid state at each instruction that they
    /// may have reached. Numbers and atomics always are; a collection that the thread changes is not.
    pub unsafe fn end(&self) {
        self.progress.set_ended();
        // SAFETY: the caller's promise.
        unsafe { end(self.peer) };
    }

    /// The clock at the thread's first instruction; `None` if the time-stamp counter is no clock, or if the thread has
    /// not begun.
    pub fn began(&self) -> Option<u64> {
        self.progress.began()
    }
}
