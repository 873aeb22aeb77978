//! Host side of a unikernel: builds its address space, runs it at CPL 3 under KVM or in a confined process.
//!
//! Invariants:
//!
//! 1. A guest reaches its own memory and the regions it was granted, nothing else.
//! 2. However a guest or the tender ends, nothing is left behind.
//!
//! Must not know: what a guest computes.
