//! Machine code.

pub mod x86_64;
