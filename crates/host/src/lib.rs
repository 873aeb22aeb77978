//! Trait `Host`: memory, time, park and unpark, a thread in this address space.
//!
//! Two back ends: the C library of an ordinary process, and a unikernel's hypercalls.
//!
//! Must not know: who asks.
#![no_std]
