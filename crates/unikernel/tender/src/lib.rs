//! Host side of a unikernel: builds its address space, runs it at CPL 3 under KVM or in a confined process.
//!
//! | module | what it does |
//! |---|---|
//! | [`elf`] | an image's headers, checked |
//! | [`layout`] | where everything lies in the guest's address space |
//! | [`memory`] | the guest's memory, and every access of the tender's to it |
//! | [`backend`] | what a backend is: it runs a guest until that asks for something, or cannot go on |
//! | [`kvm`] | a virtual machine without any code at CPL 0 |
//! | [`process`] | a process with nothing but the guest in it |
//! | [`calls`] | what a guest may ask, whichever backend it has |
//! | [`group`] | peers, their tokens, their regions |
//! | [`member`] | a run that shares its group with other runs |
//! | [`keeper`] | the process that keeps such a group together |
//! | [`pins`] | which CPU a guest runs on |
//! | [`seats`] | who has which number of a group |
//! | [`tokens`] | what a sleeping guest is woken by |
//! | [`spawn`] | peers that join a family while it runs |
//! | [`region`] | named memory that peers share |
//! | [`device`] | virtio devices of guests, with a thread each |
//! | [`clock`] | the time-stamp counter as a clock |
//! | [`report`], [`core_file`] | how a guest crashed |
//! | [`confine`] | what the tender gives up before the first instruction of a guest |
//! | [`run`] | all of it, from an image to an exit status |
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
mod bpf;
pub mod calls;
pub mod clock;
pub mod confine;
pub mod core_file;
pub mod device;
pub mod elf;
pub mod group;
pub mod keeper;
pub mod kvm;
pub mod layout;
pub mod member;
pub mod memory;
pub mod pins;
pub mod process;
pub mod region;
pub mod report;
pub mod run;
pub mod seats;
pub mod spawn;
pub mod tokens;
mod wire;
