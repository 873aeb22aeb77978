//! A filter of the packets that a network interface receives, by the module's device.

use std::fs::{self, File};
use std::os::fd::AsRawFd;

use anyhow::{bail, Context, Result};
use clap::ValueEnum;
use kyozon_abi::typed::{
    TypedFilter, IOCTL_TYPED_FILTER, TYPED_FULL_PASSES, TYPED_MESSAGE_BYTES, TYPED_VERSION,
};
use rustix::event::{poll, PollFd, PollFlags};
use rustix::io::Errno;
use rustix::ioctl::{ioctl, Updater};
use rustix::net::{socket, AddressFamily, SocketType};

use super::kernel::refusal;
use super::packets::index_of;

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Verdict {
    /// Linux's stack never gets it
    Drop,
    /// Linux's stack gets it, before packets that came earlier and wait for the program
    Pass,
}

/// A filter to start.
#[derive(Debug)]
pub(super) struct Options {
    /// The interface's name.
    pub(super) interface: String,
    /// Of packets that come while the queue is full.
    pub(super) when_full: Verdict,
}

/// Lets the program of a device filter what an interface receives.
///
/// # Errors
///
/// There is no such interface, it has a handler of packets already, or the process must not filter packets.
#[allow(unsafe_code)]
pub(super) fn start(device: &File, options: &Options) -> Result<()> {
    let about = || format!("--filter {}", options.interface);
    let any = socket(AddressFamily::UNIX, SocketType::DGRAM, None).with_context(about)?;
    let mut request = TypedFilter {
        version: TYPED_VERSION,
        flags: if options.when_full == Verdict::Pass { TYPED_FULL_PASSES } else { 0 },
        interface: index_of(&any, &options.interface).context("--filter")?,
        reserved: 0,
        message: [0; TYPED_MESSAGE_BYTES],
    };
    // SAFETY: the opcode encodes the size of `TypedFilter`, and the kernel writes no more than that.
    let outcome = unsafe {
        ioctl(device, Updater::<{ IOCTL_TYPED_FILTER as _ }, TypedFilter>::new(&mut request))
    };
    outcome.map_err(|error| refusal(error, &request.message)).with_context(about)
}

/// Waits until there is a packet.
///
/// # Errors
///
/// The interface is gone, or in another namespace.
pub(super) fn wait(device: &File, options: &Options) -> Result<()> {
    let mut devices = [PollFd::new(device, PollFlags::IN)];
    loop {
        match poll(&mut devices, None) {
            Ok(_) => break,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error).context("--filter: waiting for a packet"),
        }
    }
    if devices[0].revents().contains(PollFlags::HUP) {
        bail!("--filter: the interface {} is gone, or in another namespace", options.interface);
    }
    Ok(())
}

/// A line on the packets that the program never got, if there are any.
pub(super) fn missed(device: &File, when_full: Verdict) -> Option<String> {
    let about = fs::read_to_string(format!("/proc/self/fdinfo/{}", device.as_raw_fd())).ok()?;
    let full = number(&about, "packets-when-full")?;
    let became = match when_full {
        Verdict::Drop => "were dropped",
        Verdict::Pass => "passed unseen",
    };
    (full > 0).then(|| format!("{full} packets came while the queue was full, and {became}"))
}

/// A number in the lines of `/proc/PID/fdinfo/FD`.
fn number(about: &str, name: &str) -> Option<u64> {
    let mut lines = about.lines().filter_map(|line| line.split_once(':'));
    lines.find(|(key, _)| *key == name)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_packets_have_names() {
        let about = "pos:\t0\nflags:\t02\npackets-passed:\t12\npackets-when-full:\t3\n";
        assert_eq!(number(about, "packets-passed"), Some(12));
        assert_eq!(number(about, "packets-when-full"), Some(3));
        assert_eq!(number(about, "packets"), None);
        assert_eq!(number("packets-lost:\tmany\n", "packets-lost"), None);
    }

    #[test]
    fn another_file_has_no_filter() {
        assert_eq!(missed(&File::open("/dev/null").unwrap(), Verdict::Drop), None);
    }
}
