//! A worker takes batches of commands from one ring, and puts answers into another.

use super::command::{execute, Store, Then};
use super::{resp, Header, HEADER};
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::{fence, AtomicBool, Ordering};
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::data::Data;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};

/// After this many bytes of answers, the rest of a batch is left for a later one.
pub const ANSWERS: usize = 32 << 10;

/// Maximum bytes of answers of which the front was not notified.
const UNNOTIFIED: usize = super::RING / 8;

/// Wakes the front, which waits for answers of all workers.
#[derive(Debug)]
pub struct Bell {
    /// The front sleeps, or is about to.
    asleep: AtomicBool,
    /// The front's number in the group.
    peer: u8,
}

impl Bell {
    /// Makes a bell for the peer with this number.
    pub fn new(peer: u8) -> Self {
        Self { asleep: AtomicBool::new(false), peer }
    }

    /// Announces that the peer is about to sleep. It must check for answers once more after this.
    pub fn listen(&self) {
        self.asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    /// Announces that the peer is awake.
    pub fn ignore(&self) {
        self.asleep.store(false, Ordering::Relaxed);
    }

    /// Wakes the peer if it sleeps. The caller must have stored the answers before.
    fn ring<G: TrustedGroup>(&self, me: &G) {
        fence(Ordering::SeqCst);
        if self.asleep.load(Ordering::Relaxed) && self.asleep.swap(false, Ordering::Relaxed) {
            me.unpark(self.peer);
        }
    }
}

/// Works until the front closes the ring, or dies. First it reports that it is ready, by answers to no client.
///
/// # Errors
///
/// [`Error::Corrupt`] if a batch has no header; other errors are those of the rings.
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
    let mut batch = alloc::vec![0; HEADER + resp::MAX_COMMAND_BYTES];
    let mut out = Vec::with_capacity(HEADER + ANSWERS);
    let ready = Header { client: u32::MAX, batch: 0, done: 0, then: Then::Next as u32 };
    answers.send(&ready.bytes(), me, None)?;
    bell.ring(me);
    let mut unnotified = 0;
    loop {
        let next = match batches.try_recv(&mut batch, me) {
            // Rings once for several answers: a front that is woken for each would soon sleep again.
            Ok(None) => {
                bell.ring(me);
                unnotified = 0;
                batches.recv(&mut batch, me, None)
            }
            Ok(Some(bytes)) => Ok(bytes),
            Err(error) => Err(error),
        };
        let bytes = match next {
            Err(Error::Closed | Error::PeerDied) => return Ok(()),
            result => result?,
        };
        let Some(mut header) = Header::parse(&batch[..bytes]) else { return Err(Error::Corrupt) };
        out.clear();
        out.extend([0; HEADER]);
        let (done, then) = serve(&batch[HEADER..bytes], store, me, &mut out);
        (header.done, header.then) = (done as u32, then as u32);
        out[..HEADER].copy_from_slice(&header.bytes());
        unnotified += out.len();
        if unnotified > UNNOTIFIED {
            // Otherwise the ring might fill up while the front sleeps.
            bell.ring(me);
            unnotified = out.len();
        }
        let grant = match answers.reserve(out.len(), me, None) {
            Err(Error::Closed | Error::PeerDied) => return Ok(()),
            result => result?,
        };
        grant.write(0, &out)?;
        grant.commit_quietly(out.len());
    }
}

/// Executes commands from the beginning of a batch, at least one. Returns the bytes that it executed, and the next
/// action.
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
    fn long_answers_split_a_batch() {
        let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
        let me = machine::member();
        store.table.set(b"a", &[b'x'; 10_000], &me).unwrap();
        let batch = "GET a\r\n".repeat(20);
        let mut start = 0;
        let mut counts = Vec::new();
        while start < batch.len() {
            let mut out = Vec::new();
            let (done, then) = serve(&batch.as_bytes()[start..], &store, &me, &mut out);
            assert_eq!(then, Then::Next);
            counts.push(resp::answers(&out).unwrap());
            start += done;
        }
        assert_eq!(counts, [4, 4, 4, 4, 4]);
    }

    #[test]
    fn commands_after_quit_are_ignored() {
        let store = Store { table: Table::new(1 << 20, [1, 2]), debug: false };
        let (me, mut out) = (machine::member(), Vec::new());
        let done = serve(b"SET a 1\r\nQUIT\r\nSET a 2\r\n", &store, &me, &mut out);
        assert_eq!(done, (15, Then::Close));
        assert_eq!(out, b"+OK\r\n+OK\r\n");
        assert_eq!(store.table.get(b"a", &me, |value| value == Some(b"1")), Ok(true));
    }
}
