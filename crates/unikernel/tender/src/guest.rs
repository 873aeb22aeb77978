//! Runs one guest on its thread until it exits, crashes or is stopped.

use crate::backend::{Cpu, Event, Reason};
use crate::bond::Parting;
use crate::calls::{self, Outcome};
use crate::error::{Error, Result};
use crate::group::Group;
use crate::peer::Peer;
use crate::{console, core_file, report};
use kyozon_abi::unikernel::*;
use std::path::Path;
use std::time::{Duration, Instant};

/// Maximum time in which the end of a guest waits for a reader of its report.
const REPORT_PATIENCE: Duration = Duration::from_secs(1);

/// The end of a guest.
pub(crate) enum End {
    /// It exited.
    Exit {
        /// Its status.
        status: u8,
        /// Whether its owner ends with it.
        with_owner: bool,
    },
    /// It panicked or crashed.
    Crash {
        /// `STATUS_*`.
        status: u64,
        /// The report.
        text: String,
    },
    /// It was stopped.
    Stopped,
    /// A peer that is bound to it died with this status.
    WithBound(u8),
    /// The tender could not continue it.
    Failed(Error),
}

impl End {
    /// The error of a guest that the tender could not continue.
    pub(crate) fn failure(self) -> Result<()> {
        match self {
            Self::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }

    fn parting(&self) -> Parting {
        match self {
            Self::Exit { with_owner: false, .. } => Parting::Whole,
            Self::Exit { status, .. } => Parting::Exited(*status),
            Self::WithBound(status) => Parting::Died(*status),
            Self::Crash { status, .. } => Parting::Died(*status as u8),
            Self::Failed(_) => Parting::Died(STATUS_CRASH as u8),
            Self::Stopped => Parting::Stopped,
        }
    }
}

/// One guest, with what its thread needs.
struct Guest<'a> {
    group: &'a Group,
    number: usize,
    peer: &'a Peer,
    /// The image's file.
    file: &'a [u8],
    /// Path of a core file, if the guest writes one when it crashes.
    core: Option<&'a Path>,
}

/// Runs the guest of a peer on this thread to its end, and removes the peer from the group.
pub(crate) fn run(
    group: &Group,
    number: usize,
    peer: &Peer,
    mut cpu: Box<dyn Cpu>,
    file: &[u8],
    core: Option<&Path>,
) -> End {
    let _ = peer.kick.set(cpu.kick());
    // Guests would overwrite each other's core file: only the first guest writes one.
    let core = core.filter(|_| number == group.peers.first);
    // A guest of the start gets the CPU of its position, a spawned peer the next CPU in turn.
    let position = (peer.family == number).then(|| number - group.peers.first);
    let guest = Guest { group, number, peer, file, core };
    let pinned = group.pins.pin(position, cpu.child());
    let end = pinned.and_then(|()| guest.run(&mut *cpu)).unwrap_or_else(End::Failed);
    let text = if let End::Crash { text, .. } = &end { text.as_bytes() } else { &[] };
    // The report comes before anything that others say about this end, unless nobody reads it.
    let until = Instant::now() + REPORT_PATIENCE;
    let unread = console::report(text, &|| Instant::now() < until && !group.peers.must_end(number));
    // No thread enters the processor any more, so the peer can be reported gone before its resources are freed.
    let state = if matches!(end, End::Exit { .. }) { PEER_LEFT } else { PEER_DEAD };
    group.remove(number, state, end.parting());
    drop(cpu);
    console::report(unread, &|| !group.peers.is_stopped());
    end
}

impl Guest<'_> {
    fn run(&self, cpu: &mut dyn Cpu) -> Result<End> {
        let go_on = || !self.group.peers.must_end(self.number);
        let mut console = |text: &[u8], is_error| match is_error {
            true => drop(console::report(text, &go_on)),
            false => console::print(text, &go_on),
        };
        loop {
            if self.group.peers.must_end(self.number) {
                return Ok(self.stopped());
            }
            let reason = match cpu.enter()? {
                Event::Interrupted => continue,
                Event::Doorbell(doorbell) => {
                    self.ring(doorbell as usize)?;
                    continue;
                }
                Event::Crash(Reason::Revoked(address)) if self.can_read(address) => {
                    Reason::ReadOnly(address)
                }
                Event::Crash(reason) => reason,
                Event::Call => match calls::answer(self.group, self.number, &mut console)? {
                    Outcome::Continue => continue,
                    Outcome::Exit { status, with_owner } => {
                        return Ok(End::Exit { status, with_owner })
                    }
                    Outcome::Panic(message) => {
                        let message = format!("panicked: {}", report::printable(&message));
                        return self.crash(cpu, STATUS_PANIC, &message);
                    }
                },
            };
            // A process that was killed while the run ends has not crashed.
            if self.group.peers.must_end(self.number) && matches!(reason, Reason::Killed(_)) {
                return Ok(self.stopped());
            }
            return self.crash(cpu, STATUS_CRASH, &format!("crashed: {reason}"));
        }
    }

    /// Whether the guest can read this address of a region, which is its virtual and its guest-physical address.
    fn can_read(&self, address: u64) -> bool {
        self.peer.memory.read(address, &mut [0]).is_ok()
    }

    /// The end of a peer that was told to end.
    fn stopped(&self) -> End {
        match self.peer.bond.ended_by() {
            Some(status) if !self.group.peers.is_stopped() => End::WithBound(status),
            _ => End::Stopped,
        }
    }

    /// Rings a doorbell that the backend does not know yet, and registers it, so that the backend rings it from now on.
    fn ring(&self, doorbell: usize) -> Result<()> {
        let Peer { space, devices, .. } = self.peer;
        let bell = match doorbell.checked_sub(QUEUE_DOORBELL as usize) {
            Some(queue) => devices.doorbells().nth(queue),
            None => self.group.peers.tokens.get(doorbell),
        };
        let Some(bell) = bell else { return Ok(()) };
        // The write fails only if the counter is full. Then the doorbell is rung already.
        let _ = bell.write(1);
        space.doorbell(doorbell, bell)
    }

    /// Makes the report of a crash, and writes the core file.
    fn crash(&self, cpu: &mut dyn Cpu, status: u64, what: &str) -> Result<End> {
        let registers = cpu.registers()?;
        let memory = &self.peer.memory;
        let frames = report::backtrace(memory, &registers);
        let names = report::Names { file: self.file, program: memory.layout.program };
        let mut text = format!("kyozon: guest {} {what}", self.number);
        if status == STATUS_CRASH {
            let place = report::place(&names, registers.rip);
            text += &format!(", in {place}\n{}", report::registers(&registers));
        } else {
            text.push('\n');
        }
        if registers.rip == 0 {
            let place = report::place(&names, registers.rcx);
            text += &format!(
                "  on some hosts the instruction `syscall` jumps to address 0; rcx is then its place: {place}\n"
            );
        }
        text += &report::calls(&names, &frames);
        if let Some(path) = self.core {
            let go_on = || !self.group.peers.must_end(self.number);
            let written = core_file::create(path)
                .and_then(|mut file| core_file::write(&mut file, memory, &registers, &go_on));
            text += &match written {
                Ok(true) => format!("core file: {}\n", path.display()),
                Ok(false) => {
                    format!("core file: {} (incomplete, the guest had to end)\n", path.display())
                }
                Err(error) => format!("cannot write the core file {}: {error}\n", path.display()),
            };
        }
        Ok(End::Crash { status, text })
    }
}
