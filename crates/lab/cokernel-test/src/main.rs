//! A cokernel that uses, and misuses, everything the colocation layer offers.
//!
//! What it does is chosen by the number that `kyozon load` passes on; see [`script::Script`]. It tells what happened
//! through `report`, one line a finding, in the form `test NAME: WORD WORD ...`, so that a test greps for it.
#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
mod events;
#[cfg(target_os = "none")]
mod latency;
#[cfg(target_os = "none")]
mod layer;
#[cfg(target_os = "none")]
mod script;
#[cfg(target_os = "none")]
mod user;

#[cfg(not(target_os = "none"))]
fn main() {
    eprintln!("cokernel-test: an image for the bare machine; build it for x86_64-unknown-none");
}
