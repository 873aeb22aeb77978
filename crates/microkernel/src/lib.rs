//! An L4-style microkernel: threads with fixed priorities, address spaces, synchronous IPC, notifications.
//!
//! The same image runs alone, beside Linux, and behind nested paging.
//!
//! Invariants:
//!
//! 1. No memory is allocated after boot.
//! 2. No panic and no unbounded loop can be reached from user mode.
//! 3. Kernel code is not preempted; a tick that lands in it is seen at its end.
//!
//! Must not know: Linux, or which layer it runs on. It sees `abi::layer` only.
#![no_std]
