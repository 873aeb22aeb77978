//! Answers a guest's calls, the same for every backend.

use crate::error::{bail, Result};
use crate::group::Group;
use crate::layout::{system, PAGE};
use crate::memory::{Memory, NotGuestMemory};
use crate::region;
use crate::wire;
use kyozon_abi::unikernel::*;
use rustix::rand::{getrandom, GetRandomFlags};
use std::time::{SystemTime, UNIX_EPOCH};

/// What takes a guest's output: the bytes, and whether they are for the error stream.
pub type Console<'c> = dyn FnMut(&[u8], bool) + 'c;

/// Maximum bytes of one write to the console.
const CONSOLE_BYTES: u64 = 64 << 10;
/// Maximum bytes of a panic's message.
const PANIC_BYTES: u64 = 4096;

/// How a guest continues after a call.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It continues with the result in its call block.
    Continue,
    /// It exits.
    Exit {
        /// Its status.
        status: u8,
        /// Whether its owner ends with it.
        with_owner: bool,
    },
    /// It panicked with this message.
    Panic(String),
}

type Answer = Result<u64, i64>;

impl From<NotGuestMemory> for Refusal {
    fn from(_: NotGuestMemory) -> Self {
        Self(ERROR_ADDRESS)
    }
}

impl From<i64> for Refusal {
    fn from(error: i64) -> Self {
        Self(error)
    }
}

/// The refusal of a call, with `ERROR_*`.
struct Refusal(i64);

/// Answers the call in a peer's call block. `console` receives what the guest writes, and whether to the error stream.
///
/// # Errors
///
/// The peer is gone, or the tender cannot access the call block.
pub fn answer(group: &Group, peer: usize, console: &mut Console<'_>) -> Result<Outcome> {
    let Some(caller) = group.peers.table.get(peer) else {
        bail!(Internal, "a peer that is gone made a call")
    };
    let memory = &caller.memory;
    let call = wire::get_call(&memory.block, system::CALL)?;
    let result = match end(memory, &call) {
        Ok(Some(outcome)) => return Ok(outcome),
        Ok(None) => dispatch(group, peer, memory, &call, console),
        Err(refusal) => Err(refusal),
    };
    let result = result.map_or_else(|Refusal(error)| error, |value| value as i64);
    wire::put_result(&memory.block, system::CALL, result)?;
    Ok(Outcome::Continue)
}

/// The outcome of a call that ends the guest; `None` for other calls.
fn end(memory: &Memory, call: &CallBlock) -> Result<Option<Outcome>, Refusal> {
    let [first, second, ..] = call.arguments;
    match call.number {
        ASK_EXIT if first <= MAX_STATUS && second <= EXIT_WITH_OWNER => {
            let with_owner = second == EXIT_WITH_OWNER;
            Ok(Some(Outcome::Exit { status: first as u8, with_owner }))
        }
        ASK_EXIT => Err(Refusal(ERROR_ARGUMENT)),
        ASK_PANIC => {
            let mut text = vec![0; second.min(PANIC_BYTES) as usize];
            memory.read(first, &mut text)?;
            Ok(Some(Outcome::Panic(String::from_utf8_lossy(&text).into_owned())))
        }
        _ => Ok(None),
    }
}

/// Number of a call's arguments; all others must be 0. `None` if there is no such call.
fn arity(number: u64) -> Option<usize> {
    Some(match number {
        ASK_CLOCK | ASK_TIME_OF_DAY => 0,
        ASK_PARK | ASK_REGION_UNMAP => 1,
        ASK_DEVICE | ASK_QUEUE_STOP | ASK_QUEUE_STATE => 2,
        ASK_QUEUE_START => 6,
        ASK_RANDOM | ASK_DISCARD | ASK_END | ASK_REGION_MAP | ASK_REGION_REVOKE => 2,
        ASK_CONSOLE | ASK_REGION_OPEN | ASK_REGION_GRANT | ASK_RENDEZVOUS => 3,
        ASK_REGION_CREATE => 4,
        ASK_SPAWN => 5,
        _ => return None,
    })
}

