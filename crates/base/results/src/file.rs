//! Files that are written completely or not at all.

use crate::error::{Error, Result};
use serde::de::DeserializeOwned;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Replaces the contents of `dir/name` by `text`: a reader sees the old file or the new one.
pub(crate) fn write(dir: &Path, name: &str, text: &str) -> Result<PathBuf> {
    let path = dir.join(name);
    // A hidden name, so that no listing takes it for a result; in the same directory, so that the rename is atomic.
    let temporary = dir.join(format!(".{name}.{}.tmp", std::process::id()));
    let written = File::create(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()))
        .and_then(|()| fs::rename(&temporary, &path));
    if let Err(error) = written {
        // The file does not exist if its creation failed.
        let _ = fs::remove_file(&temporary);
        return Err(Error::Io { path, error });
    }
    Ok(path)
}

/// Reads the text of a file.
pub(crate) fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).map_err(Error::io(path))
}

/// The value of a text in TOML. Errors are one line and start with the field, if the text is TOML.
pub(crate) fn from_toml<T: DeserializeOwned>(text: &str) -> Result<T> {
    let message = |error: &toml::de::Error| error.message().replace('\n', ", ");
    let toml =
        toml::Deserializer::parse(text).map_err(|error| Error::field(".", message(&error)))?;
    serde_path_to_error::deserialize(toml)
        .map_err(|error| Error::field(error.path().to_string(), message(error.inner())))
}

/// The names of files in `dir` that end with `suffix`, without it, sorted.
pub(crate) fn stems(dir: &Path, suffix: &str) -> Result<Vec<String>> {
    let mut stems = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::io(dir))? {
        let name = entry.map_err(Error::io(dir))?.file_name();
        // A name that is not UTF-8 is kept: reading its table then fails.
        stems.extend(name.to_string_lossy().strip_suffix(suffix).map(String::from));
    }
    stems.sort();
    Ok(stems)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replaces_and_leaves_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), "b.json", "one").unwrap();
        let path = write(dir.path(), "b.json", "two").unwrap();
        write(dir.path(), "a.json", "").unwrap();
        assert_eq!(read(&path).unwrap(), "two");
        assert_eq!(stems(dir.path(), "").unwrap(), ["a.json", "b.json"]);
        assert_eq!(stems(dir.path(), ".json").unwrap(), ["a", "b"]);
    }

    #[test]
    fn errors_name_the_file() {
        let dir = tempfile::tempdir().unwrap();
        let absent = dir.path().join("absent");
        assert!(write(&absent, "a", "").unwrap_err().to_string().contains("absent/a: "));
        assert!(read(&absent).unwrap_err().to_string().contains("absent: "));
        assert!(stems(&absent, "").unwrap_err().to_string().contains("absent: "));
        // The target is a directory: the rename fails, and the temporary file is removed.
        fs::create_dir(&absent).unwrap();
        assert!(write(dir.path(), "absent", "").is_err());
        assert_eq!(stems(dir.path(), "").unwrap(), ["absent"]);
    }
}
