//! A process with nothing but the guest in it.
//!
//! A child of the tender executes a loader of two hundred bytes, which the tender makes: a table of system calls, and
//! a loop that makes them. They map the guest's memory where a virtual machine would have it, unmap all else, close
//! every descriptor but those of doorbells and one that it cannot use, and install a filter. From then on the process
//! can do two things: ring a doorbell, and stop for the tender, which traces it. The door is a system call that no
//! kernel has: the filter hands it to the tracer. Exceptions are signals, which stop for the tracer, too.
//!
//! Weaker than a virtual machine: page tables are the host's, and the filter stands before the host's system calls.

mod child;
mod cpu;
mod descriptors;
mod filter;
mod loader;
mod space;

pub use child::CLONE;
pub use cpu::ProcessCpu;
pub use filter::DOOR_NUMBER;
pub use loader::{DOOR, DOORBELL};
pub(crate) use space::read_only;
pub use space::{ProcessSpace, Readers};
