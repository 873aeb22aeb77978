//! Whether an image is still the file that its name names. Who removes, replaces or truncates an image while a command
//! writes to it loses what the command wrote.

use anyhow::{bail, Context, Result};
use kyozon_devices::disk::Image;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file that is open for writing.
#[derive(Debug)]
pub struct Written {
    name: PathBuf,
    file: File,
    bytes: u64,
}

impl Written {
    /// An image's file.
    pub fn new(name: &Path, image: &Image) -> Result<Self> {
        let file =
            image.as_fd().try_clone_to_owned().with_context(|| name.display().to_string())?;
        Self::of(name, file.into())
    }

    fn of(name: &Path, file: File) -> Result<Self> {
        let status = file.metadata().with_context(|| name.display().to_string())?;
        Ok(Self { name: name.into(), bytes: status.len(), file })
    }

    /// An error if others have changed the file.
    pub fn check(&self) -> Result<()> {
        let name = self.name.display();
        let Ok(status) = self.file.metadata() else { return Ok(()) };
        // A device has no length, and its node may be another one.
        if !status.is_file() {
            return Ok(());
        }
        let now = std::fs::metadata(&self.name);
        if !now.is_ok_and(|now| (now.dev(), now.ino()) == (status.dev(), status.ino())) {
            bail!("{name} was removed or replaced while it was written: what was written is lost");
        }
        if status.len() < self.bytes {
            bail!("{name} was truncated while it was written");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_others_change_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let name = folder.path().join("image");
        let made = |bytes| {
            let file = File::create(&name).unwrap();
            file.set_len(bytes).unwrap();
            Written::of(&name, file).unwrap()
        };
        let words = |written: Written| written.check().unwrap_err().to_string();
        made(1000).check().unwrap();
        // A qcow2 image grows.
        let written = made(1000);
        written.file.set_len(2000).unwrap();
        written.check().unwrap();
        let written = made(1000);
        written.file.set_len(999).unwrap();
        assert!(words(written).ends_with("was truncated while it was written"));
        let written = made(1000);
        fs::remove_file(&name).unwrap();
        assert!(words(written).contains("was removed or replaced"));
        let written = made(1000);
        fs::rename(&name, folder.path().join("other")).unwrap();
        fs::write(&name, "another").unwrap();
        assert!(words(written).contains("was removed or replaced"));
    }
}
