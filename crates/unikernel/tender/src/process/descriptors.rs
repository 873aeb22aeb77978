//! Numbers of the descriptors that a guest's process keeps.

use kyozon_abi::unikernel::{MAX_QUEUES, QUEUE_DOORBELL};

/// Doorbells are descriptors from here on.
pub const DOORBELLS: i32 = 64;
/// Doorbells: of peers, then of queues.
pub const DOORBELL_COUNT: usize = QUEUE_DOORBELL as usize + MAX_QUEUES;

/// The descriptor that tells others of the process's end. The filter lets the guest do nothing with it.
pub const LIFELINE: i32 = DOORBELLS + DOORBELL_COUNT as i32;
