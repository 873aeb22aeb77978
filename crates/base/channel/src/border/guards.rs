//! Locks that own their data.

use super::region::Plain;
use crate::error::Error;
use crate::park::Group;
use crate::sync::{Acquired, Condvar, RawMutex, RawRwLock, Woken};
use crate::word::Word;
use core::cell::UnsafeCell;
use core::fmt;
use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A group whose answers memory safety may depend on.
///
/// # Safety
///
/// [`crate::park::Park::me`] returns the same peer for all calls from one thread of execution, and different peers for
/// different live threads.
///
/// [`crate::park::Peers::life`] reports a peer as dead only when no thread will ever use a reference again that borrows
/// from this peer's `Self`. That the peer itself has stopped is not enough: safe code can leak a guard, and send what
/// the guard leads to wherever the lifetimes allow. So a peer that can die must not get a `&'static Self`.
///
/// [`TrustedGroup::identity`] returns the same number for all peers of a group, and different numbers for groups that
/// can reach the same lock. It is not 0.
pub unsafe trait TrustedGroup: Group {
    /// Tells this group from others: a lock serves only the first group that uses it, because another one knows nothing
    /// of its owners.
    fn identity(&self) -> u64;
}

// SAFETY: the same peers, and what borrows from a reference lives no longer than the reference.
unsafe impl<G: TrustedGroup + ?Sized> TrustedGroup for &G {
    fn identity(&self) -> u64 {
        (**self).identity()
    }
}

/// The group that a lock serves: its identity, or 0.
#[derive(Debug, Default)]
#[repr(transparent)]
struct Bound<W>(W);

impl<W: Word> Bound<W> {
    /// Fails if the lock serves another group.
    #[inline]
    fn admit<G: TrustedGroup + ?Sized>(&self, group: &G) -> Result<(), Error> {
        let known = self.0.load(Relaxed);
        let identity = group.identity();
        if known == identity || known == 0 && self.bind(identity) {
            Ok(())
        } else {
            Err(Error::NotAMember)
        }
    }

    #[cold]
    fn bind(&self, identity: u64) -> bool {
        self.0.replace(0, identity, Relaxed).map_or_else(|known| known == identity, |_| true)
    }
}

/// Why a lock with data was not acquired, or was acquired poisoned.
pub enum LockError<G> {
    /// The lock is acquired, but a peer died while it held it: a change of the data may be incomplete. The next owner
    /// gets this error, too, unless the data is replaced or declared consistent.
    Poisoned(Poisoned<G>),
    /// The lock is not acquired.
    Failed(Error),
}

/// A lock that is held, with data that may be half changed: a collection may own an element twice. Nothing unwound when
/// the peer died, so reading or dropping the data is not safe in general, unlike with std's `PoisonError`.
pub struct Poisoned<G>(G);

impl<G> Poisoned<G> {
    /// The guard. The lock stays poisoned until [`MutexGuard::clear_poison`] or [`WriteGuard::clear_poison`].
    ///
    /// # Safety
    ///
    /// The data is a valid value of its type, at whatever instruction its last owner died.
    pub unsafe fn recover(self) -> G {
        self.0
    }
}

impl<G: Deref<Target: Plain>> Poisoned<G> {
    /// The guard: any bytes are a value of this type. The lock stays poisoned until [`MutexGuard::clear_poison`] or
    /// [`WriteGuard::clear_poison`].
    pub fn recover_plain(self) -> G {
        self.0
    }
}

impl<'a, T, G: TrustedGroup + ?Sized, W: Word> Poisoned<MutexGuard<'a, T, G, W>> {
    /// Replaces the data, which is leaked, and declares the lock clean.
    pub fn replace(mut self, data: T) -> MutexGuard<'a, T, G, W> {
        // SAFETY: the guard holds the lock. The old value is neither read nor dropped.
        unsafe { self.0.mutex.data.get().write(data) };
        self.0.clear_poison();
        self.0
    }
}

impl<'a, T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize>
    Poisoned<WriteGuard<'a, T, G, W, PEERS>>
{
    /// Replaces the data, which is leaked, and declares the lock clean.
    pub fn replace(mut self, data: T) -> WriteGuard<'a, T, G, W, PEERS> {
        // SAFETY: the guard holds the lock for writing. The old value is neither read nor dropped.
        unsafe { self.0.lock.data.get().write(data) };
        self.0.clear_poison();
        self.0
    }
}

/// A guard of a clean lock, or an error.
pub type Locked<Guard> = Result<Guard, LockError<Guard>>;

impl<G> fmt::Debug for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<G> fmt::Display for LockError<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisoned(_) => f.write_str("a peer died while it held this lock"),
            Self::Failed(error) => error.fmt(f),
        }
    }
}

