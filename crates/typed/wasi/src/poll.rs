//! `poll_oneoff`: waits for clocks and descriptors.

use crate::host::{Direction, Host, Ready};
use crate::memory::{check, write_u32, Memory};
use crate::table::Table;
use crate::types::{Clock, Errno, Rights};
use crate::wasi::{Wasi, SUBSCRIPTIONS};

/// Bytes of a subscription.
const SUBSCRIPTION: usize = 48;
/// Bytes of an event.
const EVENT: usize = 32;
/// Nanoseconds after which a clock that can be set is read again.
const SET: u64 = 1_000_000_000;
/// The bit that makes a clock's timeout an absolute time.
const ABSOLUTE: u16 = 1;
/// The bit of an event that says that the peer has closed.
const HANGUP: u16 = 1;

/// What a program waits for.
#[derive(Clone, Copy)]
enum Wanted {
    /// The clock's time reaches this one.
    Time(Clock, u64),
    /// The descriptor can be read or written.
    Descriptor(u32, Direction),
    /// Nothing: the subscription has an error.
    Error(Errno),
}

/// A subscription, copied and validated.
#[derive(Clone, Copy)]
pub(crate) struct Subscription {
    userdata: u64,
    kind: u8,
    wanted: Wanted,
}

impl Subscription {
    pub const NONE: Subscription =
        Subscription { userdata: 0, kind: 0, wanted: Wanted::Error(Errno::Inval) };
}

/// What happened to a subscription.
struct Event {
    error: u16,
    ready: Ready,
}

impl Event {
    fn new(result: Result<Ready, Errno>) -> Event {
        match result {
            Ok(ready) => Event { error: 0, ready },
            Err(error) => Event { error: error as u16, ready: Ready { bytes: 0, hangup: false } },
        }
    }

    fn bytes(&self, subscription: &Subscription) -> [u8; EVENT] {
        let mut bytes = [0; EVENT];
        bytes[..8].copy_from_slice(&subscription.userdata.to_le_bytes());
        bytes[8..10].copy_from_slice(&self.error.to_le_bytes());
        bytes[10] = subscription.kind;
        bytes[16..24].copy_from_slice(&self.ready.bytes.to_le_bytes());
        let flags = if self.ready.hangup { HANGUP } else { 0 };
        bytes[24..26].copy_from_slice(&flags.to_le_bytes());
        bytes
    }
}

/// An integer of the subscription.
fn field<const N: usize>(bytes: &[u8; SUBSCRIPTION], at: usize) -> [u8; N] {
    core::array::from_fn(|n| bytes[at + n])
}

/// Reads the contents of a subscription.
///
/// # Errors
///
/// The call fails if the type of the subscription is not known. Other errors belong to the subscription.
fn parse<H: Host>(host: &mut H, bytes: &[u8; SUBSCRIPTION]) -> Result<Subscription, Errno> {
    let kind = bytes[8];
    let fd = u32::from_le_bytes(field(bytes, 16));
    let wanted = match kind {
        0 => clock(host, bytes).unwrap_or_else(Wanted::Error),
        1 => Wanted::Descriptor(fd, Direction::Read),
        2 => Wanted::Descriptor(fd, Direction::Write),
        _ => return Err(Errno::Inval),
    };
    Ok(Subscription { userdata: u64::from_le_bytes(field(bytes, 0)), kind, wanted })
}

fn clock<H: Host>(host: &mut H, bytes: &[u8; SUBSCRIPTION]) -> Result<Wanted, Errno> {
    let number = u32::from_le_bytes(field(bytes, 16));
    let timeout = u64::from_le_bytes(field(bytes, 24));
    let flags = u16::from_le_bytes(field(bytes, 40));
    let clock = Clock::from_number(number).ok_or(Errno::Inval)?;
    if flags & !ABSOLUTE != 0 {
        return Err(Errno::Inval);
    }
    if matches!(clock, Clock::ProcessCpu | Clock::ThreadCpu) {
        // Such a clock stands still while its program waits.
        return Err(Errno::Notsup);
    }
    if flags & ABSOLUTE != 0 {
        return Ok(Wanted::Time(clock, timeout));
    }
    // A duration does not depend on whether somebody sets the clock meanwhile.
    let now = host.clock_time(Clock::Monotonic)?;
    Ok(Wanted::Time(Clock::Monotonic, now.saturating_add(timeout)))
}

/// The handle of a descriptor, if it may be waited for.
fn handle<'t, T>(table: &'t Table<'_, T>, fd: u32, direction: Direction) -> Result<&'t T, Errno> {
    let right = match direction {
        Direction::Read => Rights::FD_READ,
        Direction::Write => Rights::FD_WRITE,
    };
    Ok(&table.get(fd)?.need(right.or(Rights::POLL_FD_READWRITE))?.handle)
}

impl<H: Host> Wasi<'_, H> {
    pub(crate) fn poll_oneoff(
        &mut self,
        input: u32,
        output: u32,
        count: u32,
        result: u32,
        memory: &mut H::Memory,
    ) -> Result<(), Errno> {
        if count == 0 || count as usize > SUBSCRIPTIONS {
            return Err(Errno::Inval);
        }
        check(memory, input, count, SUBSCRIPTION as u32)?;
        check(memory, output, count, EVENT as u32)?;
        check(memory, result, 1, 4)?;
        let subscriptions = &mut self.scratch.subscriptions[..count as usize];
        for (n, subscription) in (0..).zip(&mut *subscriptions) {
            let mut bytes = [0; SUBSCRIPTION];
            memory.read(input.wrapping_add(n * SUBSCRIPTION as u32), &mut bytes)?;
            *subscription = parse(&mut self.host, &bytes)?;
        }
        loop {
            let mut events = 0;
            let mut timeout = None;
            for subscription in &*subscriptions {
                let event = match subscription.wanted {
                    Wanted::Error(error) => Some(Err(error)),
                    Wanted::Time(clock, time) => match self.host.clock_time(clock) {
                        Ok(now) if now >= time => Some(Ok(Ready { bytes: 0, hangup: false })),
                        Ok(now) => {
                            let left = time - now;
                            let left = if clock == Clock::Realtime { left.min(SET) } else { left };
                            timeout = Some(timeout.map_or(left, |timeout| left.min(timeout)));
                            None
                        }
                        Err(error) => Some(Err(error)),
                    },
                    Wanted::Descriptor(fd, direction) => handle(&self.table, fd, direction)
                        .and_then(|handle| self.host.ready(handle, direction))
                        .transpose(),
                };
                if let Some(event) = event {
                    let bytes = Event::new(event).bytes(subscription);
                    memory.write(output.wrapping_add(events * EVENT as u32), &bytes)?;
                    events += 1;
                }
            }
            if events > 0 {
                return write_u32(memory, result, events);
            }
            let table = &self.table;
            let mut handles =
                subscriptions.iter().filter_map(|subscription| match subscription.wanted {
                    Wanted::Descriptor(fd, direction) => {
                        handle(table, fd, direction).ok().map(|handle| (handle, direction))
                    }
                    _ => None,
                });
            self.host.wait(&mut handles, timeout)?;
        }
    }
}
