//! One interface to threads, a group, a clock, a network port and output, with two implementations, so that one source
//! makes two programs: an image whose threads are virtual machines (feature `image`), and a program whose threads are
//! the host's (feature `host`).
//!
//! | item | purpose |
//! |---|---|
//! | [`machine`] | threads, the group's clock, arguments, random numbers, output, the network port |
//! | [`program!`] | the program's entry |
//! | [`Arguments`] | arguments of the example programs |
//! | [`Rings`] | memory for rings between threads |
//! | [`Xorshift`], [`fingerprint`] | reproducible inputs, and a checksum to compare outputs |
//!
//! Invariant: [`machine`] has the same names and compatible types in both implementations.
//!
//! Must not know: what the program computes.
#![cfg_attr(feature = "image", no_std)]

extern crate alloc;

mod arguments;
pub mod machine;
mod numbers;
mod program;
mod rings;

pub use arguments::Arguments;
pub use numbers::{fingerprint, Xorshift};
pub use rings::Rings;
