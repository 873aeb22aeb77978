//! Why figures cannot be reported.

use std::fmt::{self, Display, Formatter};
use std::io;
use std::path::{Path, PathBuf};

/// The result of this crate's functions.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why figures cannot be reported. Displayed, each is one line.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// There are no samples to summarise.
    NoSamples,
    /// A sample that `f64` does not hold.
    Sample {
        /// Its position among the samples, from 0.
        index: usize,
    },
    /// Samples of a row that cannot be summarised.
    Row {
        /// Name of the row.
        name: String,
        /// What is wrong with the samples.
        error: Box<Self>,
    },
    /// Printed samples that do not have the expected form.
    Text(String),
    /// A field that breaks a rule.
    Field {
        /// The field's path in its file, such as `rows[0].median`.
        field: String,
        /// The rule that it breaks.
        problem: String,
    },
    /// A file's text is not the JSON or TOML that it should be: the parser's message.
    Syntax(String),
    /// A file whose contents are invalid.
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong in it.
        error: Box<Self>,
    },
    /// A file or folder that cannot be read or written.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
}

impl Display for Error {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoSamples => write!(f, "no samples"),
            Self::Sample { index } => write!(f, "sample {index} is not finite or is above 2^53"),
            Self::Row { name, error } => write!(f, "row `{name}`: {error}"),
            Self::Field { field, problem } => write!(f, "{field}: {problem}"),
            Self::Text(message) | Self::Syntax(message) => write!(f, "{message}"),
            Self::File { path, error } => write!(f, "{}: {error}", path.display()),
            Self::Io { path, error } => write!(f, "{}: {error}", path.display()),
        }
    }
}

// No `source`: `Display` shows the whole chain in its one line.
impl std::error::Error for Error {}

impl Error {
    pub(crate) fn field(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Field { field: field.into(), problem: problem.into() }
    }

    /// Puts `parent` in front of the path of the field, as in `rows[0].median`.
    #[must_use]
    pub(crate) fn below(self, parent: &str) -> Self {
        match self {
            Self::Field { field, problem } => Self::field(format!("{parent}.{field}"), problem),
            other => other,
        }
    }

    /// Names the file with the invalid contents.
    #[must_use]
    pub(crate) fn in_file(self, path: &Path) -> Self {
        Self::File { path: path.into(), error: Box::new(self) }
    }

    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |error| Self::Io { path: path.into(), error }
    }
}

impl From<serde_json::Error> for Error {
    fn from(error: serde_json::Error) -> Self {
        Self::Syntax(error.to_string())
    }
}

/// An error about `field` unless `rule` holds.
pub(crate) fn require(rule: bool, field: &str, problem: &str) -> Result<()> {
    if rule {
        Ok(())
    } else {
        Err(Error::field(field, problem))
    }
}

/// Text that is neither empty nor longer than a line, as cells and headings need it.
pub(crate) fn one_line(field: &str, text: &str) -> Result<()> {
    require(!text.trim().is_empty(), field, "empty")?;
    require(!text.contains(char::is_control), field, "more than one line")
}
