//! Commands and answers of the Redis serialization protocol, version 2 (redis.io, "Redis serialization protocol
//! specification").
//!
//! A command is an array of bulk strings, or a line of words. What is read of it are lengths; nothing is copied.

use alloc::vec::Vec;
use core::fmt;

/// Bytes of a command, at most: with lengths and ends of lines.
pub const MOST_BYTES: usize = 64 << 10;
/// Words of a command, at most.
pub const MOST_WORDS: usize = 1024;
/// Bytes of a line with a number, at most.
const MOST_LINE: usize = 32;

/// Why bytes are no command. What stands behind them cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bad {
    /// A number of words that is none, or too high.
    Words,
    /// A number of bytes that is none, or too high.
    Length,
    /// Another byte than `$` before a word.
    Kind(u8),
    /// A word has no end of line behind it.
    End,
    /// The command is longer than [`MOST_BYTES`].
    Long,
}

impl fmt::Display for Bad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Protocol error: ")?;
        match self {
            Self::Words => f.write_str("invalid multibulk length"),
            Self::Length => f.write_str("invalid bulk length"),
            Self::Kind(byte) => write!(f, "expected '$', got '{}'", byte.escape_ascii()),
            Self::End => f.write_str("expected an end of line behind a bulk"),
            Self::Long => write!(f, "a command has at most {MOST_BYTES} bytes"),
        }
    }
}

/// Words of a command, in order.
#[derive(Clone, Debug)]
pub struct Words<'a> {
    rest: &'a [u8],
    /// Words that are left; of a line `None`.
    left: Option<usize>,
}

/// A command, as it stands at the beginning of some bytes.
#[derive(Clone, Debug)]
pub struct Command<'a> {
    /// Its words. Without any it is nothing, and has no answer.
    pub words: Words<'a>,
    /// Bytes of all of it.
    pub bytes: usize,
}

impl Command<'_> {
    /// Whether it has no words.
    pub fn is_empty(&self) -> bool {
        self.words.clone().next().is_none()
    }
}

/// The line at the beginning, and the bytes that it takes, of at most so many.
fn line(bytes: &[u8], most: usize) -> Option<(&[u8], usize)> {
    let end = bytes.iter().take(most).position(|byte| *byte == b'\n')?;
    let line = &bytes[..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// A number as it stands in a line.
fn number(digits: &[u8]) -> Option<i64> {
    let text = core::str::from_utf8(digits).ok()?;
    text.parse().ok().filter(|_| !text.starts_with('+'))
}

/// A line with a number behind its first byte: the number and the bytes that it takes. `None`: there is more to come.
fn count(bytes: &[u8], bad: Bad) -> Result<Option<(i64, usize)>, Bad> {
    match line(bytes, MOST_LINE) {
        Some((line, taken)) => {
            let value = line.get(1..).and_then(number).ok_or(bad)?;
            Ok(Some((value, taken)))
        }
        None if bytes.len() >= MOST_LINE => Err(bad),
        None => Ok(None),
    }
}

/// The word at the beginning, and the bytes that it takes. `None`: there is more to come.
fn bulk(bytes: &[u8]) -> Result<Option<(&[u8], usize)>, Bad> {
    match bytes.first() {
        None => return Ok(None),
        Some(b'$') => {}
        Some(other) => return Err(Bad::Kind(*other)),
    }
    let Some((length, from)) = count(bytes, Bad::Length)? else { return Ok(None) };
    let length = usize::try_from(length).ok().filter(|length| *length <= MOST_BYTES);
    let end = from + length.ok_or(Bad::Length)?;
    match bytes.get(end..end + 2) {
        Some(b"\r\n") => Ok(Some((&bytes[from..end], end + 2))),
        Some(_) => Err(Bad::End),
        None => Ok(None),
    }
}

/// The command at the beginning. `None`: there is more to come.
pub fn parse(bytes: &[u8]) -> Result<Option<Command<'_>>, Bad> {
    let found = match bytes.first() {
        None => return Ok(None),
        Some(b'*') => array(bytes)?,
        Some(_) => line(bytes, MOST_BYTES)
            .map(|(line, bytes)| Command { words: Words { rest: line, left: None }, bytes }),
    };
    match found {
        Some(command) if command.bytes > MOST_BYTES => Err(Bad::Long),
        None if bytes.len() >= MOST_BYTES => Err(Bad::Long),
        found => Ok(found),
    }
}

fn array(bytes: &[u8]) -> Result<Option<Command<'_>>, Bad> {
    let Some((words, from)) = count(bytes, Bad::Words)? else { return Ok(None) };
    // As Redis has it, fewer than none are none.
    let words = usize::try_from(words).unwrap_or(0);
    if words > MOST_WORDS {
        return Err(Bad::Words);
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
        // It was looked at before: every word is there.
        let (word, taken) = bulk(self.rest).ok()??;
        self.rest = &self.rest[taken..];
        Some(word)
    }
}

/// Text to the end of some bytes, on one line.
struct OneLine<'a>(&'a mut Vec<u8>);

impl fmt::Write for OneLine<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let one = |byte| if byte == b'\r' || byte == b'\n' { b' ' } else { byte };
        self.0.extend(text.bytes().map(one));
        Ok(())
    }
}

fn put(to: &mut Vec<u8>, kind: &str, what: fmt::Arguments<'_>) {
    to.extend(kind.as_bytes());
    // Bytes take all text.
    let _ = fmt::write(&mut OneLine(to), what);
    to.extend(b"\r\n");
}

/// Answers with a word, such as `OK`.
pub fn simple(to: &mut Vec<u8>, word: &str) {
    to.push(b'+');
    to.extend(word.as_bytes());
    to.extend(b"\r\n");
}

/// Answers with an error. Its first word, in capitals, says of what kind.
pub fn error(to: &mut Vec<u8>, what: fmt::Arguments<'_>) {
    put(to, "-", what);
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

/// Answers that there is nothing.
pub fn nothing(to: &mut Vec<u8>) {
    to.extend(b"$-1\r\n");
}

/// Answers with so many answers, which follow.
pub fn array_of(to: &mut Vec<u8>, count: usize) {
    put(to, "*", format_args!("{count}"));
}

/// How many answers these bytes are; `None` where they are not, or not all of the last. For tests.
pub fn answers(mut bytes: &[u8]) -> Option<usize> {
    // Answers that are still to come, each as part of one that is counted already.
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
