//! Standard output. Names come from images, and a terminal obeys some characters: there they are quoted.

use anyhow::{Error, Result};
use std::fmt::Write as _;
use std::io::{self, BufWriter, IsTerminal, Stdout, Write};
use std::sync::{LazyLock, Mutex, MutexGuard};

static OUT: LazyLock<Mutex<BufWriter<Stdout>>> =
    LazyLock::new(|| Mutex::new(BufWriter::with_capacity(1 << 16, io::stdout())));

fn lock() -> MutexGuard<'static, BufWriter<Stdout>> {
    OUT.lock().unwrap_or_else(|e| e.into_inner())
}

fn failed(error: io::Error) -> Error {
    Error::new(error).context("standard output")
}

/// An error if the program was started without standard output.
pub fn exists() -> Result<()> {
    kyozon_standard::output().map_err(failed)
}

/// Writes bytes, which may wait for [`flush`].
pub fn write(bytes: &[u8]) -> Result<()> {
    exists()?;
    lock().write_all(bytes).map_err(failed)
}

/// Ends what was written. Only then all errors are known.
pub fn flush() -> Result<()> {
    let mut out = lock();
    out.flush().and_then(|()| out.get_mut().flush()).map_err(failed)
}

/// Whether an error says that nobody reads standard output any more.
pub fn is_closed(error: &Error) -> bool {
    let cause = error.root_cause().downcast_ref::<io::Error>();
    cause.is_some_and(|error| error.kind() == io::ErrorKind::BrokenPipe)
}

/// A name as standard output gets it.
pub fn name(bytes: &[u8]) -> Vec<u8> {
    static TERMINAL: LazyLock<bool> = LazyLock::new(|| io::stdout().is_terminal());
    if *TERMINAL {
        quoted(bytes)
    } else {
        bytes.to_vec()
    }
}

/// A name that a terminal shows and does not obey, in the shell's notation `$'...'` if it has other than printable
/// characters.
pub fn quoted(bytes: &[u8]) -> Vec<u8> {
    let plain = std::str::from_utf8(bytes).is_ok_and(|text| !text.contains(char::is_control));
    if plain {
        return bytes.to_vec();
    }
    let mut text = String::from("$'");
    let octal = |text: &mut String, bytes: &[u8]| {
        for byte in bytes {
            // Writing to a string does not fail.
            let _ = write!(text, "\\{byte:03o}");
        }
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n"),
                '\'' | '\\' => text.extend(['\\', c]),
                c if c.is_control() => octal(&mut text, c.encode_utf8(&mut [0; 4]).as_bytes()),
                c => text.push(c),
            }
        }
        octal(&mut text, chunk.invalid());
    }
    text.push('\'');
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_a_terminal_would_obey_are_quoted() {
        assert_eq!(quoted("späte Datei".as_bytes()), "späte Datei".as_bytes());
        assert_eq!(quoted(b"a\x1b[31m\n'\\"), br"$'a\033[31m\n\'\\'");
        assert_eq!(quoted(b"bad\xff"), br"$'bad\377'");
        assert_eq!(quoted("\u{9b}x".as_bytes()), br"$'\302\233x'");
    }
}
