//! The border to raw memory: the only unsafe code for what honest or hostile peers share.
//!
//! | type | what is unsafe about it |
//! |---|---|
//! | [`Region`] | that memory is mapped and stays so: promised once, in [`Region::new`] |
//! | [`Plain`], [`Shared`] | that any bytes are a value, and may change: promised where it is implemented |
//! | [`Bytes`] | payload is copied from and to memory that a peer may change meanwhile |
//! | [`Mutex`], [`RwLock`] | data that lies beside its lock: the group must be [`TrustedGroup`] |
//!
//! Why it is sound:
//!
//! - **Words** are atomics, always. Peers that race for them do what the memory model allows.
//! - **Payload** is copied between a peer's private buffer and the region by accesses that the memory model calls
//!   relaxed atomic: short copies by `AtomicU64` and `AtomicU8`, long ones by `rep movsb`. An assembly block may do
//!   what Rust code could do in its place, and that is a loop of relaxed atomic bytes (no order between them, each
//!   byte whole). So a peer that writes while we read is not a data race: we get some mixture of bytes. The copy is
//!   made once, by code that the compiler cannot look into, so what was checked is what is used. Bytes of one place
//!   are accessed at different widths, of which the memory model says nothing; on x86-64 each access is whole or in
//!   bytes.
//! - **References to payload** are never made here. [`Bytes::as_ptr`] is for those who trust their peers.
//! - **Data in locks** is Rust data, reached through the guard only, by peers who keep the lock's protocol. A peer that
//!   does not can write to it at any time. So locks with data are for groups that trust each other like threads do.
//!
//! Miri sees all of it but words and `rep movsb` in payload: in their place it runs the loop of relaxed atomic bytes
//! that they stand for.
#![allow(unsafe_code)]

mod bytes;
mod guards;
mod region;

pub use bytes::Bytes;
pub use guards::{LockError, Mutex, MutexGuard, ReadGuard, RwLock, TrustedGroup, WriteGuard};
pub use region::{Plain, Region, Shared};
