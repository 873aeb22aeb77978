//! The machine that a program runs on. Each item has one implementation for images and one for the host.
//!
//! | item | image | host program |
//! |---|---|---|
//! | [`thread`] | `kyozon_unikernel::thread`: virtual machines | `std::thread` |
//! | [`Member`], [`member`] | the virtual machine, in its group | the calling thread, in the process's group |
//! | [`with_member`] | the same, also for locks that own their data | the same |
//! | [`now`] | nanoseconds of the group's clock | nanoseconds since the first call |
//! | [`arguments`] | what follows `--` in `kyozon run` | the command line without network options |
//! | [`random`] | random numbers of the tender | random numbers of the standard library's hasher |
//! | [`print_line`] | the console | standard output |
//! | [`Port`], [`port`] | the port on the guest's first network | the port that `tap=` or `socket=` names |

#[cfg(not(feature = "image"))]
mod host;
#[cfg(feature = "image")]
mod image;

#[cfg(not(feature = "image"))]
use host as implementation;
#[cfg(feature = "image")]
use image as implementation;

pub use implementation::{
    arguments, member, now, port, print_line, random, thread, with_member, Member, Port,
};

use alloc::string::String;
use core::fmt;

/// Why a program has no network port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PortError {
    /// No network was given. The text is an option that gives one.
    Missing(&'static str),
    /// The network cannot be used, for this reason.
    Failed(String),
}

impl fmt::Display for PortError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(option) => write!(f, "no network: give one with {option}"),
            Self::Failed(reason) => write!(f, "no network: {reason}"),
        }
    }
}

impl core::error::Error for PortError {}
