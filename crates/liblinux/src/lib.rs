//! Rust side of Linux as a library; the C interface comes from here.
//!
//! Invariant: everything that the Linux inside needs (memory, time, waiting) comes from the `host` crate's trait.
//!
//! Must not know: which program it is linked into.
