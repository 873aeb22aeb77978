//! Host side of a unikernel: builds its address space, runs it at CPL 3 under KVM or in a confined process.
//!
//! | module | what it does |
//! |---|---|
//! | [`run`] | builds a run from its options, executes it, sums it up |
//! | [`options`] | options of a run |
//! | [`elf`] | checks an image's headers |
//! | [`layout`] | addresses of everything in the guest's address space |
//! | [`memory`] | the guest's memory, and every access of the tender to it |
//! | [`boot`] | reads the image, writes arguments and boot block |
//! | [`backend`] | the interface of a backend: runs a guest until it calls, rings or crashes |
//! | [`kvm`] | backend: a virtual machine without any code at CPL 0 |
//! | [`process`] | backend: a process that contains nothing but the guest |
//! | [`guest`] | runs one guest on its thread to its end |
//! | [`calls`] | answers a guest's calls, the same for every backend |
//! | [`peer`], [`peers`], [`table`] | one guest; those of this run; their numbers and generations |
//! | [`tokens`] | wake sleeping guests |
//! | [`group`] | the peers of this run and the regions that they share |
//! | [`region`] | named memory that peers share |
//! | [`member`] | a run that shares its group with other runs |
//! | [`keeper`] | the process that keeps such a group together |
//! | [`spawn`] | makes peers that join a family while it runs |
//! | [`pins`] | pins guests to CPUs |
//! | [`device`] | virtio devices of guests, each with a thread |
//! | [`clock`] | the time-stamp counter as a clock |
//! | [`report`], [`core_file`] | how a guest crashed |
//! | [`error`] | errors, each one complete line |
//! | [`confine`] | what the tender gives up before a guest's first instruction |
//!
//! Files import each other in one direction only.
//!
//! Invariants:
//!
//! 1. A guest reaches its own memory and the regions it was granted, nothing else.
//! 2. What a guest says is a stranger's word: it is copied once, then checked, then used.
//! 3. However a guest or the tender ends, nothing is left behind: all that the tender makes are memory, descriptors
//!    and children that the kernel ends with it.
//! 4. After [`confine`], the tender opens nothing and connects to nothing; what it executes are guests that are
//!    spawned, confined as it is.
//!
//! Must not know: what a guest computes.

pub mod backend;
pub mod boot;
mod bpf;
pub mod calls;
pub mod clock;
pub mod confine;
pub mod core_file;
pub mod device;
pub mod elf;
pub mod error;
pub mod group;
pub mod guest;
pub mod keeper;
pub mod kvm;
pub mod layout;
mod machine;
pub mod member;
pub mod memory;
pub mod options;
pub mod peer;
pub mod peers;
pub mod pins;
pub mod process;
pub mod region;
pub mod report;
pub mod run;
mod signals;
pub mod spawn;
pub mod table;
pub mod tokens;
mod wire;

pub use error::{Error, Result};
