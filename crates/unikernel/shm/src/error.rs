//! Why an experiment has no samples.

use core::fmt;

/// Why an experiment has no samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// The words name no experiment, or a count that is out of range.
    Arguments,
    /// The experiment's number is no length of a record.
    RecordLength,
    /// A number came back wrong.
    WrongNumber,
    /// A copy differs from its original.
    WrongCopy,
    /// The ring took no record, or gave none.
    Ring,
    /// The other side did not answer in time.
    NoAnswer,
    /// The lock could not be taken in time.
    Lock,
    /// The waiter was not woken.
    NotWoken,
    /// A thread did not start.
    NoThread,
    /// The host's kernel opened no connection between two threads.
    NoConnection,
    /// A message could not be sent.
    Send,
    /// The experiment needs two guests.
    Guests,
    /// The guest has no network.
    NoNetwork,
    /// The network's frames are too short for the numbers.
    ShortFrames,
    /// The network took no frame in time.
    NetworkFull,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Arguments => {
                "arguments: an experiment, the number of samples, and the experiment's own number"
            }
            Self::RecordLength => "a record has 64 bytes to 1 MiB, a multiple of 8",
            Self::WrongNumber => "a number came back wrong",
            Self::WrongCopy => "a copy differs from its original",
            Self::Ring => "the ring took no record, or gave none",
            Self::NoAnswer => "the other side did not answer",
            Self::Lock => "the lock could not be taken",
            Self::NotWoken => "the waiter was not woken",
            Self::NoThread => "a thread did not start",
            Self::NoConnection => "the kernel opened no connection between two threads",
            Self::Send => "cannot send",
            Self::Guests => "frames needs two guests: kyozon run --vms 2",
            Self::NoNetwork => "no network: give one with kyozon run --net name=lan,mtu=65520",
            Self::ShortFrames => "the network's frames are too short: set mtu=65520",
            Self::NetworkFull => "the network takes no frame",
        })
    }
}

impl core::error::Error for Error {}
