//! A cokernel that uses and misuses every service of the colocation layer.
//!
//! `kyozon load --parameter` chooses its [`script::Script`]. Results are reported as lines of the form
//! `test NAME: WORD WORD ...`, which scenarios match.
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
