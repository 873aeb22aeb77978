//! The operator's command: `kyozon load`, `unload`, `status`, `events`, `run`, `ps`, `kill`, `bench`.
//!
//! | module | what it does |
//! |---|---|
//! | [`bench`] | what shared memory costs: experiments in turns, and their figures |
//! | [`checks`] | what the monitor's checks did, as text and as JSON |
//! | [`cli`] | words and options |
//! | [`colocation`] | what load, unload and status do, over the trait [`machine::Machine`] |
//! | [`events`] | the event ring as text and as JSON |
//! | [`groups`] | what ps and kill do: they ask the groups' keepers |
//! | [`machine`] | this machine: its module, its `/dev/kyozon`; the only `unsafe` |
//! | [`monitor`] | what the monitor needs: the running kernel's profile, and memory |
//! | [`payload`] | the kernel in a bzImage, unpacked |
//! | [`report`] | a status as text and as JSON |
//! | [`unikernel`] | what run does, by the tender |
//!
//! Invariants:
//!
//! 1. A command that fails has changed nothing, says in one line what is wrong and what to do, and exits non-zero.
//! 2. What the event ring says is a peer's word: it is bounded, and of its text only printable ASCII is passed on.
//! 3. A module that this command inserted for a load that was then refused is taken out again.
//!
//! Must not know: how anything below it works; it speaks to `/dev/kyozon` and to the tender.
#![deny(unsafe_code)]

pub mod bench;
pub mod checks;
pub mod cli;
pub mod colocation;
pub mod events;
#[cfg(test)]
mod fake;
pub mod groups;
pub mod machine;
pub mod monitor;
pub mod payload;
pub mod report;
pub mod unikernel;
