//! A worker: takes batches of commands from one ring, puts answers into another.

use super::command::{execute, Store, Then};
use super::{resp, Header, HEADER};
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{fence, AtomicBool, Ordering};
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::data::Data;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};

/// After so many bytes of answers the rest of a batch is left for another time.
pub const ANSWERS: usize = 32 << 10;

/// Bytes of answers of which nobody was told, at most.
const QUIET: usize = super::RING / 8;

/// Who waits for answers, of all workers.
#[derive(Debug)]
pub struct Bell {
    /// He sleeps, or is about to.
    asleep: AtomicBool,
    /// His number in the group.
    peer: u8,
}

impl Bell {
    /// For this peer.
    pub fn new(peer: u8) -> Self {
        Self { asleep: AtomicBool::new(false), peer }
    }

    /// The peer is about to sleep: it looks once more after this.
    pub fn listen(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// The peer is awake.
    pub fn ignore(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the peer where it sleeps. What it shall see was stored before.
    fn ring<G: TrustedGroup>(&self, me: &G) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            me.unpark(self.peer);
        }
    }
}

/// Works until the front closes the ring, or is gone. First it says that it is there, by answers to nobody.
pub fn work<C, D, G>(
    mut batches: Reader<C, D>,
    mut answers: Writer<C, D>,
    store: &Store,
    bell: &Bell,
    me: &G,
) -> Result<(), Error>
where
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    let mut batch = alloc::vec![0; HEADER + resp::MOST_BYTES];
    let mut out = Vec::with_capacity(HEADER + ANSWERS);
    let hello = Header { client: u32::MAX, batch: 0, done: 0, then: Then::Next as u32 };
    answers.send(&hello.bytes(), me, None)?;
    bell.ring(me);
    let mut quiet = 0;
    loop {
        let next = match batches.try_recv(&mut batch, me) {
            // Not for each answer: who is woken for one soon sleeps again, and waits for the next.
            Ok(None) => {
                bell.ring(me);
                quiet = 0;
                batches.recv(&mut batch, me, None)
            }
            Ok(Some(bytes)) => Ok(bytes),
            Err(error) => Err(error),
        };
        let bytes = match next {
            Err(Error::Closed | Error::PeerDied) => return Ok(()),
            result => result?,
        };
        let Some(mut header) = Header::of(&batch[..bytes]) else { return Err(Error::Corrupt) };
        out.clear();
        out.extend([0; HEADER]);
        let (done, then) = serve(&batch[HEADER..bytes], store, me, &mut out);
        (header.done, header.then) = (done as u32, then as u32);
        out[..HEADER].copy_from_slice(&header.bytes());
        quiet += out.len();
        if quiet > QUIET {
            // Else there might be no room, and nobody who makes some.
            bell.ring(me);
            quiet = out.len();
        }
        let grant = match answers.reserve(out.len(), me, None) {
            Err(Error::Closed | Error::PeerDied) => return Ok(()),
            result => result?,
        };
        grant.write(0, &out)?;
        grant.commit_quietly(out.len());
    }
}

/// Does what is at the beginning of a batch, one command at least: bytes that are done with.
pub fn serve<G: TrustedGroup>(
    batch: &[u8],
    store: &Store,
    me: &G,
    out: &mut Vec<u8>,
) -> (usize, Then) {
    let mut done = 0;
    while let Ok(Some(command)) = resp::parse(&batch[done..]) {
        let then = execute(command.words, store, me, out);
        done += command.bytes;
        if then != Then::Next || out.len() >= ANSWERS {
            return (done, then);
        }
    }
    (done, Then::Next)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Table;
    use kyozon_portable::machine;

    #[test]
    fn a_batch_of_long_answers_is_done_in_parts() {
        let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
        let me = machine::member();
        store.table.set(b"a", &[b'x'; 10_000], &me).unwrap();
        let batch = "GET a\r\n".repeat(20);
        let mut at = 0;
        let mut counts = Vec::new();
        while at < batch.len() {
            let mut out = Vec::new();
            let (done, then) = serve(&batch.as_bytes()[at..], &store, &me, &mut out);
            assert_eq!(then, Then::Next);
            counts.push(resp::answers(&out).unwrap());
            at += done;
        }
        assert_eq!(counts, [4, 4, 4, 4, 4]);
    }

    #[test]
    fn what_stands_behind_the_end_is_not_done() {
        let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
        let (me, mut out) = (machine::member(), Vec::new());
        let done = serve(b"SET a 1\r\nQUIT\r\nSET a 2\r\n", &store, &me, &mut out);
        assert_eq!(done, (15, Then::Close));
        assert_eq!(out, b"+OK\r\n+OK\r\n");
        assert_eq!(store.table.get(b"a", &me, |value| value == Some(b"1")), Ok(true));
    }
}
