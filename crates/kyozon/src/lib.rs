//! The operator's command: `kyozon load`, `unload`, `status`.
//!
//! | module | what it does |
//! |---|---|
//! | [`cli`] | words and options |
//! | [`colocation`] | what load, unload and status do, over the trait [`machine::Machine`] |
//! | [`machine`] | this machine: its module, its `/dev/kyozon`; the only `unsafe` |
//! | [`report`] | a status as text and as JSON |
//!
//! Invariants:
//!
//! 1. A command that fails has changed nothing, says in one line what is wrong and what to do, and exits non-zero.
//! 2. A module that this command inserted for a load that was then refused is taken out again.
//!
//! Must not know: how anything below it works; it speaks to `/dev/kyozon` and to the tender.
#![deny(unsafe_code)]

pub mod cli;
pub mod colocation;
pub mod machine;
pub mod report;
