//! The interface of a backend: an address space, which several threads may change, and a processor, which one thread
//! runs.

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

/// Why a guest cannot continue. It is for the reader of a report and never decides anything, because a guest can forge
/// it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// An exception of the processor.
    Exception {
        /// Number of the vector.
        vector: u32,
        /// Error code; 0 if the exception has none.
        error: u64,
        /// Faulting address, of page faults only.
        address: u64,
    },
    /// The guest used a port that is not part of the interface.
    Port(u16),
    /// The guest made a Linux system call with this number.
    SystemCall(u64),
    /// KVM returned this `exit_reason`, which the tender does not handle.
    KvmExit(u32),
    /// The guest accessed this guest-physical address, whose region was revoked.
    Revoked(u64),
    /// The guest wrote to this guest-physical address of a region that it may only read.
    ReadOnly(u64),
    /// This signal killed the guest's process.
    Killed(i32),
}

/// Bit in the error code of a page fault: it is unknown whether the access was a read or a write.
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
                let access = match error {
                    e if e & 16 != 0 => "execute",
                    e if e & UNKNOWN_ACCESS != 0 => "reach",
                    e if e & 2 != 0 => "write to",
                    _ => "read",
                };
                let cause = if error & 1 != 0 { "forbidden" } else { "nothing there" };
                write!(f, "page fault: {access} {address:#x}, {cause}")
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
            Self::KvmExit(reason) => write!(f, "KVM cannot continue (exit reason {reason})"),
            Self::Revoked(address) => write!(f, "reached {address:#x}, which was revoked"),
            Self::ReadOnly(address) => write!(f, "wrote to {address:#x}, which is read-only"),
            Self::Killed(signal) => write!(f, "killed by signal {signal}"),
        }
    }
}

/// Why [`Cpu::enter`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The guest called the door.
    Call,
    /// The guest rang a doorbell; the number is untrusted.
    Doorbell(u32),
    /// The guest cannot continue.
    Crash(Reason),
    /// The processor was kicked, or Linux interrupted it.
    Interrupted,
}

/// A guest's processor. One thread runs it.
pub trait Cpu: Send {
    /// Runs the guest until the next event.
    ///
    /// # Errors
    ///
    /// The backend cannot run the guest.
    fn enter(&mut self) -> Result<Event>;
    /// The guest's registers; after [`Event::Crash`] with an exception, those at the exception.
    ///
    /// # Errors
    ///
    /// The backend cannot read them.
    fn registers(&mut self) -> Result<Registers>;
    /// Pid of the guest's process, if it has one.
    fn child(&self) -> Option<i32> {
        None
    }
    /// A handle by which any thread can interrupt [`Cpu::enter`]. The thread that runs the processor must call this.
    fn kick(&mut self) -> Box<dyn Kick>;
}

/// Interrupts a processor.
pub trait Kick: Send + Sync {
    /// Makes [`Cpu::enter`] return. If the processor is not running, its next entry returns.
    fn kick(&self);
    /// A descriptor that is readable once another process has ended the guest. `None` if no other process can.
    fn ended(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A region's mapping in an address space.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Number of the region in its group.
    pub number: usize,
    /// Address of the header in every guest.
    pub address: u64,
    /// Size in bytes, including the header's page.
    pub bytes: u64,
    /// Whether the guest can write the data. The header is always read-only.
    pub write: bool,
    /// The region's memory on the host.
    pub block: Block,
}

/// A guest's address space.
pub trait Space: Send + Sync {
    /// `FEATURE_*` bits of the backend.
    fn features(&self) -> u64;
    /// Connects a doorbell to this descriptor: from now on the guest rings it without an [`Event::Doorbell`].
    ///
    /// # Errors
    ///
    /// KVM refuses the doorbell.
    fn doorbell(&self, _number: usize, _bell: &EventFd) -> Result<()> {
        Ok(())
    }
    /// Gives the guest a copy of the lifeline if it can outlive the tender for a moment. The keeper detects the guest's
    /// end when all copies are closed.
    ///
    /// # Errors
    ///
    /// Linux refuses another descriptor.
    fn set_lifeline(&self, _lifeline: BorrowedFd<'_>) -> Result<()> {
        Ok(())
    }
    /// Maps a region.
    ///
    /// # Errors
    ///
    /// The backend cannot map it.
    fn map(&self, mapping: &Mapping) -> Result<()>;
    /// Unmaps a region. With `true`, the guest can no longer access it. With `false`, the backend cannot unmap it, and
    /// the guest must end.
    ///
    /// # Errors
    ///
    /// KVM refuses the change.
    fn unmap(&self, mapping: &Mapping) -> Result<bool>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_have_readable_texts() {
        let fault =
            |vector, error| Reason::Exception { vector, error, address: 0x1000 }.to_string();
        assert_eq!(fault(14, 6), "page fault: write to 0x1000, nothing there");
        assert_eq!(fault(14, 0x15), "page fault: execute 0x1000, forbidden");
        assert_eq!(fault(14, 5), "page fault: read 0x1000, forbidden");
        assert_eq!(fault(0, 7), "division by zero");
        assert_eq!(fault(13, 0x28), "forbidden instruction or address (error code 0x28)");
        assert_eq!(fault(200, 0), "vector 200");
        let write = Reason::ReadOnly(0x1000).to_string();
        assert_eq!(write, "wrote to 0x1000, which is read-only");
    }
}
