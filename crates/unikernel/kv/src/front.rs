//! Clients and workers: bytes in, bytes out, and no network.

use super::command::Then;
use super::{resp, Header, HEADER};
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Deref;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::data::Data;
use kyozon_channel::error::Error;
use kyozon_channel::spsc::{Control, Reader, Writer};

/// Maximum nanoseconds for a worker to become ready.
const TIMEOUT: u64 = 10_000_000_000;

/// Work that a worker gets before another one is used: waking a sleeping worker costs as much as dozens of commands.
const CROWD: usize = 64;
/// Bytes of commands that count as one more command of work.
const LONG: usize = 256;

/// Maximum commands of a batch: all of them get an error if its worker dies.
const COMMANDS: usize = 1024;

/// The front's side of a worker.
struct Worker<C, D> {
    batches: Writer<C, D>,
    answers: Reader<C, D>,
    /// The work of each batch that it has.
    pending: VecDeque<usize>,
    /// The sum of `pending`.
    work: usize,
    alive: bool,
}

impl<C, D> Worker<C, D> {
    /// Whether the worker is alive and has work.
    fn is_busy(&self) -> bool {
        self.alive && !self.pending.is_empty()
    }
}

/// A batch that a worker executes: the first bytes of a client's input.
#[derive(Clone, Copy, Debug)]
struct Batch {
    worker: usize,
    bytes: usize,
    /// Commands that have an answer.
    commands: usize,
}

/// A client.
#[derive(Debug, Default)]
struct Client {
    input: Vec<u8>,
    output: Vec<u8>,
    /// Bytes of the output that were sent.
    sent: usize,
    batch: Option<Batch>,
    /// The result of parsing: the input's bytes at that time, the bytes of whole commands, and the number of commands
    /// that have an answer.
    found: Option<(usize, usize, usize)>,
    /// Number of its current or last batch.
    number: u32,
    /// No more input is taken.
    closing: bool,
}

impl Client {
    /// Removes executed bytes from the input.
    fn consume(&mut self, bytes: usize) {
        self.input.drain(..bytes);
        self.found = None;
    }

    /// Answers `count` commands with an error.
    fn fail(&mut self, count: usize, error: &str) {
        (0..count).for_each(|_| resp::error(&mut self.output, format_args!("{error}")));
    }
}

