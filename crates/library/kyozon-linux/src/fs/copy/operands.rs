//! Which entry each path of a command names, and where its copy goes: as cp of GNU decides it.

use super::{ancestors, identity, is_missing, Copier, Keep, Named};
use crate::fs::failure::failed;
use crate::fs::place::Place;
use crate::fs::session::Session;
use crate::fs::walk::{c_string, is_folder, Folder};
use anyhow::{bail, ensure, Context, Result};
use liblinux::calls::Calls;
use std::collections::HashSet;
use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// An entry that a path names: its folder and its name there. A folder without a name of its own, such as a root, is in
/// itself.
struct Operand<'a> {
    folder: Folder<'a>,
    name: CString,
    /// Its contents are meant, not the entry.
    contents: bool,
    /// The path ends with a slash, so that a link is followed.
    slash: bool,
}

/// Whether a path's last name is `.`, which [`Path`] leaves out.
pub fn ends_with_dot(path: &Path) -> bool {
    let mut bytes = path.as_os_str().as_bytes();
    while let Some(shorter) = bytes.strip_suffix(b"/") {
        bytes = shorter;
    }
    bytes == b"." || bytes.ends_with(b"/.")
}

fn named<'a>(calls: &'a dyn Calls, path: &Path) -> Result<Operand<'a>> {
    let bytes = path.as_os_str().as_bytes();
    match path.file_name().filter(|_| !ends_with_dot(path)) {
        Some(name) => Ok(Operand {
            folder: Folder::open(calls, path.parent().unwrap_or(Path::new(".")))?,
            name: c_string(name)?,
            contents: false,
            slash: bytes.ends_with(b"/"),
        }),
        None => Ok(Operand {
            folder: Folder::open(calls, path)?,
            name: c".".into(),
            contents: true,
            slash: false,
        }),
    }
}

/// Where copies go.
struct Target<'a> {
    place: &'a Place,
    named: Operand<'a>,
    /// The folder that gets the copies, if the path names one.
    whole: Option<Folder<'a>>,
    /// The names that got copies.
    made: HashSet<CString>,
}

/// Copies all paths but the last to the last.
pub fn copy(session: &Session, paths: &[Place], keep: Keep) -> Result<()> {
    let (to, from) = paths.split_last().context("cp needs two paths")?;
    let calls = session.calls(to);
    let into = match calls.stat(to.path()) {
        Ok(stat) => is_folder(&stat),
        Err(errno) if is_missing(errno) => false,
        Err(errno) => return Err(failed("read", to.path())(errno)),
    };
    ensure!(into || from.len() == 1, "{to} is not a folder, so only one file can be copied there");
    let mut target = Target {
        place: to,
        named: named(calls, to.path())?,
        whole: if into { Some(Folder::open(calls, to.path())?) } else { None },
        made: HashSet::new(),
    };
    let mut copier = Copier::new(keep, session.files());
    copier.above = ancestors(target.whole.as_ref().unwrap_or(&target.named.folder))?;
    for place in from {
        let done = one(session, place, &mut target, &mut copier);
        if from.len() == 1 {
            done?;
        } else {
            copier.tolerated.pass(done, &[session.calls(place), calls])?;
        }
    }
    // What is in the page cache reaches the image, or the error is known.
    session.sync(target.whole.as_ref().unwrap_or(&target.named.folder))?;
    copier.finish()
}

fn one(
    session: &Session,
    place: &Place,
    target: &mut Target<'_>,
    copier: &mut Copier,
) -> Result<()> {
    let Operand { folder, name, contents, slash } = named(session.calls(place), place.path())?;
    // A link that the user names stands for its file, unless links are copied as links.
    let follow = slash || !copier.keep.recursive;
    let how = if follow { Named::AsFile } else { Named::AsEntry };
    let stat = if follow { folder.stat_target(&name)? } else { folder.stat(&name)? };
    if is_folder(&stat) {
        ensure!(copier.keep.recursive, "{place} is a folder: use -r");
        if let (true, Some(whole)) = (contents, &target.whole) {
            let itself = std::ptr::addr_eq(folder.calls, whole.calls)
                && copier.above.contains(&identity(&stat));
            ensure!(!itself, "{place} cannot be copied into itself");
            return copier.contents(&folder, whole);
        }
    } else if target.named.slash && target.whole.is_none() {
        bail!("{} is not a folder", target.place);
    }
    let Some(whole) = &target.whole else {
        return copier.entry(&folder, &name, &target.named.folder, &target.named.name, how);
    };
    let twice = !is_folder(&stat) && !target.made.insert(name.clone());
    ensure!(!twice, "{place}: this command has copied another file of that name there");
    copier.entry(&folder, &name, whole, &name, how)
}
