//! Host side of a unikernel: builds its address space, runs it at CPL 3 under KVM or in a confined process.
//!
//! | module | what it does |
//! |---|---|
//! | [`run`] | builds a run from its options, executes it, returns a summary |
//! | [`options`] | options of a run |
//! | [`elf`] | checks an image's headers |
//! | [`layout`] | the guest's address space |
//! | [`memory`] | the guest's memory, and all of the tender's accesses to it |
//! | [`boot`] | reads the image, writes arguments and boot block |
//! | [`backend`] | the interface of a backend: runs a guest until it calls, rings or crashes |
//! | [`kvm`] | backend: a virtual machine without any code at CPL 0 |
//! | [`process`] | backend: a process that contains nothing but the guest |
//! | [`guest`] | runs one guest on its thread until it ends |
//! | [`calls`] | answers a guest's calls, the same for every backend |
//! | [`peer`], [`peers`], [`table`] | one guest; all guests of this run; their numbers and generations |
//! | `bond` | what the end of a thread means for the thread whose memory it borrowed |
//! | [`lives`] | the table in which guests see which peers live |
//! | [`tokens`] | events that wake sleeping guests |
//! | [`group`] | the peers of this run and the regions that they share |
//! | [`region`], [`rules`] | named memory that peers share; who may do what with it |
//! | [`quota`] | what a family may have |
//! | [`member`] | the connection of a run that shares its group with other runs |
//! | [`keeper`] | the process that holds such a group's regions and numbers |
//! | [`spawn`] | makes peers that join a family while it runs |
//! | [`pins`] | pins guests to CPUs |
//! | [`console`] | standard output and standard error, which nobody may read |
//! | [`device`] | virtio devices of guests, each with a thread |
//! | [`clock`] | the time-stamp counter as a clock |
//! | [`report`], [`core_file`] | the report and the core file of a crash |
//! | [`error`] | errors, each one complete line |
//! | [`confine`] | what the tender gives up before a guest's first instruction |
//!
//! Files import each other in one direction only.
//!
//! Invariants:
//!
//! 1. A guest reaches only its own memory and the regions that it was granted.
//! 2. A guest's data is untrusted: the tender copies it once, checks the copy, and uses only the copy.
//! 3. A guest or a tender that ends leaves nothing behind, however it ends: the tender makes only memory, descriptors
//!    and child processes, and the kernel frees or ends them with it.
//! 4. After [`confine`], the tender opens no file and no connection. It starts only processes of spawned guests, which
//!    inherit its confinement.
//!
//! The tender must not depend on a guest's program.

pub mod backend;
mod bond;
pub mod boot;
pub mod calls;
pub mod clock;
pub mod confine;
pub mod console;
pub mod core_file;
pub mod device;
pub mod elf;
pub mod error;
pub mod group;
pub mod guest;
pub mod keeper;
pub mod kvm;
pub mod layout;
pub mod lives;
mod machine;
pub mod member;
pub mod memory;
pub mod options;
pub mod peer;
pub mod peers;
pub mod pins;
pub mod process;
pub mod quota;
pub mod region;
pub mod report;
pub mod rules;
pub mod run;
mod signals;
pub mod spawn;
pub mod table;
pub mod tokens;
mod wire;

pub use error::{Error, Result};
