//! A key-value store that speaks the Redis protocol: one table, workers that execute commands on it, and a front that
//! has the network.
//!
//! | module | purpose |
//! |---|---|
//! | [`resp`] | commands and answers as bytes |
//! | [`table`] | the table, in shards, each behind a lock |
//! | [`command`] | the commands |
//! | [`brief`] | how long front and workers poll before they sleep |
//! | [`work`] | a worker, which takes batches of commands and returns answers |
//! | [`front`] | clients, their batches, and the choice of workers; no network |
//! | [`serve`] | the front on a network |
//! | [`fuzz`] | untrusted input, for a fuzzer and a test |
//!
//! Each worker has two rings, one in each direction. A batch is a number of whole commands of one client; one worker
//! executes it. A client's next batch is dispatched when the answers of this one have arrived. So answers are in order
//! without sorting, and if a worker dies, some clients get an error for each command of one batch.
//!
//! Invariants:
//!
//! 1. A client can cause errors and the end of its connection, nothing else. Its commands and the memory kept for it
//!    are bounded.
//! 2. A client that does not read delays no other client: it gets no further batch.
//! 3. A worker borrows nothing, so it can die alone. The front notices that when it would sleep, and ten times a second
//!    if it never sleeps. Part of the table may be lost; commands on that part return an error.
//!
//! Must not know: whether a worker is a thread or a virtual machine.
#![cfg_attr(feature = "image", no_std)]

extern crate alloc;

pub mod brief;
pub mod command;
pub mod front;
pub mod fuzz;
pub mod resp;
pub mod serve;
pub mod table;
pub mod work;

/// The header of a batch, and of its answers: four little-endian numbers of 4 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Index of the client.
    client: u32,
    /// Number of the batch, of this client.
    batch: u32,
    /// In answers, the bytes of the batch that were executed; in a batch 0.
    done: u32,
    /// In answers, the next action, a [`command::Then`]; in a batch 0.
    then: u32,
}

/// Bytes of a [`Header`].
const HEADER: usize = 16;

impl Header {
    fn bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        let fields = [self.client, self.batch, self.done, self.then];
        for (to, field) in bytes.chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.to_le_bytes());
        }
        bytes
    }

    fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER>()?;
        let field = |offset: usize| {
            let bytes = &bytes[offset..offset + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        Some(Self { client: field(0), batch: field(4), done: field(8), then: field(12) })
    }
}

/// Bytes of a ring's data. A record takes at most half of it. Answers exceed [`work::ANSWERS`] by at most one command's
/// answer, which is little longer than [`resp::MAX_COMMAND_BYTES`].
pub const RING: usize = 256 << 10;

const _: () = {
    assert!(HEADER + resp::MAX_COMMAND_BYTES <= kyozon_channel::spsc::limit(RING));
    assert!(
        HEADER + work::ANSWERS + resp::MAX_COMMAND_BYTES + 64 <= kyozon_channel::spsc::limit(RING)
    );
};