/// Checks and executes a call that does not end the guest.
fn dispatch(
    group: &Group,
    peer: usize,
    memory: &Memory,
    call: &CallBlock,
    console: &mut Console<'_>,
) -> Result<u64, Refusal> {
    let [a, b, c, d, e, _] = call.arguments;
    let arity = arity(call.number).ok_or(ERROR_CALL)?;
    if call.arguments[arity..].iter().any(|argument| *argument != 0) {
        return Err(Refusal(ERROR_ARGUMENT));
    }
    let answer: Answer = match call.number {
        ASK_CONSOLE if c > STREAM_ERROR => Err(ERROR_ARGUMENT),
        ASK_CONSOLE => {
            let mut text = vec![0; b.min(CONSOLE_BYTES) as usize];
            memory.read(a, &mut text)?;
            console(&text, c == STREAM_ERROR);
            Ok(text.len() as u64)
        }
        ASK_PARK => Ok(u64::from(group.peers.park(peer, a))),
        ASK_CLOCK => Ok(group.peers.clock.now()),
        ASK_TIME_OF_DAY => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Ok(since.as_nanos() as u64)
        }
        ASK_RANDOM => random(memory, a, b)?,
        ASK_DISCARD if (a | b) % PAGE != 0 => Err(ERROR_ADDRESS),
        ASK_DISCARD => {
            memory.discard(a, b)?;
            Ok(0)
        }
        ASK_SPAWN => group.spawn(peer, a, b, Area { base: c, bytes: d }, e),
        ASK_END => group.end(peer, a, b),
        ASK_REGION_CREATE => group.create(peer, &name(memory, a, b)?, c, (d != 0).then_some(d)),
        ASK_REGION_OPEN => open(group, peer, memory, &name(memory, a, b)?, c)?,
        ASK_REGION_MAP => group.map(peer, a, b),
        ASK_REGION_UNMAP => group.unmap(peer, a),
        ASK_REGION_GRANT => {
            let rights = region::rights(c).ok_or(ERROR_ARGUMENT)?;
            group.grant(peer, a, b, rights)
        }
        ASK_REGION_REVOKE => group.grant(peer, a, b, 0),
        ASK_RENDEZVOUS => group.rendezvous(peer, a, b, c),
        ASK_DEVICE => {
            memory.write(b, &group.peers.get(peer)?.devices.info(a)?)?;
            Ok(0)
        }
        ASK_QUEUE_START => group.peers.get(peer)?.devices.start(call.arguments),
        ASK_QUEUE_STOP => group.peers.get(peer)?.devices.stop(a, b),
        ASK_QUEUE_STATE => group.peers.get(peer)?.devices.state(a, b),
        _ => Err(ERROR_CALL),
    };
    Ok(answer?)
}

/// Copies a region's name from the guest's memory.
fn name(memory: &Memory, address: u64, bytes: u64) -> Result<Vec<u8>, Refusal> {
    if bytes > REGION_NAME_BYTES as u64 {
        return Err(Refusal(ERROR_ARGUMENT));
    }
    let mut name = vec![0; bytes as usize];
    memory.read(address, &mut name)?;
    Ok(name)
}

/// [`ASK_REGION_OPEN`]: writes the region's description to `info`.
fn open(
    group: &Group,
    peer: usize,
    memory: &Memory,
    name: &[u8],
    info: u64,
) -> Result<Answer, Refusal> {
    let shared = group.open(peer, name)?;
    let mut bytes = Vec::with_capacity(size_of::<SharedRegion>());
    bytes.extend(shared.name);
    bytes.extend(shared.address.to_le_bytes());
    bytes.extend(shared.bytes.to_le_bytes());
    bytes.extend(shared.rights.to_le_bytes());
    bytes.extend(shared.generation.to_le_bytes());
    bytes.extend(shared.number.to_le_bytes());
    memory.write(info, &bytes)?;
    Ok(Ok(shared.number))
}