impl<G> core::error::Error for LockError<G> {}

/// Data that one peer at a time can access. See [`RawMutex`].
///
/// Safe code cannot reach data that a dead peer may have left half changed:
///
/// ```compile_fail,E0614
/// # use kyozon_channel::{border::{LockError, Mutex}, threads::Threads};
/// # let (group, lock) = (Threads::new(0), Mutex::new(vec![1]));
/// # let me = group.join(0).unwrap();
/// if let Err(LockError::Poisoned(held)) = lock.lock(&me, None) {
///     (*held).push(2);
/// };
/// ```
///
/// It can replace such data, or read it if any bytes are a value:
///
/// ```
/// # use kyozon_channel::{border::{LockError, Mutex}, threads::Threads};
/// # let (group, lock, sum) = (Threads::new(0), Mutex::new(vec![1]), Mutex::new(1_u64));
/// # let me = group.join(0).unwrap();
/// if let Err(LockError::Poisoned(held)) = lock.lock(&me, None) {
///     held.replace(Vec::new());
/// }
/// if let Err(LockError::Poisoned(held)) = sum.lock(&me, None) {
///     *held.recover_plain() += 1;
/// };
/// ```
#[derive(Debug, Default)]
#[repr(C)]
pub struct Mutex<T, W = AtomicU64> {
    raw: RawMutex<W>,
    bound: Bound<W>,
    data: UnsafeCell<T>,
}

// SAFETY: the data moves between threads, and only one thread at a time has it.
unsafe impl<T: Send, W: Sync> Sync for Mutex<T, W> {}

/// Access to the data; dropping it releases the lock.
pub struct MutexGuard<'a, T, G: TrustedGroup + ?Sized, W: Word = AtomicU64> {
    mutex: &'a Mutex<T, W>,
    group: &'a G,
    then: Acquired,
    /// Whether the caller was already unwinding when it acquired the lock.
    unwinding: bool,
    /// Not `Send`: the lock belongs to the peer.
    not_send: PhantomData<*const ()>,
}

impl<T> Mutex<T> {
    /// A free mutex with this data.
    pub const fn new(data: T) -> Self {
        let bound = Bound(AtomicU64::new(0));
        Self { raw: RawMutex::new(), bound, data: UnsafeCell::new(data) }
    }
}

impl<T, W: Word> Mutex<T, W> {
    /// Acquires the mutex, like [`RawMutex::lock`]; [`Error::NotAMember`] if it serves another group.
    #[inline]
    pub fn lock<'a, G: TrustedGroup + ?Sized>(
        &'a self,
        group: &'a G,
        deadline: Option<u64>,
    ) -> Locked<MutexGuard<'a, T, G, W>> {
        self.bound.admit(group).map_err(LockError::Failed)?;
        self.guard(group, self.raw.lock(group, deadline).map_err(LockError::Failed)?)
    }

    fn guard<'a, G: TrustedGroup + ?Sized>(
        &'a self,
        group: &'a G,
        then: Acquired,
    ) -> Locked<MutexGuard<'a, T, G, W>> {
        let unwinding = group.panicking();
        let not_send = PhantomData;
        let guard = MutexGuard { mutex: self, group, then, unwinding, not_send };
        match then {
            Acquired::Clean => Ok(guard),
            Acquired::Poisoned => Err(LockError::Poisoned(Poisoned(guard))),
        }
    }
}

impl<'a, T, G: TrustedGroup + ?Sized, W: Word> MutexGuard<'a, T, G, W> {
    /// Declares the data consistent.
    pub fn clear_poison(&mut self) {
        self.then = Acquired::Clean;
    }

