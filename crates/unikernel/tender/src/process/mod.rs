//! A process that contains nothing but the guest.
//!
//! A child of the tender executes a loader of two hundred bytes, which the tender generates: a table of system calls
//! and a loop that executes them. They map the guest's memory at the same addresses as in a virtual machine, unmap
//! everything else, close every descriptor except the doorbells and a lifeline that the guest cannot use, and install
//! a filter. From then on the process can do two things: ring a doorbell, and stop for the tender, which traces it.
//! The door is a system call that no kernel has; the filter hands it to the tracer. Exceptions are signals, which stop
//! the process for the tracer as well.
//!
//! This is weaker than a virtual machine: the page tables are Linux's, and only the filter protects its system calls.

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
