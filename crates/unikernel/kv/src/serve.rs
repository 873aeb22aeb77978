//! The front on a network: TCP connections of clients.

use super::front::Front;
use super::work::Bell;
use alloc::vec::Vec;
use core::ops::Deref;
use kyozon_channel::border::TrustedGroup;
use kyozon_channel::data::Data;
use kyozon_channel::spsc::Control;
use kyozon_unikernel::tcp::smoltcp::iface::SocketHandle;
use kyozon_unikernel::tcp::smoltcp::socket::tcp::State;
use kyozon_unikernel::tcp::smoltcp::time::Duration;
use kyozon_unikernel::tcp::{Frames, Stack};

/// Connections, open or listening. A client without a listening one is refused, so there are twice as many as clients
/// are expected at the same time: all of them may be closing while as many arrive.
pub const CLIENTS: usize = 128;
/// Bytes of a connection's buffer, in each direction.
const BUFFER: usize = 16 << 10;
/// Nanoseconds in which clients can receive the last answers when the store ends.
const LINGER: u64 = 1_000_000_000;

/// Nanoseconds between two checks of a front that never sleeps whether its workers are alive.
const CHECK: u64 = 100_000_000;

/// Consecutive busy turns for which frames are held back: notifying the network is an exit, which can take longer than
/// a request (docs/results, kv).
const TURNS: u32 = 4;

/// A connection, open or listening.
struct Connection {
    handle: SocketHandle,
    /// A client is, or was, connected.
    open: bool,
}

/// Serves clients at a TCP port, which is not 0, until one of them ends the store.
pub fn serve<P, C, D, G>(
    stack: &mut Stack<P>,
    front: &mut Front<'_, C, D, G>,
    bell: &Bell,
    tcp: u16,
    me: &G,
) where
    P: Frames,
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    let mut connections = Vec::new();
    for _ in 0..CLIENTS {
        let handle = stack.socket(BUFFER);
        let socket = stack.tcp(handle);
        // Keep-alives probe silent clients, and the timeout closes connections of clients that are gone.
        socket.set_keep_alive(Some(Duration::from_secs(5)));
        socket.set_timeout(Some(Duration::from_secs(15)));
        // Before the first frame is handled. Listening fails only at port 0.
        let _ = socket.listen(tcp);
        connections.push(Connection { handle, open: false });
    }
    let (mut checked, mut turns) = (me.now(), 0_u32);
    while !front.is_over() {
        stack.poll_quietly();
        let mut busy = front.collect();
        // A front that never sleeps must check, too.
        if me.now().saturating_sub(checked) >= CHECK {
            front.check_workers();
            checked = me.now();
        }
        for (number, connection) in connections.iter_mut().enumerate() {
            busy |= attend(stack, front, number, connection, tcp);
        }
        // Once for all clients: a worker that is woken for each of them may sleep again in between.
        front.notify();
        turns = if busy { turns + 1 } else { TURNS };
        if turns >= TURNS {
            stack.notify();
            turns = 0;
        }
        if !busy && !poll_answers(front, me) {
            sleep(stack, front, bell, me);
        }
    }
    end(stack, &connections);
}

/// Moves a client's bytes to the front and back. Returns whether there were any.
fn attend<P, C, D, G>(
    stack: &mut Stack<P>,
    front: &mut Front<'_, C, D, G>,
    number: usize,
    connection: &mut Connection,
    tcp: u16,
) -> bool
where
    P: Frames,
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    let socket = stack.tcp(connection.handle);
    if !socket.is_open() {
        if core::mem::take(&mut connection.open) {
            front.forget(number);
        }
        let _ = socket.listen(tcp);
        return false;
    }
    if !socket.is_active() {
        return false;
    }
    connection.open = true;
    let mut busy = false;
    while socket.can_recv() && front.room(number) > 0 {
        let taken = socket.recv(|bytes| {
            let count = front.take(number, bytes);
            (count, count)
        });
        busy |= taken.is_ok_and(|count| count > 0);
    }
    busy |= front.dispatch(number);
    while socket.can_send() && !front.output(number).is_empty() {
        let count = socket.send_slice(front.output(number)).unwrap_or(0);
        front.sent(number, count);
        busy = true;
    }
    let silent = socket.state() == State::CloseWait && !socket.can_recv();
    if (silent || front.is_closing(number)) && socket.may_send() && front.is_done(number) {
        socket.close();
        busy = true;
    }
    busy
}

/// Polls for expected answers as long as that is cheaper than a sleep. Returns whether any came.
fn poll_answers<C, D, G>(front: &mut Front<'_, C, D, G>, me: &G) -> bool
where
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    let spins = if front.waits() { me.spins() } else { 0 };
    (0..spins).any(|_| {
        me.spin_hint();
        front.collect()
    })
}

/// Sleeps until there is work.
fn sleep<P, C, D, G>(stack: &mut Stack<P>, front: &mut Front<'_, C, D, G>, bell: &Bell, me: &G)
where
    P: Frames,
    C: Deref<Target = Control>,
    D: Data,
    G: TrustedGroup,
{
    bell.listen();
    if !front.collect() {
        let waits = front.waits();
        if waits {
            front.check_workers();
        }
        // If the death of a worker wakes nobody, the front that waits for workers has a heartbeat.
        stack.wait(waits.then(|| stack.now().checked_add(me.heartbeat())).flatten());
    }
    bell.ignore();
}

/// Closes all connections, and waits until the clients have received the last answers.
fn end<P: Frames>(stack: &mut Stack<P>, connections: &[Connection]) {
    for connection in connections {
        stack.tcp(connection.handle).close();
    }
    let end = stack.now() + LINGER;
    stack.poll();
    while stack.now() < end && connections.iter().any(|c| stack.tcp(c.handle).is_active()) {
        stack.wait(Some(end));
        stack.poll();
    }
}