    /// Waits on `condvar`, like [`Condvar::wait`].
    ///
    /// # Errors
    ///
    /// [`LockError::Poisoned`] even if the guard was recovered before, as another owner may have died meanwhile.
    pub fn wait(
        self,
        condvar: &Condvar<W>,
        deadline: Option<u64>,
    ) -> Result<(Self, Woken), LockError<Self>> {
        let (mutex, group, then) = (self.mutex, self.group, self.then);
        core::mem::forget(self);
        let (then, woken) =
            condvar.wait(group, &mutex.raw, then, deadline).map_err(LockError::Failed)?;
        mutex.guard(group, then).map(|guard| (guard, woken))
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word> Deref for MutexGuard<'_, T, G, W> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: this guard holds the lock, and every other reference needs the lock.
        unsafe { &*self.mutex.data.get() }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word> DerefMut for MutexGuard<'_, T, G, W> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.mutex.data.get() }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word> Drop for MutexGuard<'_, T, G, W> {
    #[inline]
    fn drop(&mut self) {
        let unwinds = self.group.panicking() && !self.unwinding;
        let then = if unwinds { Acquired::Poisoned } else { self.then };
        self.mutex.raw.unlock(self.group, then);
    }
}

/// Data that many peers can read, or one can write. See [`RawRwLock`].
#[derive(Debug, Default)]
#[repr(C)]
pub struct RwLock<T, W: Word = AtomicU64, const PEERS: usize = 64> {
    raw: RawRwLock<W, PEERS>,
    bound: Bound<W>,
    data: UnsafeCell<T>,
}

// SAFETY: several threads at a time have the data to read, or one to write.
unsafe impl<T: Send + Sync, W: Word + Sync, const PEERS: usize> Sync for RwLock<T, W, PEERS> {}

/// Read access to the data; dropping it releases the lock.
pub struct ReadGuard<'a, T, G: TrustedGroup + ?Sized, W: Word = AtomicU64, const PEERS: usize = 64>
{
    lock: &'a RwLock<T, W, PEERS>,
    group: &'a G,
    not_send: PhantomData<*const ()>,
}

/// Write access to the data; dropping it releases the lock.
pub struct WriteGuard<'a, T, G: TrustedGroup + ?Sized, W: Word = AtomicU64, const PEERS: usize = 64>
{
    lock: &'a RwLock<T, W, PEERS>,
    group: &'a G,
    then: Acquired,
    unwinding: bool,
    not_send: PhantomData<*const ()>,
}

impl<T, const PEERS: usize> RwLock<T, AtomicU64, PEERS> {
    /// A free lock with this data.
    pub const fn new(data: T) -> Self {
        let bound = Bound(AtomicU64::new(0));
        Self { raw: RawRwLock::new(), bound, data: UnsafeCell::new(data) }
    }
}

impl<T, W: Word, const PEERS: usize> RwLock<T, W, PEERS> {
    /// Acquires the lock for reading, like [`RawRwLock::read`]; [`Error::NotAMember`] also if it serves another group.
    #[inline]
    pub fn read<'a, G: TrustedGroup + ?Sized>(
        &'a self,
        group: &'a G,
        deadline: Option<u64>,
    ) -> Locked<ReadGuard<'a, T, G, W, PEERS>> {
        self.bound.admit(group).map_err(LockError::Failed)?;
        let acquired = self.raw.read(group, deadline).map_err(LockError::Failed)?;
        let guard = ReadGuard { lock: self, group, not_send: PhantomData };
        match acquired {
            Acquired::Clean => Ok(guard),
            Acquired::Poisoned => Err(LockError::Poisoned(Poisoned(guard))),
        }
    }

    /// Acquires the lock for writing, like [`RawRwLock::write`]; [`Error::NotAMember`] also if it serves another group.
    #[inline]
    pub fn write<'a, G: TrustedGroup + ?Sized>(
        &'a self,
        group: &'a G,
        deadline: Option<u64>,
    ) -> Locked<WriteGuard<'a, T, G, W, PEERS>> {
        self.bound.admit(group).map_err(LockError::Failed)?;
        let then = self.raw.write(group, deadline).map_err(LockError::Failed)?;
        let unwinding = group.panicking();
        let not_send = PhantomData;
        let guard = WriteGuard { lock: self, group, then, unwinding, not_send };
        match then {
            Acquired::Clean => Ok(guard),
            Acquired::Poisoned => Err(LockError::Poisoned(Poisoned(guard))),
        }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> WriteGuard<'_, T, G, W, PEERS> {
    /// Declares the data consistent.
    pub fn clear_poison(&mut self) {
        self.then = Acquired::Clean;
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> Deref
    for ReadGuard<'_, T, G, W, PEERS>
{
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held for reading, so no peer writes.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> Deref
    for WriteGuard<'_, T, G, W, PEERS>
{
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the lock is held for writing, so no other peer has a reference.
        unsafe { &*self.lock.data.get() }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> DerefMut
    for WriteGuard<'_, T, G, W, PEERS>
{
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above.
        unsafe { &mut *self.lock.data.get() }
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> Drop
    for ReadGuard<'_, T, G, W, PEERS>
{
    #[inline]
    fn drop(&mut self) {
        self.lock.raw.unlock_read(self.group);
    }
}

impl<T, G: TrustedGroup + ?Sized, W: Word, const PEERS: usize> Drop
    for WriteGuard<'_, T, G, W, PEERS>
{
    #[inline]
    fn drop(&mut self) {
        let unwinds = self.group.panicking() && !self.unwinding;
        let then = if unwinds { Acquired::Poisoned } else { self.then };
        self.lock.raw.unlock_write(self.group, then);
    }
}
