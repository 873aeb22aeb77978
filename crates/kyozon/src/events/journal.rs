//! systemd's journal, by its native protocol: a datagram for each message.

use anyhow::{Context, Result};
use std::io::{self, Write};
use std::os::unix::net::UnixDatagram;
use std::path::Path;

/// Where the journal listens.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// The journal. What is written at once is one message.
#[derive(Debug)]
pub struct Journal(UnixDatagram);

impl Journal {
    /// Connects to the journal that listens at `path`.
    ///
    /// # Errors
    ///
    /// Nobody listens there.
    pub fn connect(path: &Path) -> Result<Self> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path).with_context(|| {
            format!(
                "systemd's journal does not listen at {}: choose another --format",
                path.display()
            )
        })?;
        Ok(Self(socket))
    }
}

impl Write for Journal {
    fn write(&mut self, message: &[u8]) -> io::Result<usize> {
        self.0.send(message)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_is_a_message() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        let error = Journal::connect(&path).unwrap_err().to_string();
        assert!(error.contains("does not listen"), "{error}");
        let listener = UnixDatagram::bind(&path).unwrap();
        let mut journal = Journal::connect(&path).unwrap();
        for message in ["MESSAGE=one\n", "MESSAGE=two\nPRIORITY=2\n"] {
            journal.write_all(message.as_bytes()).unwrap();
            let mut bytes = [0; 64];
            let length = listener.recv(&mut bytes).unwrap();
            assert_eq!(&bytes[..length], message.as_bytes());
        }
    }
}
