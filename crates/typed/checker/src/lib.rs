//! The trusted part of typed code: shows of machine code that it can only touch what its types name.
#![no_std]
#![forbid(unsafe_code)]

pub mod decode;
pub mod insn;
