//! What a backend is: a space, which other threads may change, and a processor, which one thread runs.

use crate::error::Result;
use crate::memory::Block;
use kyozon_abi::unikernel::VECTORS_WITH_ERROR;
use std::fmt;
use std::os::fd::BorrowedFd;
use vmm_sys_util::eventfd::EventFd;

/// Registers of a guest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[allow(missing_docs)] // the processor's names
pub struct Registers {
    pub rax: u64,
    pub rbx: u64,
    pub rcx: u64,
    pub rdx: u64,
    pub rsi: u64,
    pub rdi: u64,
    pub rbp: u64,
    pub rsp: u64,
    pub r8: u64,
    pub r9: u64,
    pub r10: u64,
    pub r11: u64,
    pub r12: u64,
    pub r13: u64,
    pub r14: u64,
    pub r15: u64,
    pub rip: u64,
    pub rflags: u64,
    pub fs_base: u64,
    pub gs_base: u64,
}

/// Why a guest cannot go on. For the reader of a report, never for a decision: a guest can say of itself what it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An exception of the processor.
    Exception {
        /// Its vector.
        vector: u32,
        /// Error code, 0 where there is none.
        error: u64,
        /// For page faults, what it wanted to reach.
        address: u64,
    },
    /// It used a port that means nothing.
    Port(u16),
    /// It made a system call of the host with this number.
    SystemCall(u64),
    /// KVM gave up, with this `exit_reason`.
    Exit(u32),
    /// It reached physical memory that is not there: its region was revoked.
    Gone(u64),
    /// The process was killed by this signal.
    Killed(i32),
}

/// In the error code of a page fault: whether it was to read or to write is not known.
pub const UNKNOWN_ACCESS: u64 = 1 << 63;

/// Names of the first vectors (Intel SDM volume 3, table 6-1).
const VECTORS: [&str; 22] = [
    "division by zero",
    "single step",
    "non-maskable interrupt",
    "breakpoint",
    "overflow",
    "bound exceeded",
    "invalid instruction",
    "no coprocessor",
    "double fault",
    "coprocessor overrun",
    "invalid task state",
    "segment not present",
    "stack fault",
    "forbidden instruction or address",
    "page fault",
    "vector 15",
    "x87 error",
    "unaligned access",
    "machine check",
    "SIMD error",
    "virtualization exception",
    "control protection exception",
];

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Exception { vector: 14, error, address } => {
                let what = match error {
                    e if e & 16 != 0 => "execute",
                    e if e & UNKNOWN_ACCESS != 0 => "reach",
                    e if e & 2 != 0 => "write to",
                    _ => "read",
                };
                let why = if error & 1 != 0 { "forbidden" } else { "nothing there" };
                write!(f, "page fault: {what} {address:#x}, {why}")
            }
            Self::Exception { vector, error, .. } => {
                match VECTORS.get(vector as usize) {
                    Some(name) => f.write_str(name)?,
                    None => write!(f, "vector {vector}")?,
                }
                if vector < 32 && VECTORS_WITH_ERROR & 1 << vector != 0 && error != 0 {
                    write!(f, " (error code {error:#x})")?;
                }
                Ok(())
            }
            Self::Port(port) => write!(f, "forbidden instruction: port {port:#x}"),
            Self::SystemCall(number) => write!(f, "forbidden instruction: system call {number}"),
            Self::Exit(reason) => write!(f, "KVM gave up (exit reason {reason})"),
            Self::Gone(address) => write!(f, "reached {address:#x}, which was revoked"),
            Self::Killed(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Why a processor came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The guest called the door.
    Call,
    /// It rang a doorbell; the number is untrusted.
    Doorbell(u32),
    /// It cannot go on.
    Crash(Reason),
    /// It was kicked, or the kernel had something else to do.
    Interrupted,
}

/// A processor: one thread runs it.
pub trait Cpu: Send {
    /// Runs the guest until it asks for something, or cannot go on.
    fn enter(&mut self) -> Result<Event>;
    /// Registers: after [`Event::Crash`] with an exception, those at the exception.
    fn registers(&mut self) -> Result<Registers>;
    /// The process that it is in, where it is in one.
    fn child(&self) -> Option<i32> {
        None
    }
    /// Something that any thread may use to interrupt [`Cpu::enter`], once this thread runs it.
    fn kick(&mut self) -> Box<dyn Kick>;
}

/// Interrupts a processor, also one that is just about to be entered.
pub trait Kick: Send + Sync {
    /// From now on, [`Cpu::enter`] comes back.
    fn kick(&self);
}

/// A region as a space maps it.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Number of the region in its group.
    pub number: usize,
    /// Address in every guest.
    pub address: u64,
    /// Bytes with the header.
    pub bytes: u64,
    /// Whether data may be written; the header never.
    pub write: bool,
    /// The host's memory.
    pub block: Block,
}

/// A guest's address space.
pub trait Space: Send + Sync {
    /// `FEATURE_*` of the backend.
    fn features(&self) -> u64;
    /// From now on the doorbell of this number is this descriptor, and the guest rings it without an event.
    fn doorbell(&self, _number: usize, _bell: &EventFd) -> Result<()> {
        Ok(())
    }
    /// The keeper learns of this guest's end when all copies of this descriptor are closed: if the
    /// guest can outlive the tender by a moment, it holds one.
    fn hold(&self, _lifeline: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }
    /// Others than the tender can end the guest, which is noticed only when it is entered: it must not sleep for long.
    fn can_vanish(&self) -> bool {
        false
    }
    /// Maps a region.
    fn map(&self, mapping: &Mapping) -> Result<()>;
    /// Takes a region away, and returns when the guest cannot reach it any more. `false`: it cannot be taken away
    /// from this guest, which has to end.
    fn unmap(&self, mapping: &Mapping) -> Result<bool>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_for_readers() {
        let fault =
            |vector, error| Reason::Exception { vector, error, address: 0x1000 }.to_string();
        assert_eq!(fault(14, 6), "page fault: write to 0x1000, nothing there");
        assert_eq!(fault(14, 0x15), "page fault: execute 0x1000, forbidden");
        assert_eq!(fault(14, 5), "page fault: read 0x1000, forbidden");
        assert_eq!(fault(0, 7), "division by zero");
        assert_eq!(fault(13, 0x28), "forbidden instruction or address (error code 0x28)");
        assert_eq!(fault(200, 0), "vector 200");
    }
}
