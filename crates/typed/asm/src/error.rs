//! What is wrong with a source, and where.

use std::fmt;

/// Why a source was not assembled, or a file not disassembled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Name of the source or the file.
    pub name: String,
    /// Line in the source, from 1.
    pub line: Option<u32>,
    /// What is wrong, and what to do.
    pub message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.name, self.message),
            None if self.name.is_empty() => f.write_str(&self.message),
            None => write!(f, "{}: {}", self.name, self.message),
        }
    }
}

impl std::error::Error for Error {}

/// What is wrong in one line.
pub(crate) type Complaint = String;
