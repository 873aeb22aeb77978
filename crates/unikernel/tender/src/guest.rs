//! Runs one guest on its thread until it exits, crashes or is stopped.

use crate::backend::{Cpu, Event, Reason};
use crate::calls::{self, Outcome};
use crate::error::Result;
use crate::group::Group;
use crate::peer::Peer;
use crate::{core_file, report};
use kyozon_abi::unikernel::*;
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// How one guest ended.
pub(crate) enum End {
    /// By its own will.
    Exit(u8),
    /// It gave up, or crashed: what there is to say.
    Crash { status: u64, text: String },
    /// It was ended.
    Stopped,
    /// The tender could not go on.
    Failed(crate::error::Error),
}

impl End {
    /// Why the tender could not go on with it.
    pub(crate) fn failure(self) -> Result<()> {
        match self {
            Self::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Runs a guest on this thread to its end. `at` is its peer.
pub(crate) fn work(
    group: &Group,
    peer: usize,
    at: &Peer,
    mut cpu: Box<dyn Cpu>,
    file: &[u8],
    core: Option<&Path>,
) -> End {
    let _ = at.kick.set(cpu.kick());
    // Of several core files, the last guest's would stand: only the first has one.
    let core = core.filter(|_| peer == group.peers.first);
    // A family's first is one of the start, in the order of their numbers.
    let number = (at.family == peer).then(|| peer - group.peers.first);
    let pinned = group.pins.pin(number, cpu.child());
    let end = pinned
        .and_then(|()| guest(group, peer, at, &mut *cpu, file, core))
        .unwrap_or_else(End::Failed);
    if let End::Crash { text, .. } = &end {
        eprint!("{text}");
    }
    // No thread enters its processor any more, so the guest can be reported gone before its resources are freed.
    let state = if matches!(end, End::Exit(_)) { PEER_LEFT } else { PEER_DEAD };
    group.remove(peer, state);
    drop(cpu);
    end
}

/// Standard output is the console. A closed one is no error.
fn console(text: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text).and_then(|()| out.flush());
}

/// Runs one guest until it ends.
fn guest(
    group: &Group,
    peer: usize,
    at: &Peer,
    cpu: &mut dyn Cpu,
    file: &[u8],
    core: Option<&Path>,
) -> Result<End> {
    loop {
        if group.peers.must_end(peer) {
            return Ok(End::Stopped);
        }
        let reason = match cpu.enter()? {
            Event::Interrupted => continue,
            Event::Doorbell(to) => {
                rung(group, at, to as usize)?;
                continue;
            }
            Event::Crash(reason) => reason,
            Event::Call => match calls::answer(group, peer, &mut console)? {
                Outcome::Answered => continue,
                Outcome::Exit(status) => return Ok(End::Exit(status)),
                Outcome::Panic(why) => {
                    let why = report::printable(&why);
                    let why = format!("gave up: {why}");
                    return crash(at, peer, cpu, file, core, STATUS_PANIC, &why);
                }
            },
        };
        // A process that was killed while all ends is no crash.
        if group.peers.must_end(peer) && matches!(reason, Reason::Killed(_)) {
            return Ok(End::Stopped);
        }
        return crash(at, peer, cpu, file, core, STATUS_CRASH, &format!("crashed: {reason}"));
    }
}

/// A guest rang, and the backend did not: this time it is done here, from now on there.
fn rung(group: &Group, peer: &Peer, to: usize) -> Result<()> {
    let Peer { space, devices, .. } = peer;
    let queue = to.checked_sub(QUEUE_DOORBELL as usize);
    let bell = match queue {
        Some(queue) => devices.doorbells().nth(queue),
        None => group.peers.tokens.get(to),
    };
    let Some(bell) = bell else { return Ok(()) };
    // A counter that is full was rung.
    let _ = bell.write(1);
    space.doorbell(to, bell)
}

/// The report of a crash, and a core file where one is wanted.
fn crash(
    at: &Peer,
    peer: usize,
    cpu: &mut dyn Cpu,
    file: &[u8],
    core: Option<&Path>,
    status: u64,
    what: &str,
) -> Result<End> {
    let registers = cpu.registers()?;
    let memory = &at.memory;
    let frames = report::backtrace(memory, &registers);
    let mut text = format!("kyozon: guest {peer} {what}");
    if status == STATUS_CRASH {
        text += &format!(
            ", in {}\n{}",
            report::place(file, registers.rip),
            report::registers(&registers)
        );
    } else {
        text.push('\n');
    }
    if registers.rip == 0 {
        let at = report::place(file, registers.rcx);
        text += &format!("  on some hosts the instruction `syscall` leads here, and leaves its place in rcx: {at}\n");
    }
    text += &report::calls(file, &frames);
    if let Some(path) = core {
        let written = File::create(path)
            .map_err(Into::into)
            .and_then(|mut to| core_file::write(&mut to, memory, &registers));
        text += &match written {
            Ok(()) => format!("core file: {}\n", path.display()),
            Err(error) => format!("no core file: {}: {error}\n", path.display()),
        };
    }
    Ok(End::Crash { status, text })
}
