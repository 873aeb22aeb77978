//! Clients, and who works for them: bytes in, bytes out, and no network.

use super::command::Then;
use super::{resp, Header, HEADER};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Deref;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::data::Data;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};

/// A worker that has not said that it is there after so many nanoseconds is not.
const PATIENCE: u64 = 10_000_000_000;

/// Work that a worker has before another gets some: to wake one that sleeps takes as long as it takes to do dozens of
/// commands.
const CROWD: usize = 64;
/// Bytes of commands that are as much work as one more.
const LONG: usize = 256;

/// Commands of a batch, at most: all of them get an error where its worker dies.
const COMMANDS: usize = 1024;

/// A worker, as the front has it.
struct Hand<C, D> {
    batches: Writer<C, D>,
    answers: Reader<C, D>,
    /// The work of each batch that it has, and of all.
    has: VecDeque<usize>,
    work: usize,
    alive: bool,
}

impl<C, D> Hand<C, D> {
    /// Whether it lives and has something to do.
    fn is_busy(&self) -> bool {
        self.alive && !self.has.is_empty()
    }
}

/// A batch that a worker has: the first bytes of a client's input.
#[derive(Clone, Copy, Debug)]
struct Batch {
    hand: usize,
    bytes: usize,
    /// Those that have an answer.
    commands: usize,
}

/// A client.
#[derive(Debug, Default)]
struct Client {
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that the client has.
    sent: usize,
    batch: Option<Batch>,
    /// What was found in so many bytes of input: bytes of whole commands, and how many of these have an answer.
    found: Option<(usize, usize, usize)>,
    /// Number of the batch that it has, or had last.
    number: u32,
    /// Nothing more is taken from it.
    closing: bool,
}

impl Client {
    /// So many bytes of the input are done with.
    fn done(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        self.found = None;
    }

    fn answer(&mut self, count: usize, what: &str) {
        (0..count).for_each(|_| resp::error(&mut self.output, format_args!("{what}")));
    }
}

/// All of them.
pub struct Front<'a, C, D, G> {
    clients: Vec<Client>,
    hands: Vec<Hand<C, D>>,
    stop: bool,
    buffer: Vec<u8>,
    me: &'a G,
}

