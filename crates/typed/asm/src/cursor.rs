//! Reads the words of a directive.

use crate::error::Complaint;

/// The part of a line that was not read yet.
#[derive(Clone, Copy)]
pub(crate) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    /// All of a directive's operands.
    pub fn new(text: &'a str) -> Self {
        Cursor { rest: text.trim() }
    }

    /// Whether nothing follows.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// All that follows.
    pub fn rest(&self) -> &'a str {
        self.rest
    }

    /// Takes this text if it follows.
    pub fn take(&mut self, text: &str) -> bool {
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest.trim_start();
                true
            }
            None => false,
        }
    }

    /// Takes this word if it follows as a whole.
    pub fn take_word(&mut self, word: &str) -> bool {
        let mut next = *self;
        let found = next.word() == Some(word);
        if found {
            *self = next;
        }
        found
    }

    /// Takes this text, which must follow.
    pub fn need(&mut self, text: &str) -> Result<(), Complaint> {
        if self.take(text) {
            return Ok(());
        }
        Err(format!("expected `{text}`, found {}", self.found()))
    }

    /// Takes a word: of letters, digits, `_`, `.` and `$`.
    pub fn word(&mut self) -> Option<&'a str> {
        let is_word = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$');
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        if word.is_empty() {
            return None;
        }
        self.rest = rest.trim_start();
        Some(word)
    }

    /// Takes a name, which must follow.
    pub fn name(&mut self, what: &str) -> Result<&'a str, Complaint> {
        let before = *self;
        match self.word() {
            Some(word) if !word.starts_with(|c: char| c.is_ascii_digit()) => Ok(word),
            _ => Err(format!("expected {what}, found {}", before.found())),
        }
    }

    /// Takes a number, decimal or hexadecimal, which must follow.
    pub fn number(&mut self) -> Result<u64, Complaint> {
        let before = *self;
        let parsed = self.word().and_then(|word| match word.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16).ok(),
            None => word.parse().ok(),
        });
        parsed.ok_or_else(|| format!("expected a number, found {}", before.found()))
    }

    /// Nothing may follow.
    pub fn end(&self) -> Result<(), Complaint> {
        if self.is_empty() {
            return Ok(());
        }
        Err(format!("expected the end of the line, found {}", self.found()))
    }

    fn found(&self) -> String {
        if self.is_empty() {
            "the end of the line".into()
        } else {
            format!("`{}`", self.rest)
        }
    }
}
