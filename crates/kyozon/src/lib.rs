//! The operator's command: `kyozon load`, `unload`, `status`, `events`, `run`, `ps`, `kill`, `bench`.
//!
//! | module | what it does |
//! |---|---|
//! | [`bench`] | the shared-memory measurement: runs the experiments in turns and evaluates them |
//! | [`checks`] | the status of the monitor's checks, as text and as JSON |
//! | [`cli`] | commands and options |
//! | [`colocation`] | load, unload and status, over the trait [`machine::Machine`] |
//! | [`events`] | the event ring as text, as JSON, and for the logs of systems |
//! | [`groups`] | ps and kill: requests to the groups' keepers |
//! | [`inspect`] | the checks, and lists, of this machine's memory or of an image; `unsafe`: one call of bpf(2) |
//! | [`library`] | commands on library Linux, which another program has |
//! | [`machine`] | this machine: its module, its `/dev/kyozon`; `unsafe`: the shared ring |
//! | [`metrics`] | the status as metrics |
//! | [`monitor`] | the monitor's requirements: a profile of the running kernel, and memory |
//! | [`payload`] | unpacks the kernel in a bzImage |
//! | [`report`] | the status as text and as JSON |
//! | [`top`] | the status and the latest events, live |
//! | [`typed`] | assembler, checker and disassembler of typed code |
//! | [`unikernel`] | run, by the tender |
//!
//! Invariants:
//!
//! 1. A command that fails has changed nothing, prints one line with the problem and its remedy, and exits non-zero.
//! 2. The event ring is untrusted: its values are bounded, and only printable ASCII of its text is passed on.
//! 3. A module that this command inserted for a refused load is removed again.
//!
//! Must not know: the inner workings of anything below it. It talks to `/dev/kyozon` and to the tender.
#![deny(unsafe_code)]

pub mod bench;
pub mod checks;
pub mod cli;
pub mod colocation;
pub mod events;
#[cfg(test)]
mod fake;
pub mod groups;
pub mod inspect;
pub mod key;
pub mod library;
pub mod machine;
pub mod metrics;
pub mod monitor;
pub mod payload;
pub mod policy;
pub mod report;
pub mod top;
pub mod typed;
pub mod unikernel;
pub mod watch;
