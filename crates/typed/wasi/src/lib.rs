//! WASI preview 1: the system interface of typed programs that were compiled from WebAssembly.
//!
//! All 46 functions of `wasi_snapshot_preview1` are here, over one trait, [`Host`], of operations on handles. A host
//! implements the trait, gives a program its descriptors and calls [`Wasi::call`]; [`Function::by_name`] and
//! [`Function::signature`] bind the program's imports.
//!
//! What this crate guarantees, whatever the program does:
//!
//! 1. A host's function is called only if the descriptor has the right for it. Rights come from the descriptor by
//!    which a file was opened, and a program can only give them up.
//! 2. A path leads to what lies below the directory of its descriptor. `..` and symbolic links are resolved here, one
//!    component at a time; the host sees single names and follows no link, so a race against the file system ends in
//!    an error and not outside.
//! 3. The program's memory is copied before it is looked at, because it may change at any time. Ranges that a host
//!    gets lie within the memory.
//! 4. It allocates nothing: a host passes in [`Storage`]. A call that succeeds has written its results; one that fails
//!    may have written some of them.
//!
//! | module | contents |
//! |---|---|
//! | [`host`], [`memory`] | what a host implements |
//! | [`function`] | names and signatures |
//! | [`types`] | errors, rights, flags, enumerations |
//! | [`linux`] | Linux's numbers, for hosts that are Linux or a library of it |
//! | `wasi` | dispatch |
//! | `table`, `walk` | descriptors; path resolution |
//! | `process`, `descriptor`, `path`, `poll`, `socket` | the functions |
//!
//! The crate must not know how files, clocks or sockets are made, nor how a program calls.
//!
//! # Where the definition leaves a choice
//!
//! | case | here |
//! |---|---|
//! | a path that leads out of its directory, or is absolute; a link with an absolute target | `notcapable` |
//! | a path that is not UTF-8 | `ilseq`; with a zero byte, `inval` |
//! | a path longer than 4,095 bytes, also after links were replaced | `nametoolong` |
//! | more than 40 links in a path | `loop` |
//! | a descriptor without the right | `notcapable`, after `badf`, `notdir`, `notsock`, `isdir` and `spipe` |
//! | number of a new descriptor | the lowest that is free |
//! | more than 1,024 buffers or 256 subscriptions | `inval` |
//! | pointers that are not aligned | accepted |
//! | `fd_readdir`: serial number of `..` | 0 |
//! | `path_readlink` with a buffer that is too short | the target, cut off |
//! | `poll_oneoff` with a clock of processor time | an event with `notsup` |
//! | `proc_raise` of signal 0, or of one that is ignored by default | succeeds |
//! | `proc_raise` of a signal that stops | `notsup` |
//! | `proc_raise` of another signal | the program ends with 128 and Linux's number of the signal |
//! | `path_open` of a named pipe | does not wait; `nxio` to write what nobody reads |
#![no_std]
#![forbid(unsafe_code)]

#[cfg(test)]
extern crate std;

mod descriptor;
pub mod function;
pub mod host;
pub mod linux;
pub mod memory;
mod path;
mod poll;
mod process;
mod socket;
mod table;
pub mod types;
mod walk;
mod wasi;

#[cfg(test)]
mod tests;

pub use function::{Function, Signature, FUNCTIONS, MODULE, PARAMETERS};
pub use host::Host;
pub use memory::{Buffer, Memory};
pub use table::Entry;
pub use types::Errno;
pub use walk::PATH;
pub use wasi::{Exit, Program, Scratch, Storage, Wasi, BUFFERS, SUBSCRIPTIONS};
