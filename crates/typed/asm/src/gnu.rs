//! Runs the GNU assembler.

use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

/// What the GNU assembler said.
pub(crate) struct Refused {
    /// Lines in the source, from 1, and the messages.
    pub errors: Vec<(Option<u32>, String)>,
}

impl From<String> for Refused {
    fn from(message: String) -> Self {
        Refused { errors: vec![(None, message)] }
    }
}

/// The object file of a source.
pub(crate) fn run(source: &str) -> Result<Vec<u8>, Refused> {
    let program = std::env::var("KYOZON_AS").unwrap_or_else(|_| "as".into());
    let directory = Directory::new()?;
    let (input, object) = (directory.0.join("source"), directory.0.join("object"));
    std::fs::write(&input, source).map_err(|error| format!("{}: {error}", input.display()))?;
    let mut command = Command::new(&program);
    command.args(["--64", "-o"]).arg(&object).arg(&input).env("LC_ALL", "C");
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        ErrorKind::NotFound => {
            format!("{program} not found: install binutils, or set KYOZON_AS to a GNU assembler")
        }
        _ => format!("{program} does not start: {error}"),
    })?;
    if !output.status.success() {
        let errors = parse_errors(&String::from_utf8_lossy(&output.stderr));
        if errors.is_empty() {
            return Err(format!("{program} failed: {}", output.status).into());
        }
        return Err(Refused { errors });
    }
    std::fs::read(&object).map_err(|error| format!("{}: {error}", object.display()).into())
}

/// Lines `FILE:LINE: Error: MESSAGE`.
fn parse_errors(text: &str) -> Vec<(Option<u32>, String)> {
    let mut errors = Vec::new();
    for line in text.lines() {
        for kind in [": Error: ", ": Fatal error: "] {
            if let Some((place, message)) = line.split_once(kind) {
                let number = place.rsplit(':').next().and_then(|number| number.parse().ok());
                errors.push((number, message.to_string()));
                break;
            }
        }
    }
    errors
}

/// A directory of its own that is removed at the end.
struct Directory(std::path::PathBuf);

impl Directory {
    fn new() -> Result<Self, String> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("kyozon-asm-{}-{n}", std::process::id()));
        make(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Directory(path))
    }
}

/// Makes a directory that only its owner can enter; one that exists is an error.
fn make(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().mode(0o700).create(path)
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
