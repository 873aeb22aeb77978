//! What touches the machine.

pub mod x86_64;
