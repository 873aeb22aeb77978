//! The protocol between the host and the agent in a guest: frames over any reliable byte stream.
//!
//! A frame is the length of its header (4 bytes, little endian), the length of its payload (the same), the header
//! in JSON, the payload. The host sends [`Request`]s one at a time; the agent answers each with any number of
//! [`Reply::Output`] and then one [`Reply::Done`] or [`Reply::Failed`].

use anyhow::{bail, Context, Result};
use serde::{de::DeserializeOwned, Deserialize, Serialize};
use std::io::{Read, Write};

/// Version; add 1 when the meaning of a frame changes.
pub const VERSION: u32 = 2;
/// Maximum length of a payload, in bytes.
pub const MAX_PAYLOAD: usize = 64 << 20;
const MAX_HEADER: usize = 64 << 10;
/// Bytes before the first frame; the reader skips what firmware wrote to the serial line before them.
pub const PREAMBLE: &[u8; 16] = b"\0kyozon-agent-1\n";

/// A request of the host.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Request {
    /// Runs `/bin/sh -c SCRIPT` with the payload as standard input, and kills it after `timeout_ms` of guest time.
    Run {
        /// The script.
        script: String,
        /// Time limit in milliseconds of guest time.
        timeout_ms: u64,
    },
    /// Writes the payload to `path`.
    Put {
        /// Absolute path in the guest.
        path: String,
        /// Permission bits.
        mode: u32,
    },
    /// Asks for the contents of `path`.
    Get {
        /// Absolute path in the guest.
        path: String,
    },
    /// Mixes the payload into the kernel's random numbers, of which the next ones depend on it.
    Seed,
    /// Powers the machine off. There is no answer.
    PowerOff,
}

/// An answer of the agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Reply {
    /// The agent is ready: the first frame, sent once.
    Hello {
        /// [`VERSION`].
        version: u32,
        /// `uname -r`.
        release: String,
        /// Time-stamp counter at the agent's first instruction.
        tsc: u64,
    },
    /// The payload is a piece of output.
    Output {
        /// 1: standard output or file contents, 2: standard error.
        stream: u8,
    },
    /// The request was carried out.
    Done {
        /// Exit status; 128 + signal for a command that was killed.
        status: i32,
        /// Whether it was killed at its time limit.
        timed_out: bool,
        /// Time-stamp counter before the request was carried out.
        tsc_start: u64,
        /// Time-stamp counter after.
        tsc_end: u64,
    },
    /// The request could not be carried out.
    Failed {
        /// One line.
        message: String,
    },
}

/// Writes one frame and flushes.
pub fn send<T: Serialize>(to: &mut impl Write, header: &T, payload: &[u8]) -> Result<()> {
    let header = serde_json::to_vec(header)?;
    if payload.len() > MAX_PAYLOAD {
        bail!("payload of {} bytes: at most {MAX_PAYLOAD} fit in a frame", payload.len());
    }
    let mut frame = Vec::with_capacity(8 + header.len() + payload.len());
    frame.extend((header.len() as u32).to_le_bytes());
    frame.extend((payload.len() as u32).to_le_bytes());
    frame.extend(header);
    frame.extend(payload);
    to.write_all(&frame)?;
    Ok(to.flush()?)
}

/// Reads one frame; `None` if the stream ends between two frames.
pub fn receive<T: DeserializeOwned>(from: &mut impl Read) -> Result<Option<(T, Vec<u8>)>> {
    let mut lengths = [0; 8];
    if from.read(&mut lengths[..1])? == 0 {
        return Ok(None);
    }
    from.read_exact(&mut lengths[1..]).context("stream ends inside a frame")?;
    let length = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|i| lengths[at + i])) as usize;
    let (header_len, payload_len) = (length(0), length(4));
    if header_len > MAX_HEADER || payload_len > MAX_PAYLOAD {
        bail!("frame of {header_len} + {payload_len} bytes: the stream is not the agent's");
    }
    let mut header = vec![0; header_len];
    from.read_exact(&mut header).context("stream ends inside a frame")?;
    let mut payload = vec![0; payload_len];
    from.read_exact(&mut payload).context("stream ends inside a frame")?;
    Ok(Some((serde_json::from_slice(&header).context("frame header")?, payload)))
}

/// Reads to the end of [`PREAMBLE`].
pub fn skip_preamble(from: &mut impl Read) -> Result<()> {
    let mut last = [0u8; PREAMBLE.len()];
    let mut byte = [0];
    while &last != PREAMBLE {
        from.read_exact(&mut byte)?;
        last.rotate_left(1);
        last[PREAMBLE.len() - 1] = byte[0];
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_round_trip() {
        let mut wire = b"SeaBIOS says hello\r\n\0kyozon".to_vec();
        wire.extend(PREAMBLE);
        let run = Request::Run { script: "exit 3".into(), timeout_ms: 10 };
        send(&mut wire, &run, b"input").unwrap();
        send(&mut wire, &Request::PowerOff, b"").unwrap();
        let mut wire = wire.as_slice();
        skip_preamble(&mut wire).unwrap();
        assert_eq!(receive(&mut wire).unwrap(), Some((run, b"input".to_vec())));
        assert_eq!(receive(&mut wire).unwrap(), Some((Request::PowerOff, vec![])));
        assert_eq!(receive::<Request>(&mut wire).unwrap(), None);
    }

    #[test]
    fn torn_or_foreign_streams_are_errors() {
        let mut wire = Vec::new();
        send(&mut wire, &Request::PowerOff, b"abc").unwrap();
        for cut in 1..wire.len() {
            assert!(receive::<Request>(&mut &wire[..cut]).is_err(), "cut at {cut}");
        }
        assert!(receive::<Request>(&mut [0xff; 64].as_slice()).is_err());
        assert!(skip_preamble(&mut b"no agent here".as_slice()).is_err());
    }
}