/// All clients and workers.
pub struct Front<'a, C, D, G> {
    clients: Vec<Client>,
    workers: Vec<Worker<C, D>>,
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
    /// Makes a front for `clients` clients, with a worker at each pair of rings: batches, and answers.
    pub fn new(clients: usize, rings: Vec<(Writer<C, D>, Reader<C, D>)>, me: &'a G) -> Self {
        let worker = |(batches, answers)| Worker {
            batches,
            answers,
            pending: VecDeque::new(),
            work: 0,
            alive: true,
        };
        let clients = (0..clients).map(|_| Client::default()).collect();
        let workers = rings.into_iter().map(worker).collect();
        let buffer = alloc::vec![0; kyozon_channel::spsc::limit(super::RING)];
        Self { clients, workers, stop: false, buffer, me }
    }

    /// Waits until all workers are ready. Returns the number of those that are.
    pub fn meet(&mut self) -> usize {
        let end = self.me.now() + TIMEOUT;
        for worker in &mut self.workers {
            worker.alive = worker.answers.recv(&mut self.buffer, self.me, Some(end)) == Ok(HEADER);
        }
        self.workers.iter().filter(|worker| worker.alive).count()
    }

    /// The number of bytes that can be taken from a client now.
    pub fn room(&self, client: usize) -> usize {
        let client = &self.clients[client];
        if client.closing {
            0
        } else {
            resp::MAX_COMMAND_BYTES - client.input.len()
        }
    }

    /// Takes bytes from a client. Returns how many, at most [`Front::room`].
    pub fn take(&mut self, client: usize, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.room(client));
        self.clients[client].input.extend(&bytes[..count]);
        count
    }

    /// The bytes to send to a client.
    pub fn output(&self, client: usize) -> &[u8] {
        let client = &self.clients[client];
        &client.output[client.sent..]
    }

    /// Notes that bytes of the output were sent.
    pub fn sent(&mut self, client: usize, bytes: usize) {
        let client = &mut self.clients[client];
        client.sent += bytes;
        if client.sent >= client.output.len() {
            client.output.clear();
            client.sent = 0;
        }
    }

    /// Whether nothing will be sent to a client any more, if no more input is taken from it.
    pub fn is_done(&self, client: usize) -> bool {
        let client = &self.clients[client];
        let idle = client.batch.is_none() && client.output.is_empty();
        idle && (client.closing || matches!(resp::parse(&client.input), Ok(None)))
    }

    /// Whether a client's connection must be closed after its answers are sent.
    pub fn is_closing(&self, client: usize) -> bool {
        self.clients[client].closing
    }

    /// Whether a client has ended the store.
    pub fn is_over(&self) -> bool {
        self.stop
    }

    /// Whether any worker has work.
    pub fn waits(&self) -> bool {
        self.workers.iter().any(Worker::is_busy)
    }

    /// Forgets a client, so that another one can take its place.
    pub fn forget(&mut self, client: usize) {
        let number = self.clients[client].number.wrapping_add(1);
        self.clients[client] = Client { number, ..Client::default() };
    }

    /// Wakes sleeping workers that have work.
    pub fn notify(&mut self) {
        for worker in self.workers.iter_mut().filter(|worker| worker.is_busy()) {
            worker.batches.notify(self.me);
        }
    }

    /// Gives a client's input to a worker, if that is possible now. The worker gets it at the latest in
    /// [`Front::notify`]. Returns whether anything was done.
    pub fn dispatch(&mut self, number: usize) -> bool {
        let client = &mut self.clients[number];
        if client.batch.is_some() || !client.output.is_empty() || client.closing {
            return false;
        }
        // No input has come since the last parse, whose commands could not be given to a worker yet.
        if let Some((_, bytes, commands)) =
            client.found.filter(|found| found.0 == client.input.len())
        {
            return bytes > 0 && self.give(number, bytes, commands);
        }
        let (mut bytes, mut commands) = (0, 0);
        let error = loop {
            if commands == COMMANDS {
                break None;
            }
            match resp::parse(&client.input[bytes..]) {
                Ok(Some(command)) => {
                    bytes += command.bytes;
                    commands += usize::from(!command.is_empty());
                }
                Ok(None) => break None,
                Err(error) => break Some(error),
            }
        };
        client.found = Some((client.input.len(), bytes, commands));
        match error {
            // The commands before the error are answered first.
            Some(error) if bytes == 0 => {
                resp::error(&mut client.output, format_args!("ERR {error}"));
                client.input = Vec::new();
                client.closing = true;
                true
            }
            None if bytes == 0 => false,
            _ => self.give(number, bytes, commands),
        }
    }

    /// Gives the first bytes of a client's input to the first worker with little work and enough room. Returns whether
    /// anything was done.
    fn give(&mut self, number: usize, bytes: usize, commands: usize) -> bool {
        let client = &mut self.clients[number];
        let batch = client.number.wrapping_add(1);
        let header = Header { client: number as u32, batch, done: 0, then: 0 }.bytes();
        // Workers without room, one bit each: there are fewer workers than 64, the maximum of peers.
        let mut full = 0_u64;
        loop {
            let open = |i: &usize| self.workers[*i].alive && full >> i & 1 == 0;
            let open = (0..self.workers.len()).filter(open);
            let Some(i) = open.min_by_key(|i| self.workers[*i].work / CROWD) else { break };
            let worker = &mut self.workers[i];
            let grant = match worker.batches.try_reserve(HEADER + bytes) {
                Ok(Some(grant)) => grant,
                Ok(None) => {
                    full |= 1 << i;
                    continue;
                }
                Err(_) => {
                    self.worker_died(i);
                    return true;
                }
            };
            // Both fit, as the grant has this length.
            let _ = grant.write(0, &header);
            let _ = grant.write(HEADER, &client.input[..bytes]);
            grant.commit_quietly(HEADER + bytes);
            client.number = batch;
            client.batch = Some(Batch { worker: i, bytes, commands });
            let work = commands + bytes / LONG;
            worker.pending.push_back(work);
            worker.work += work;
            return true;
        }
        // If workers are only full, their next answers make room.
        if full == 0 {
            client.fail(commands, "ERR no worker is left");
            client.consume(bytes);
        }
        full == 0
    }

    /// Takes all answers that have arrived. Returns whether there were any.
    pub fn collect(&mut self) -> bool {
        let mut some = false;
        for worker in 0..self.workers.len() {
            while self.workers[worker].alive {
                let got = self.workers[worker].answers.try_recv(&mut self.buffer, self.me);
                match got {
                    Ok(Some(bytes)) => self.answered(worker, bytes),
                    Ok(None) => break,
                    Err(_) => self.worker_died(worker),
                }
                some = true;
            }
        }
        some
    }

    /// Checks whether workers that have work are alive.
    pub fn check_workers(&mut self) {
        for i in 0..self.workers.len() {
            let worker = &mut self.workers[i];
            if !worker.is_busy() {
                continue;
            }
            // The deadline has passed, so this only checks.
            let found = worker.answers.peek(self.me, Some(0)).map(drop);
            if !matches!(found, Ok(()) | Err(Error::TimedOut)) {
                self.worker_died(i);
            }
        }
    }

    /// Handles answers of a worker, the first bytes of the buffer.
    fn answered(&mut self, worker: usize, bytes: usize) {
        let from = &mut self.workers[worker];
        from.work -= from.pending.pop_front().unwrap_or(0);
        let Some(header) = Header::parse(&self.buffer[..bytes]) else { return };
        let Some(client) = self.clients.get_mut(header.client as usize) else { return };
        let done = header.done as usize;
        // Answers to a client that is gone are dropped.
        let current = |batch: &Batch| batch.worker == worker && done <= batch.bytes;
        if header.batch != client.number || !client.batch.as_ref().is_some_and(current) {
            return;
        }
        client.batch = None;
        client.output.extend(&self.buffer[HEADER..bytes]);
        client.consume(done);
        client.closing |= header.then != Then::Next as u32;
        self.stop |= header.then == Then::Stop as u32;
    }

    /// Handles a worker's death. Its batches were executed in part or not at all, so their commands get an error.
    fn worker_died(&mut self, worker: usize) {
        self.workers[worker].alive = false;
        for client in &mut self.clients {
            let Some(batch) = client.batch.take_if(|batch| batch.worker == worker) else {
                continue;
            };
            client.consume(batch.bytes);
            client.fail(batch.commands, "ERR the worker that had this command died");
        }
    }

    /// Closes all rings, so that the workers end.
    pub fn close(self) {
        for worker in self.workers {
            worker.batches.close(self.me);
            // Closed too, so that the worker does not wait for room for answers that no client takes.
            worker.answers.close(self.me);
        }
    }
}

#[cfg(test)]
mod tests;