/// [`ASK_RANDOM`].
fn random(memory: &Memory, address: u64, bytes: u64) -> Result<Answer, Refusal> {
    if bytes > MAX_RANDOM_BYTES {
        return Err(Refusal(ERROR_ARGUMENT));
    }
    let mut buffer = vec![0; bytes as usize];
    let mut done = 0;
    while done < buffer.len() {
        let rest = &mut buffer[done..];
        // With these arguments, it fails only if a signal interrupts it.
        done += getrandom(rest, GetRandomFlags::empty()).unwrap_or(0);
    }
    memory.write(address, &buffer)?;
    Ok(Ok(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::tests::group;

    fn ask(group: &Group, number: u64, arguments: &[u64]) -> (Outcome, i64, Vec<u8>) {
        let memory = &group.peers.table.get(0).unwrap().memory;
        let words = [&[number], arguments, &[0; 6][arguments.len()..], &[77]].concat();
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        memory.put_system(system::CALL, &bytes).unwrap();
        let mut output = Vec::new();
        let outcome = answer(group, 0, &mut |text, _| output.extend_from_slice(text)).unwrap();
        let result = i64::from_le_bytes(memory.get_system(system::CALL + 56));
        (outcome, result, output)
    }

    fn result(group: &Group, number: u64, arguments: &[u64]) -> i64 {
        let (outcome, result, _) = ask(group, number, arguments);
        assert_eq!(outcome, Outcome::Continue);
        result
    }

    #[test]
    fn valid_arguments_are_accepted() {
        let group = group(2, true);
        let at = GUEST_HEAP_BASE;
        group.peers.table.get(0).unwrap().memory.write(at, b"hello").unwrap();
        assert_eq!(ask(&group, ASK_CONSOLE, &[at, 5]), (Outcome::Continue, 5, b"hello".to_vec()));
        assert_eq!(result(&group, ASK_CONSOLE, &[at, 100_000]), CONSOLE_BYTES as i64);
        for with_owner in [false, true] {
            let exit = Outcome::Exit { status: 255, with_owner };
            assert_eq!(ask(&group, ASK_EXIT, &[255, with_owner.into()]).0, exit);
        }
        assert_eq!(ask(&group, ASK_PANIC, &[at, 5]).0, Outcome::Panic("hello".into()));
        assert_eq!(result(&group, ASK_PARK, &[0]), 1);
        assert!(result(&group, ASK_CLOCK, &[]) > 0);
        assert!(result(&group, ASK_TIME_OF_DAY, &[]) > 1_600_000_000_000_000_000);
        assert_eq!(result(&group, ASK_RANDOM, &[at, 16]), 0);
        assert_ne!(group.peers.table.get(0).unwrap().memory.word(at + 8), Ok(0));
        assert_eq!(result(&group, ASK_DISCARD, &[at, 4096]), 0);
        assert_eq!(group.peers.table.get(0).unwrap().memory.word(at + 8), Ok(0));
        group.peers.table.get(0).unwrap().memory.write(at, b"name").unwrap();
        assert_eq!(result(&group, ASK_REGION_CREATE, &[at, 4, 8192, REGION_BASE]), 0);
        assert_eq!(result(&group, ASK_REGION_MAP, &[0, 3]), 0);
        assert_eq!(result(&group, ASK_REGION_OPEN, &[at, 4, at + 64]), 0);
        assert_eq!(group.peers.table.get(0).unwrap().memory.word(at + 96), Ok(REGION_BASE));
        assert_eq!(result(&group, ASK_REGION_GRANT, &[0, 1, 1]), 0);
        assert_eq!(result(&group, ASK_REGION_REVOKE, &[0, 1]), 0);
        assert_eq!(result(&group, ASK_RENDEZVOUS, &[0, 1, 0]), 1);
        assert_eq!(result(&group, ASK_REGION_UNMAP, &[0]), 0);
    }

    #[test]
    fn hostile_arguments_are_refused() {
        let group = group(1, true);
        let text = GUEST_IMAGE_BASE;
        let wild = [
            0,
            1,
            text - 1,
            GUEST_SYSTEM_BASE,
            GUEST_STACK_TOP - 4,
            1 << 47,
            u64::MAX,
            u64::MAX - 7,
        ];
        for at in wild {
            for call in [ASK_CONSOLE, ASK_PANIC, ASK_RANDOM] {
                assert_eq!(result(&group, call, &[at, 8]), ERROR_ADDRESS, "{call} {at:#x}");
            }
            assert_eq!(result(&group, ASK_CONSOLE, &[at, u64::MAX]), ERROR_ADDRESS);
            assert_eq!(result(&group, ASK_DISCARD, &[at, 4096]), ERROR_ADDRESS);
            assert_eq!(result(&group, ASK_REGION_CREATE, &[at, 8, 8192]), ERROR_ADDRESS);
        }
        // Memory that can be read but not written.
        assert_eq!(result(&group, ASK_RANDOM, &[text, 8]), ERROR_ADDRESS);
        assert_eq!(result(&group, ASK_RANDOM, &[GUEST_HEAP_BASE, u64::MAX]), ERROR_ARGUMENT);
        assert_eq!(result(&group, ASK_EXIT, &[256]), ERROR_ARGUMENT);
        assert_eq!(result(&group, ASK_EXIT, &[0, 2]), ERROR_ARGUMENT);
        assert_eq!(result(&group, ASK_PARK, &[0, 1]), ERROR_ARGUMENT);
        for number in [0, 11, 15, 23, 1 << 32 | 1, u64::MAX] {
            assert_eq!(result(&group, number, &[]), ERROR_CALL, "{number}");
        }
        for number in [1, u64::MAX, 1 << 32] {
            assert_eq!(result(&group, ASK_REGION_MAP, &[number, 1]), ERROR_NAME);
            assert_eq!(result(&group, ASK_REGION_UNMAP, &[number]), ERROR_NAME);
            assert_eq!(result(&group, ASK_REGION_GRANT, &[number, 0, 1]), ERROR_NAME);
            assert_eq!(result(&group, ASK_REGION_REVOKE, &[0, number]), ERROR_NAME);
            assert_eq!(result(&group, ASK_RENDEZVOUS, &[number, 0, 0]), ERROR_NAME);
        }
        assert_eq!(result(&group, ASK_REGION_CREATE, &[text, u64::MAX, 8192]), ERROR_ARGUMENT);
        assert_eq!(result(&group, ASK_SPAWN, &[text, 0, 0]), ERROR_UNSUPPORTED);
        assert_eq!(result(&group, ASK_END, &[0, 1]), ERROR_RIGHT);
        for (number, generation) in [(0, 0), (0, 2), (1, 1), (64, 1), (u64::MAX, u64::MAX)] {
            assert_eq!(result(&group, ASK_END, &[number, generation]), ERROR_NAME, "{number}");
        }
    }
}
