//! A key-value store that speaks the Redis protocol: one table, workers that serve it, a front that has the network.
//!
//! | module | what it does |
//! |---|---|
//! | [`resp`] | commands and answers as bytes |
//! | [`table`] | the table, in shards, each behind a lock |
//! | [`command`] | what each command does |
//! | [`brief`] | how long they look before they sleep |
//! | [`work`] | a worker: batches of commands in, answers out |
//! | [`front`] | clients, their batches, and which worker has them; no network |
//! | [`serve`] | the front at a network |
//! | [`fuzz`] | a stranger's bytes in, for a fuzzer and a test |
//!
//! Each worker has two rings, one each way. A batch is what one client has sent, as whole commands, and one worker has
//! it; the client's next batch goes out when the answers of this one are there. So answers are in order without being
//! put in order, and a worker that dies had one batch of some clients, which get an error for each command.
//!
//! Invariants:
//!
//! 1. A client can cause errors and the end of its connection, nothing else: all that it sends has a bound, and what is
//!    kept for it, too.
//! 2. A client that does not read holds up nobody: it gets no further batch.
//! 3. A worker's death is seen within a heartbeat of the group. Part of the table may be lost with it, and says so.
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

/// What stands before a batch, and before its answers: four numbers of 4 bytes, the lowest byte first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Header {
    /// Whose it is.
    client: u32,
    /// Which batch of this client.
    batch: u32,
    /// Bytes of the batch that are done with; in a batch 0.
    done: u32,
    /// What is to be done next, as [`command::Then`]; in a batch 0.
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

    fn of(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.first_chunk::<HEADER>()?;
        let field = |at: usize| {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
        };
        Some(Self { client: field(0), batch: field(4), done: field(8), then: field(12) })
    }
}

/// Bytes of a ring's data: a record has at most half of it, and answers that are longer than [`work::ANSWERS`] are one
/// command's, which are not longer than [`resp::MOST_BYTES`] and a little.
pub const RING: usize = 256 << 10;

const _: () = {
    assert!(HEADER + resp::MOST_BYTES <= kyozon_channel::spsc::limit(RING));
    assert!(HEADER + work::ANSWERS + resp::MOST_BYTES + 64 <= kyozon_channel::spsc::limit(RING));
};
