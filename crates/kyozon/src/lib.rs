//! The operator's command: `kyozon load`, `unload`, `status`, `events`, `run`.
//!
//! Invariant: a command that fails has changed nothing, says in one line what is wrong and what to do, and exits non-zero.
//!
//! Must not know: how anything below it works; it speaks to `/dev/kyozon` and to the tender.
