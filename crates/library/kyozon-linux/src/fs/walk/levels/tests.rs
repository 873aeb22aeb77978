use super::super::{remove, HOST};
use super::*;
use std::ffi::CString;
use std::fs;
use std::path::{Path, PathBuf};

/// A chain of folders named `d`, and the last one.
fn chain(top: &Path, depth: usize) -> PathBuf {
    let mut path = top.to_owned();
    for _ in 0..depth {
        path.push("d");
        fs::create_dir(&path).unwrap();
    }
    path
}

/// Goes down to the last folder of a chain. Returns how many folders there are.
fn down(levels: &mut Levels<'static, ()>, top: &Path) -> usize {
    levels.enter(Folder::open(HOST, top).unwrap(), None, ()).unwrap();
    let mut depth = 0;
    while let Some((level, entry)) = levels.next_entry() {
        let inside = level.folder.enter(&entry.name).unwrap();
        levels.enter(inside, None, ()).unwrap();
        depth += 1;
    }
    depth
}

#[test]
fn a_walk_comes_back_through_folders_that_were_closed() {
    let top = tempfile::tempdir().unwrap();
    chain(top.path(), 3 * OPEN);
    let mut levels = Levels::empty();
    assert_eq!(down(&mut levels, top.path()), 3 * OPEN);
    let open = levels.0.iter().filter(|level| level.folder.suspended.is_none()).count();
    assert_eq!(open, OPEN);
    let mut paths = Vec::new();
    while levels.leave().unwrap().is_some() {
        paths.extend(levels.last().map(|level| level.folder.path.clone()));
    }
    assert_eq!(paths.len(), 3 * OPEN);
    assert_eq!(paths.last().unwrap(), top.path());
}

#[test]
fn a_folder_that_was_moved_ends_the_walk() {
    let top = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    chain(top.path(), 3 * OPEN);
    let mut levels = Levels::empty();
    down(&mut levels, top.path());
    fs::rename(top.path().join("d/d/d"), other.path().join("d")).unwrap();
    let error = std::iter::repeat_with(|| levels.leave()).find_map(Result::err).unwrap();
    assert!(error.to_string().ends_with("was moved meanwhile"), "{error}");
    assert!(levels.leave().unwrap().is_none());
}

#[test]
fn deep_folders_are_removed() {
    let top = tempfile::tempdir().unwrap();
    let last = chain(top.path(), 1500);
    fs::write(last.join("file"), "text").unwrap();
    let folder = Folder::open(HOST, top.path()).unwrap();
    remove(&folder, &CString::new("d").unwrap(), true).unwrap();
    assert!(folder.entries().unwrap().is_empty());
}
