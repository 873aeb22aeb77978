//! Commands on library Linux.
//!
//! | module | contents |
//! |---|---|
//! | [`bench`] | the time of system calls, by the same code on every kernel |
//! | [`cli`] | the command line |
//! | [`fs`] | files in images of file systems: list, copy, remove, archive |
//! | [`interrupt`] | signals that end a command between two steps |
//! | [`typed`] | typed programs whose files are in images |
//!
//! Invariants:
//!
//! 1. What an image contains is hostile: a name from it never leads out of the folder that the user named.
//! 2. A command that only reads opens the image for reading only.
//! 3. Linux runs in a confined process, unless the user asks for speed; its answers are hostile, too.
//! 4. A command ends with success only after the file system was unmounted and the image was written without an error.

pub mod bench;
pub mod cli;
pub mod fs;
pub mod interrupt;
pub mod typed;
