//! Runtime of the microkernel's user tasks: start, system calls, heap.
//!
//! Must not know: what any one task does.
#![no_std]
