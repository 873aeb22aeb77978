//! The checker of typed code as a function that a kernel module calls, and a second one that makes images.
//!
//! `scripts/checker.sh` compiles this crate to assembly, which the kernel's own build then takes like a file of the
//! module: see `linux/typed`. There is no allocator, no variable, no floating point, and no unwinding.
//!
//! [`ffi`] is the border to C; everything behind it is safe code. What comes from user space is the file, of which
//! nothing is believed. The module's C code is trusted: its addresses are what it says they are.
//!
//! This crate must not know what a program does after the check.
#![cfg_attr(target_os = "none", no_std)]

mod arena;
mod call;
pub mod ffi;
mod image;
