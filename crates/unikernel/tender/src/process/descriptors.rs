//! Numbers of the descriptors that stay open in a guest's process.

use kyozon_abi::unikernel::{MAX_QUEUES, QUEUE_DOORBELL};

/// First descriptor of the doorbells.
pub const DOORBELLS: i32 = 64;
/// Number of doorbells: first those of peers, then those of queues.
pub const DOORBELL_COUNT: usize = QUEUE_DOORBELL as usize + MAX_QUEUES;

/// A descriptor that closes when the process ends, which notifies the keeper. The filter denies every use of it.
pub const LIFELINE: i32 = DOORBELLS + DOORBELL_COUNT as i32;
