//! Compiled programs of earlier runs, by their contents.
//!
//! What is kept is not trusted: each run checks it. Nothing is ever removed; the folder may be removed at any time.

use std::env;
use std::fs;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::PathBuf;

use kyozon_typed_compiler::BackEnd;
use sha2::{Digest, Sha256};

use super::write;

/// The place of a compiled program.
pub(super) struct Place(PathBuf);

impl Place {
    /// The place for what this compiler makes of a program; none if there is no home or this program is not found.
    pub fn new(wasm: &[u8], back_end: BackEnd<'_>) -> Option<Place> {
        let absolute = |name| env::var_os(name).map(PathBuf::from).filter(|p| p.is_absolute());
        let folder =
            absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))?;
        let compiler = fs::metadata(env::current_exe().ok()?).ok()?;
        let mut hash = Sha256::new();
        hash.update(wasm);
        // Another build of this program, or another back end, makes other code.
        for number in [compiler.len() as i64, compiler.mtime(), compiler.mtime_nsec()] {
            hash.update(number.to_le_bytes());
        }
        hash.update(format!("{back_end:?}"));
        let name: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Some(Place(folder.join("kyozon-typed").join(name)))
    }

    /// What is there.
    pub fn read(&self) -> Option<Vec<u8>> {
        fs::read(&self.0).ok()
    }

    /// Keeps a program, if that is possible. It is compiled again if not.
    pub fn write(&self, file: &[u8]) {
        if let Some(folder) = self.0.parent() {
            let _ = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        }
        let _ = write(&self.0, file);
    }
}
