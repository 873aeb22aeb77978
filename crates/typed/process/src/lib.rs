//! Runs typed programs in this process, without a kernel's help but signals.
//!
//! A process has one [`Space`], because the region lies at a fixed address. A program that was accepted is loaded as an
//! [`Image`]; [`Image::run`] calls its entry on a stack of its own and says how it ended. It is strict: what the
//! checker excludes ends this process, by a signal that is not caught or by a panic.
//!
//! Programs share the address space with everything else here. What a wrong verdict lets through can change any memory
//! of this process without being noticed; tests run programs in children.

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!("typed programs are x86-64 code, and faults are read from Linux's signal frames");

mod enter;
mod image;
mod instance;
mod signals;
mod space;

pub use image::Image;
pub use instance::{Call, Calls, Engine, Host, Instance, Slot};
pub use signals::{is_due, stop, timed, Outcome};
pub use space::Space;
