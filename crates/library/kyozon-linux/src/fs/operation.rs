//! The operations: which files they have, and what they do.

use super::copy::operands::{self, ends_with_dot};
use super::copy::Keep;
use super::failure::{self, failed, Tolerated};
use super::place::{Image, Place};
use super::session::Session;
use super::walk::{self, Folder};
use super::{archive, list, output};
use crate::cli::Operation;
use crate::interrupt;
use anyhow::{bail, ensure, Context, Result};
use liblinux::calls::Calls;
use std::ffi::CString;
use std::path::Path;

impl Operation {
    /// The places that it names.
    fn places(&self) -> Vec<&Place> {
        match self {
            Self::Ls { path, .. }
            | Self::Stat { path }
            | Self::Find { path, .. }
            | Self::Tar { path, .. }
            | Self::Df { path, .. } => vec![path],
            Self::Cat { paths }
            | Self::Cp { paths, .. }
            | Self::Rm { paths, .. }
            | Self::Mkdir { paths, .. } => paths.iter().collect(),
            Self::Mount(_) | Self::Batch(_) => Vec::new(),
        }
    }

    /// Gives an image to the places that name none: see [`Place::complete`].
    pub fn complete(&mut self, image: Option<&Image>) -> Result<()> {
        match self {
            Self::Ls { path, .. }
            | Self::Stat { path }
            | Self::Find { path, .. }
            | Self::Tar { path, .. }
            | Self::Df { path, .. } => path.complete(image),
            Self::Cat { paths }
            | Self::Cp { paths, .. }
            | Self::Rm { paths, .. }
            | Self::Mkdir { paths, .. } => {
                paths.iter_mut().try_for_each(|path| path.complete(image))
            }
            Self::Mount(_) | Self::Batch(_) => Ok(()),
        }
    }

    /// An error if its places are not where they have to be.
    pub fn check(&self) -> Result<()> {
        let copies = matches!(self, Self::Cp { .. });
        let places = self.places();
        if let Some(place) = places.iter().find(|place| place.image().is_none()) {
            ensure!(copies, "{place} is not in an image: write IMAGE:/PATH");
        }
        ensure!(
            places.iter().any(|place| place.image().is_some()),
            "none of the paths is in an image: write IMAGE:/PATH"
        );
        Ok(())
    }

    /// The places that it names, and whether it writes to their images.
    pub fn uses(&self) -> Vec<(&Place, bool)> {
        let places = self.places();
        let last = places.len().saturating_sub(1);
        let writes = |number| match self {
            Self::Cp { .. } => number == last,
            Self::Rm { .. } | Self::Mkdir { .. } => true,
            Self::Tar { extract, .. } => *extract,
            _ => false,
        };
        places.into_iter().enumerate().map(|(number, place)| (place, writes(number))).collect()
    }

    /// Does it.
    pub fn perform(&self, session: &Session) -> Result<()> {
        match self {
            Self::Ls { long, path, .. } => list::folder(session.calls(path), path.path(), *long),
            Self::Cat { paths } => {
                each(session, paths, "shown", |path| cat(session.calls(path), path.path()))
            }
            Self::Cp { recursive, archive, preserve, no_clobber, verbose, paths, .. } => {
                let keep = Keep {
                    recursive: *recursive || *archive,
                    archive: *archive,
                    owner: *archive || *preserve,
                    there: *no_clobber,
                    verbose: *verbose,
                };
                operands::copy(session, paths, keep)
            }
            Self::Rm { recursive, force, paths } => each(session, paths, "removed", |path| {
                let removed = parent(session, path)
                    .and_then(|(folder, name)| walk::remove(&folder, &name, *recursive));
                match removed {
                    Err(error) if *force && failure::is_missing(&error) => Ok(()),
                    removed => removed,
                }
            }),
            Self::Mkdir { parents, paths } => each(session, paths, "made", |path| {
                make(session.calls(path), path.path(), *parents)
            }),
            Self::Stat { path } => list::stat(session.calls(path), path.path()),
            Self::Find { name, kind, print0, path } => {
                let wanted = list::Wanted { name: name.clone(), kind: *kind, zero: *print0 };
                list::find(session.calls(path), path.path(), &wanted)
            }
            Self::Tar { extract: true, file, path, .. } => {
                archive::extract(session, path, file.as_deref())
            }
            Self::Tar { file, path, .. } => archive::create(session, path, file.as_deref()),
            Self::Mount(_) | Self::Batch(_) => bail!("it has a session of its own"),
            Self::Df { human, path, .. } => list::size(session.calls(path), path.path(), *human),
        }
    }
}

/// Does something with each path. With several, an error with one of them does not keep the others from it.
fn each(
    session: &Session,
    paths: &[Place],
    what: &str,
    act: impl Fn(&Place) -> Result<()>,
) -> Result<()> {
    if let [path] = paths {
        return act(path);
    }
    let mut tolerated = Tolerated::default();
    for path in paths {
        tolerated.pass(act(path), &[session.calls(path)])?;
    }
    tolerated.end(what)
}

/// The folder that a path is in, and its name there. As for rm of GNU, `d/.` is not a name of the folder `d`.
fn parent<'a>(session: &'a Session, place: &Place) -> Result<(Folder<'a>, CString)> {
    let path = place.path();
    let name = path.file_name().filter(|_| !ends_with_dot(path));
    let name = name.with_context(|| format!("{place} has no name of its own"))?;
    let folder = Folder::open(session.calls(place), path.parent().unwrap_or(Path::new(".")))?;
    Ok((folder, walk::c_string(name)?))
}

fn cat(calls: &dyn Calls, path: &Path) -> Result<()> {
    let file = calls.open(path, libc::O_RDONLY, 0).map_err(failed("open", path))?;
    let mut buffer = vec![0; 1 << 20];
    loop {
        interrupt::check()?;
        match calls.read(file, &mut buffer).map_err(failed("read", path))? {
            0 => break,
            bytes => output::write(&buffer[..bytes])?,
        }
    }
    calls.close(file).map_err(failed("close", path))
}

fn make(calls: &dyn Calls, path: &Path, parents: bool) -> Result<()> {
    if !parents {
        return calls.mkdir(path, 0o777).map_err(failed("make", path));
    }
    let mut all: Vec<&Path> = path.ancestors().collect();
    all.reverse();
    for path in all {
        match calls.mkdir(path, 0o777) {
            Err(error) if error.0 != libc::EEXIST => return Err(failed("make", path)(error)),
            _ => (),
        }
    }
    ensure!(is_folder(calls, path), "{} exists and is not a folder", path.display());
    Ok(())
}

fn is_folder(calls: &dyn Calls, path: &Path) -> bool {
    calls.stat(path).is_ok_and(|stat| stat.st_mode & libc::S_IFMT == libc::S_IFDIR)
}
