//! Commands and answers of the Redis serialization protocol, version 2 (redis.io, "Redis serialization protocol
//! specification").
//!
//! A command is an array of bulk strings, or a line of words. Parsing copies nothing.

use alloc::vec::Vec;
use core::fmt;

/// Maximum bytes of a command, with lengths and line ends.
pub const MAX_COMMAND_BYTES: usize = 64 << 10;
/// Maximum words of a command.
pub const MAX_WORDS: usize = 1024;
/// Maximum bytes of a line with a number.
const MAX_LINE: usize = 32;

/// Why input is no command. The input after it cannot be parsed either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProtocolError {
    /// The number of words is invalid, or too high.
    Words,
    /// The length of a word is invalid, or too high.
    Length,
    /// A byte other than `$` precedes a word.
    Kind(u8),
    /// No line end follows a word.
    End,
    /// The command is longer than [`MAX_COMMAND_BYTES`].
    Long,
}

impl fmt::Display for ProtocolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::Words => f.write_str("invalid multibulk length"),
            Self::Length => f.write_str("invalid bulk length"),
            Self::Kind(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::End => f.write_str("expected an end of line behind a bulk"),
            Self::Long => write!(f, "a command has at most {MAX_COMMAND_BYTES} bytes"),
        }
    }
}

/// Words of a command, in order.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: &'a [u8],
    /// The number of words left in an array; `None` in a line.
    left: Option<usize>,
}

/// A command at the beginning of some input.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// Its words. A command without words has no answer.
    pub words: Words<'a>,
    /// Bytes of the whole command.
    pub bytes: usize,
}

impl Command<'_> {
    /// Whether the command has no words.
    pub fn is_empty(&self) -> bool {
        self.words.clone().next().is_none()
    }
}

/// The first line, and its bytes with the line end; `None` if there is no line end in the first `max` bytes.
fn line(bytes: &[u8], max: usize) -> Option<(&[u8], usize)> {
    let end = bytes.iter().take(max).position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// Parses a number; a plus sign is not allowed.
fn number(digits: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(digits).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// Parses a line with a number after its first byte. Returns the number and the line's bytes; `None` if input is
/// missing.
fn count(bytes: &[u8], bad: ProtocolError) -> Result<Option<(i64, usize)>, ProtocolError> {
    match line(bytes, MAX_LINE) {
        Some((line, taken)) => {
            let value = line.get(1..).and_then(number).ok_or(bad)?;
            Ok(Some((value, taken)))
        }
        None if bytes.len() >= MAX_LINE => Err(bad),
        None => Ok(None),
    }
}

/// Parses a bulk string. Returns the word and the bytes that it takes; `None` if input is missing.
fn bulk(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, ProtocolError> {
    match bytes.first() {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => return Err(ProtocolError::Kind(*other)),
    }
    let Some((length, from)) = count(bytes, ProtocolError::Length)? else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= MAX_COMMAND_BYTES);
    let end = from + length.ok_or(ProtocolError::Length)?;
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((&bytes[from..end], end + 2))),
        Some(_) => Err(ProtocolError::End),
        None => Ok(None),
    }
}

/// Parses the command at the beginning of the input. `None` if input is missing.
///
/// # Errors
///
/// The input is no command.
pub fn parse(bytes: &[u8]) -> Result<Option<Command<'_>>, ProtocolError> {
    let found = match bytes.first() {
        None => return Ok(None),
        Some(b'*') => array(bytes)?,
        Some(_) => line(bytes, MAX_COMMAND_BYTES)
            .map(|(line, bytes)| Command { words: Words { rest: line, left: None }, bytes }),
    };
    match found {
        Some(command) if command.bytes > MAX_COMMAND_BYTES => Err(ProtocolError::Long),
        None if bytes.len() >= MAX_COMMAND_BYTES => Err(ProtocolError::Long),
        found => Ok(found),
    }
}

