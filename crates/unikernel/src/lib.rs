//! Guest side of a unikernel: entry, hypercalls, heaps, threads across virtual machines.
//!
//! Must not know: which back end runs it. It sees `abi::unikernel` only.
#![no_std]
