//! Which object each thread uses, so that an object can be destroyed at once after its last use.
//!
//! A thread that releases a lock looks for waiters afterwards. By then another thread may have taken and released the
//! lock, and may want to free it. POSIX allows that, so `pthread_*_destroy` waits for such threads.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use kyozon_channel::park::{Group, Peer, MAX_PEERS};

/// Looks before the first sleep: the end of a call is close.
const LOOKS: u32 = 1000;
/// Nanoseconds of a sleep.
const SLEEP: u64 = 1_000_000;

/// The object that each peer uses. A thread that destroys an object must have seen, by a lock or in another way, that
/// each other user began its last use.
pub struct Users([User; MAX_PEERS]);

/// On cache lines of its own, so that a use costs two plain stores to memory that no other peer writes.
#[repr(align(128))]
struct User {
    /// [`Peer::word`]: the last peer that had this number and uses objects.
    peer: AtomicU64,
    /// Address of the object; 0 for none.
    object: AtomicUsize,
}

impl Users {
    /// No peer uses an object.
    pub const fn new() -> Self {
        Self([const { User { peer: AtomicU64::new(0), object: AtomicUsize::new(0) } }; MAX_PEERS])
    }

    fn user<G: Group + ?Sized>(&self, group: &G) -> &User {
        &self.0[usize::from(group.me().number()) % MAX_PEERS]
    }

    /// Makes the calling peer one that uses objects: its first call.
    pub fn enter<G: Group + ?Sized>(&self, group: &G) {
        let user = self.user(group);
        // Perhaps a peer with this number died while it used one.
        user.object.store(0, Ordering::Relaxed);
        user.peer.store(group.me().word(), Ordering::Release);
    }

    /// The caller uses `object`, and no other, until it calls [`Users::clear`].
    pub fn set<T, G: Group + ?Sized>(&self, group: &G, object: *const T) {
        // Before the accesses that let another thread destroy the object: each of them has release order.
        self.user(group).object.store(object.addr(), Ordering::Release);
    }

    /// The caller uses no object any more.
    pub fn clear<G: Group + ?Sized>(&self, group: &G) {
        self.user(group).object.store(0, Ordering::Release);
    }

    /// Calls `work`, which uses `object` and does not call these functions.
    pub fn using<T, R, G>(&self, group: &G, object: *const T, work: impl FnOnce() -> R) -> R
    where
        G: Group + ?Sized,
    {
        self.set(group, object);
        let done = work();
        self.clear(group);
        done
    }

    /// Waits until no other peer that lives uses `object`.
    pub fn wait<T, G>(&self, group: &G, object: *const T)
    where
        G: Group + ?Sized,
    {
        for user in &self.0 {
            let mut looks = 0;
            while user.object.load(Ordering::Acquire) == object.addr() {
                let peer = Peer::from_word(user.peer.load(Ordering::Acquire));
                if peer.is_none_or(|peer| peer == group.me() || group.dead(peer)) {
                    break;
                }
                looks += 1;
                if looks < LOOKS {
                    group.spin_hint();
                } else {
                    group.park(Some(group.now() + SLEEP));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::{AtomicBool, Ordering::SeqCst};
    use kyozon_channel::threads::Threads;
    use std::thread;
    use std::time::Duration;

    #[test]
    fn an_object_is_destroyed_after_its_last_use() {
        let (users, group, object) = (Users::new(), Threads::new(0), AtomicU64::new(0));
        let (began, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            scope.spawn(|| {
                let me = group.join(1).unwrap();
                users.enter(&me);
                users.using(&me, &raw const object, || {
                    began.store(true, SeqCst);
                    thread::sleep(Duration::from_millis(50));
                    ended.store(true, SeqCst);
                });
            });
            let me = group.join(0).unwrap();
            while !began.load(SeqCst) {
                thread::yield_now();
            }
            users.wait(&me, &raw const began);
            assert!(!ended.load(SeqCst), "another object is in use");
            users.wait(&me, &raw const object);
            assert!(ended.load(SeqCst));
        });
    }

    #[test]
    fn a_dead_user_is_not_waited_for() {
        let (users, group, object) = (Users::new(), Threads::new(0), AtomicU64::new(0));
        let died = thread::scope(|scope| {
            let work = || {
                let other = group.join(1).unwrap();
                users.enter(&other);
                users.using(&other, &raw const object, || std::panic::resume_unwind(Box::new(1)))
            };
            scope.spawn(work).join().map(|()| 0)
        });
        assert!(died.is_err());
        let me = group.join(0).unwrap();
        users.wait(&me, &raw const object);
        let next = group.join(1).unwrap();
        users.wait(&me, &raw const object);
        users.enter(&next);
        users.wait(&me, &raw const object);
    }
}