fn array(bytes: &[u8]) -> Result<Option<Command<'_>>, ProtocolError> {
    let Some((words, from)) = count(bytes, ProtocolError::Words)? else { return Ok(None) };
    // As in Redis, a negative number of words means none.
    let words = usize::try_from(words).unwrap_or(0);
    if words > MAX_WORDS {
        return Err(ProtocolError::Words);
    }
    let mut end = from;
    for _ in 0..words {
        let Some((_, taken)) = bulk(&bytes[end..])? else { return Ok(None) };
        end += taken;
    }
    let words = Words { rest: &bytes[from..end], left: Some(words) };
    Ok(Some(Command { words, bytes: end }))
}

impl<'a> Iterator for Words<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let Some(left) = &mut self.left else {
            let word = |byte: &u8| !byte.is_ascii_whitespace();
            let from = self.rest.iter().position(word)?;
            let rest = &self.rest[from..];
            let end = rest.iter().position(|byte| !word(byte)).unwrap_or(rest.len());
            self.rest = &rest[end..];
            return Some(&rest[..end]);
        };
        *left = left.checked_sub(1)?;
        // `array` has checked that every word is complete.
        let (word, taken) = bulk(self.rest).ok()??;
        self.rest = &self.rest[taken..];
        Some(word)
    }
}

/// Appends text to a buffer, with line ends replaced by spaces.
struct OneLine<'a>(&'a mut Vec<u8>);

impl fmt::Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let one = |byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.0.extend(text.bytes().map(one));
        Ok(())
    }
}

fn put(to: &mut Vec<u8>, kind: &str, text: fmt::Arguments<'_>) {
    to.extend(kind.as_bytes());
    // Writing to a vector never fails.
    let _ = fmt::write(&mut OneLine(to), text);
    to.extend(b"\r\n");
}

/// Answers with a word, such as `OK`.
pub fn simple(to: &mut Vec<u8>, word: &str) {
    to.push(b'+');
    to.extend(word.as_bytes());
    to.extend(b"\r\n");
}

/// Answers with an error. Its first word, in capitals, is the kind.
pub fn error(to: &mut Vec<u8>, text: fmt::Arguments<'_>) {
    put(to, "-", text);
}

/// Answers with a number.
pub fn integer(to: &mut Vec<u8>, value: i64) {
    put(to, ":", format_args!("{value}"));
}

/// Answers with bytes.
pub fn bytes(to: &mut Vec<u8>, value: &[u8]) {
    put(to, "$", format_args!("{}", value.len()));
    to.extend(value);
    to.extend(b"\r\n");
}

/// Answers with null: there is no value.
pub fn null(to: &mut Vec<u8>) {
    to.extend(b"$-1\r\n");
}

/// Begins an answer that consists of the `count` answers that follow.
pub fn array_of(to: &mut Vec<u8>, count: usize) {
    put(to, "*", format_args!("{count}"));
}

/// Counts the answers in `bytes`, for tests; `None` if one is invalid or incomplete.
pub fn answers(mut bytes: &[u8]) -> Option<usize> {
    // `inner` counts the missing parts of an answer that is counted already.
    let (mut found, mut inner) = (0, 0_usize);
    while let Some(first) = bytes.first() {
        let (text, taken) = line(bytes, usize::MAX)?;
        let parts = match first {
            b'+' | b'-' => 0,
            b':' => number(&text[1..]).map(|_| 0)?,
            b'*' => usize::try_from(number(&text[1..])?).ok()?,
            b'$' if text == b"$-1" => 0,
            b'$' => {
                let length = usize::try_from(number(&text[1..])?).ok()?;
                bytes = bytes.get(length..)?;
                (bytes.get(taken..taken + 2)? == b"\r\n").then_some(())?;
                bytes = &bytes[2..];
                0
            }
            _ => return None,
        };
        bytes = &bytes[taken..];
        match inner.checked_sub(1) {
            Some(left) => inner = left,
            None => found += 1,
        }
        inner += parts;
    }
    (inner == 0).then_some(found)
}

#[cfg(test)]
mod tests;
