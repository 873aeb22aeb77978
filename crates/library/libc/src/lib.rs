//! One C library for programs that run on Linux as a library, and, as the same file, as unikernels.
//!
//! The library is musl. A system call of a program is a call through a pointer that the program gets from its host.
//! `scripts/libc.sh` builds the library: it takes Debian's source package, replaces the files in `musl/`, and checks
//! that no system-call instruction is left. `scripts/libcxx.sh` adds the C++ library of gcc.
//!
//! | place | purpose |
//! |---|---|
//! | `include/kyozon/seam.h` | what program and host promise each other |
//! | `musl/` | the files of musl that differ |
//! | `gcc.specs`, `gxx.specs` | how gcc compiles and links a program; what differs with a C++ library |
//! | [`seam`] | the header's structures, for hosts in Rust |
//! | [`sysroot`] | gcc and rustc, set up for such programs |
//! | `test-host/` | a host for tests, on Linux's own system calls |
//!
//! Invariants: a program is static and position-independent; it enters no kernel, except to say that it has no host.
//!
//! Must not know: which host runs the program.

#![cfg_attr(not(feature = "std"), no_std)]

pub mod seam;
#[cfg(feature = "std")]
pub mod sysroot;
