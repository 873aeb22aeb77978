//! The border to raw memory: the only unsafe code for memory that honest or hostile peers share.
//!
//! | type | unsafe condition |
//! |---|---|
//! | [`Region`] | memory is mapped and stays mapped: the caller of [`Region::new`] promises it once |
//! | [`Plain`], [`Shared`] | any bytes are a value, and may change: each implementation promises it |
//! | [`Bytes`] | payload is copied from and to memory that a peer may change meanwhile |
//! | [`Mutex`], [`RwLock`] | data lies beside its lock: the group must implement [`TrustedGroup`] |
//!
//! Why it is sound:
//!
//! - **Words** are always atomics. Peers that race for them stay within the memory model.
//! - **Payload** is copied between a peer's private buffer and the region by relaxed atomic accesses: short copies by
//!   `AtomicU64` and `AtomicU8`, long ones by `rep movsb`. An assembly block may do what Rust code could do in its
//!   place, here a loop of relaxed atomic byte accesses (without order among them, each byte whole). So there is no
//!   data race with a peer that writes during the copy: the result is some mixture of old and new bytes. The copy is
//!   made once, by code that the compiler cannot see through, so the bytes that were checked are the bytes that are
//!   used. The same bytes are accessed at different widths, which the memory model does not cover; on x86-64 each
//!   access is either whole or split into bytes.
//! - **References to payload** are never made here. [`Bytes::as_ptr`] is for callers that trust their peers.
//! - **Data of a dead owner** may be half changed. [`Poisoned`] holds the lock, but gives safe code no access to the
//!   data, except if the type is [`Plain`]. References that the dead owner got by the lock are gone with it, as they
//!   borrow from its [`TrustedGroup`].
//! - **Data in locks** is Rust data that is accessed only through the guard, by peers that keep the lock's protocol. A
//!   peer that breaks the protocol can write to it at any time. So locks with data are for groups whose members trust
//!   each other like threads do.
//!
//! Miri checks everything except word accesses and `rep movsb` in payload, for which it runs the equivalent loop of
//! relaxed atomic bytes.
#![allow(unsafe_code)]

mod bytes;
mod guards;
mod region;

pub use bytes::Bytes;
pub use guards::{
    LockError, Mutex, MutexGuard, Poisoned, ReadGuard, RwLock, TrustedGroup, WriteGuard,
};
pub use region::{Plain, Region, Shared};
