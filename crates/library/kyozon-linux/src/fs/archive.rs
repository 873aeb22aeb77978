//! Archives of tar.
//!
//! | module | contents |
//! |---|---|
//! | [`write`] | an archive of a folder |
//! | [`headers`] | the entries of an archive that is read, in any of the usual formats |
//! | [`read`] | an archive into a folder |

pub mod headers;
pub mod read;
pub mod write;

use super::output;
use super::place::Place;
use super::session::Session;
use super::walk::Folder;
use anyhow::{ensure, Context, Result};
use std::fs::File;
use std::io::{self, BufReader, BufWriter, IsTerminal, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Bytes that one call of the host reads or writes.
const BUFFER: usize = 1 << 20;

/// Writes an archive of a folder to a file of the host, or to standard output.
pub fn create(session: &Session, place: &Place, file: Option<&Path>) -> Result<()> {
    let folder = Folder::open(session.calls(place), place.path())?;
    let Some(file) = file.filter(|file| *file != Path::new("-")) else {
        output::exists()?;
        let out = io::stdout().lock();
        ensure!(
            !out.is_terminal(),
            "an archive is not for a terminal: use -f FILE, or redirect it"
        );
        return write::write(&folder, BufWriter::with_capacity(BUFFER, out));
    };
    if let Ok(status) = std::fs::metadata(file) {
        let image = session.files().contains(&(status.dev(), status.ino()));
        ensure!(!image, "{} is an image of this command", file.display());
    }
    let out = File::create(file).with_context(|| file.display().to_string())?;
    let done = write::write(&folder, BufWriter::with_capacity(BUFFER, &out));
    let kept = done.and_then(|()| (&out).flush().with_context(|| file.display().to_string()));
    if kept.is_err() && out.metadata().is_ok_and(|status| status.is_file()) {
        // Nobody takes a part of an archive for all of it.
        let _ = std::fs::remove_file(file);
    }
    kept
}

/// Puts an archive from a file of the host, or from standard input, into a folder.
pub fn extract(session: &Session, place: &Place, file: Option<&Path>) -> Result<()> {
    let folder = Folder::open(session.calls(place), place.path())?;
    let done = match file.filter(|file| *file != Path::new("-")) {
        Some(name) => {
            let file = File::open(name).with_context(|| name.display().to_string())?;
            read::read(&folder, BufReader::with_capacity(BUFFER, file))
        }
        None => kyozon_standard::input().context("standard input").and_then(|()| {
            read::read(&folder, BufReader::with_capacity(BUFFER, io::stdin().lock()))
        }),
    };
    // What was put there is on the disk, also if the archive has an error behind it.
    done.and(session.sync(&folder))
}