impl<'a, C, D, G> Front<'a, C, D, G>
where
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    /// A front for so many clients, and a worker at each pair of rings: of batches, and of answers.
    pub fn new(clients: usize, rings: Vec<(Writer<C, D>, Reader<C, D>)>, me: &'a G) -> Self {
        let hand = |(batches, answers)| Hand {
            batches,
            answers,
            has: VecDeque::new(),
            work: 0,
            alive: true,
        };
        let clients = (0..clients).map(|_| Client::default()).collect();
        let hands = rings.into_iter().map(hand).collect();
        let buffer = alloc::vec![0; kyozon_channel::spsc::limit(super::RING)];
        Self { clients, hands, stop: false, buffer, me }
    }

    /// Waits until every worker has said that it is there: how many are.
    pub fn meet(&mut self) -> usize {
        let end = self.me.now() + PATIENCE;
        for hand in &mut self.hands {
            hand.alive = hand.answers.recv(&mut self.buffer, self.me, Some(end)) == Ok(HEADER);
        }
        self.hands.iter().filter(|hand| hand.alive).count()
    }

    /// How many bytes are taken from a client.
    pub fn room(&self, client: usize) -> usize {
        let client = &self.clients[client];
        if client.closing {
            0
        } else {
            resp::MOST_BYTES - client.input.len()
        }
    }

    /// Takes bytes from a client: how many, at most [`Front::room`].
    pub fn take(&mut self, client: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room(client));
        self.clients[client].input.extend(&bytes[..count]);
        count
    }

    /// What is to be sent to a client.
    pub fn output(&self, client: usize) -> &[u8] {
        let client = &self.clients[client];
        &client.output[client.sent..]
    }

    /// So many bytes of the output were sent.
    pub fn sent(&mut self, client: usize, bytes: usize) {
        let client = &mut self.clients[client];
        client.sent += bytes;
        if client.sent >= client.output.len() {
            client.output.clear();
            client.sent = 0;
        }
    }

    /// Whether there is nothing more to be sent to a client who sends nothing more, or of whom nothing more is taken.
    pub fn is_done(&self, client: usize) -> bool {
        let client = &self.clients[client];
        let idle = client.batch.is_none() && client.output.is_empty();
        idle && (client.closing || matches!(resp::parse(&client.input), Ok(None)))
    }

    /// Whether a client's connection is to be closed when it has its answers.
    pub fn is_closing(&self, client: usize) -> bool {
        self.clients[client].closing
    }

    /// Whether a client wanted the store to end.
    pub fn is_over(&self) -> bool {
        self.stop
    }

    /// Whether workers have something to do.
    pub fn waits(&self) -> bool {
        self.hands.iter().any(Hand::is_busy)
    }

    /// Forgets a client, for another one in its place.
    pub fn forget(&mut self, client: usize) {
        let number = self.clients[client].number.wrapping_add(1);
        self.clients[client] = Client { number, ..Client::default() };
    }

    /// Wakes the workers that sleep and have something to do.
    pub fn notify(&mut self) {
        for hand in self.hands.iter_mut().filter(|hand| hand.is_busy()) {
            hand.batches.notify(self.me);
        }
    }

    /// Gives what a client sent to a worker, where that can be done at this moment; by [`Front::notify`] at the latest,
    /// the worker has it. Whether something was done.
    pub fn dispatch(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        if client.batch.is_some() || !client.output.is_empty() || client.closing {
            return false;
        }
        // Nothing came since, and that was not to be given, or could not be.
        if let Some((_, bytes, commands)) =
            client.found.filter(|found| found.0 == client.input.len())
        {
            return bytes > 0 && self.give(number, bytes, commands);
        }
        let (mut bytes, mut commands) = (0, 0);
        let bad = loop {
            if commands == COMMANDS {
                break None;
            }
            match resp::parse(&client.input[bytes..]) {
                Ok(Some(command)) => {
                    bytes += command.bytes;
                    commands += usize::from(!command.is_empty());
                }
                Ok(None) => break None,
                Err(bad) => break Some(bad),
            }
        };
        client.found = Some((client.input.len(), bytes, commands));
        match bad {
            // What stands before it has answers first.
            Some(bad) if bytes == 0 => {
                resp::error(&mut client.output, format_args!("ERR {bad}"));
                client.input = Vec::new();
                client.closing = true;
                true
            }
            None if bytes == 0 => false,
            _ => self.give(number, bytes, commands),
        }
    }

    /// Gives the first bytes of a client's input to the first worker that has not much to do, and has room.
    fn give(&mut self, number: usize, bytes: usize, commands: usize) -> bool {
        let client = &mut self.clients[number];
        let batch = client.number.wrapping_add(1);
        let header = Header { client: number as u32, batch, done: 0, then: 0 }.bytes();
        // Those without room, a bit for each: there are fewer workers than peers.
        let mut full = 0_u64;
        loop {
            let open = |at: &usize| self.hands[*at].alive && full >> at & 1 == 0;
            let open = (0..self.hands.len()).filter(open);
            let Some(at) = open.min_by_key(|at| self.hands[*at].work / CROWD) else { break };
            let hand = &mut self.hands[at];
            let grant = match hand.batches.try_reserve(HEADER + bytes) {
                Ok(Some(grant)) => grant,
                Ok(None) => {
                    full |= 1 << at;
                    continue;
                }
                Err(_) => {
                    self.bury(at);
                    return true;
                }
            };
            // Both are inside.
            let _ = grant.write(0, &header);
            let _ = grant.write(HEADER, &client.input[..bytes]);
            grant.commit_quietly(HEADER + bytes);
            client.number = batch;
            client.batch = Some(Batch { hand: at, bytes, commands });
            let work = commands + bytes / LONG;
            hand.has.push_back(work);
            hand.work += work;
            return true;
        }
        // Answers to what they have will be seen.
        if full == 0 {
            client.answer(commands, "ERR no worker is left");
            client.done(bytes);
        }
        full == 0
    }

    /// Takes what answers there are. Whether there were some.
    pub fn collect(&mut self) -> bool {
        let mut some = false;
        for hand in 0..self.hands.len() {
            while self.hands[hand].alive {
                let got = self.hands[hand].answers.try_recv(&mut self.buffer, self.me);
                match got {
                    Ok(Some(bytes)) => self.answered(hand, bytes),
                    Ok(None) => break,
                    Err(_) => self.bury(hand),
                }
                some = true;
            }
        }
        some
    }

    /// Looks who has died of those that have something to do.
    pub fn look(&mut self) {
        for hand in 0..self.hands.len() {
            let by = &mut self.hands[hand];
            if !by.is_busy() {
                continue;
            }
            // With a deadline that has passed, it is only looked.
            let found = by.answers.peek(self.me, Some(0)).map(drop);
            if !matches!(found, Ok(()) | Err(Error::TimedOut)) {
                self.bury(hand);
            }
        }
    }

    /// Answers came from a worker, in so many bytes of the buffer.
    fn answered(&mut self, hand: usize, bytes: usize) {
        let by = &mut self.hands[hand];
        by.work -= by.has.pop_front().unwrap_or(0);
        let Some(header) = Header::of(&self.buffer[..bytes]) else { return };
        let Some(client) = self.clients.get_mut(header.client as usize) else { return };
        let done = header.done as usize;
        // Of a client that is gone, they are nobody's.
        let its = |batch: &Batch| batch.hand == hand && done <= batch.bytes;
        if header.batch != client.number || !client.batch.as_ref().is_some_and(its) {
            return;
        }
        client.batch = None;
        client.output.extend(&self.buffer[HEADER..bytes]);
        client.done(done);
        client.closing |= header.then != Then::Next as u32;
        self.stop |= header.then == Then::Stop as u32;
    }

    /// A worker is gone. What it had is not done, or in part: whoever sent it is told so.
    fn bury(&mut self, hand: usize) {
        self.hands[hand].alive = false;
        for client in &mut self.clients {
            let Some(batch) = client.batch.take_if(|batch| batch.hand == hand) else { continue };
            client.done(batch.bytes);
            client.answer(batch.commands, "ERR the worker died that had this command");
        }
    }

    /// Lets the workers end.
    pub fn close(self) {
        for hand in self.hands {
            hand.batches.close(self.me);
            // Answers to what it still has are nobody's: it does not wait for room for them.
            hand.answers.close(self.me);
        }
    }
}

#[cfg(test)]
mod tests;
