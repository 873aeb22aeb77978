//! Files in images of file systems.
//!
//! | module | contents |
//! |---|---|
//! | [`place`] | `IMAGE@PARTITION:/PATH`, or a path of the host |
//! | [`kernel`] | a kernel, in this process or confined |
//! | [`session`] | a kernel with the images of a command, mounted |
//! | [`walk`] | folders by descriptors, safe from names and links |
//! | [`failure`] | errors, and whether a command goes on after one |
//! | [`attributes`] | owner, rights, times and extended attributes |
//! | [`copy`] | files and folders from one kernel to another |
//! | [`attach`] | which file system a disk has |
//! | [`written`] | whether an image is still what its name names |
//! | [`output`] | standard output |
//! | [`progress`] | how far a command is, on a terminal |
//! | [`list`] | what is printed about files |
//! | [`archive`] | a tar archive of a folder |
//! | [`mount`] | a file system in a folder of the host |

pub mod archive;
pub mod attach;
pub mod attributes;
pub mod copy;
pub mod failure;
pub mod kernel;
pub mod list;
pub mod mount;
pub mod output;
pub mod place;
pub mod progress;
pub mod session;
pub mod walk;
pub mod written;

use crate::cli::Operation;
use crate::interrupt;
use anyhow::{ensure, Context, Result};
use copy::{operands, Keep};
use failure::{failed, Tolerated};
use kernel::Boot;
use liblinux::calls::Calls;
use place::Place;
use session::Session;
use std::ffi::CString;
use std::path::Path;
use walk::Folder;

/// Runs one command.
pub fn execute(boot: &Boot, operation: Operation) -> Result<()> {
    let places: Vec<&Place> = match &operation {
        Operation::Ls { path, .. }
        | Operation::Stat { path }
        | Operation::Find { path, .. }
        | Operation::Tar { path, .. }
        | Operation::Df { path, .. } => vec![path],
        Operation::Cat { paths }
        | Operation::Cp { paths, .. }
        | Operation::Rm { paths, .. }
        | Operation::Mkdir { paths, .. } => paths.iter().collect(),
        Operation::Mount(what) => return mount::run(boot, what),
    };
    let copies = matches!(operation, Operation::Cp { .. });
    if let Some(place) = places.iter().find(|place| place.image().is_none()) {
        ensure!(copies, "{place} is not in an image: write IMAGE:/PATH");
    }
    ensure!(
        places.iter().any(|place| place.image().is_some()),
        "none of the paths is in an image: write IMAGE:/PATH"
    );
    let writes = |place: &Place| match &operation {
        Operation::Cp { paths, .. } => {
            paths.last().is_some_and(|last| last.image() == place.image())
        }
        Operation::Rm { .. } | Operation::Mkdir { .. } => true,
        Operation::Tar { extract, .. } => *extract,
        _ => false,
    };
    let mut session = Session::new(boot, &places, writes)?;
    let done = perform(&session, &operation).and(output::flush());
    // The images' errors count even if the command noticed none.
    let closed = session.close();
    // If the kernel died, or the host had an error, the errors of calls say less.
    session.died()?;
    closed.after(done)
}

fn perform(session: &Session, operation: &Operation) -> Result<()> {
    match operation {
        Operation::Ls { long, path, .. } => list::folder(session.calls(path), path.path(), *long),
        Operation::Cat { paths } => {
            each(session, paths, "shown", |path| cat(session.calls(path), path.path()))
        }
        Operation::Cp { recursive, archive, preserve, no_clobber, verbose, paths, .. } => {
            let keep = Keep {
                recursive: *recursive || *archive,
                archive: *archive,
                owner: *archive || *preserve,
                there: *no_clobber,
                verbose: *verbose,
            };
            operands::copy(session, paths, keep)
        }
        Operation::Rm { recursive, force, paths } => each(session, paths, "removed", |path| {
            let removed = parent(session, path)
                .and_then(|(folder, name)| walk::remove(&folder, &name, *recursive));
            match removed {
                Err(error) if *force && failure::is_missing(&error) => Ok(()),
                removed => removed,
            }
        }),
        Operation::Mkdir { parents, paths } => {
            each(session, paths, "made", |path| make(session.calls(path), path.path(), *parents))
        }
        Operation::Stat { path } => list::stat(session.calls(path), path.path()),
        Operation::Find { name, kind, print0, path } => {
            let wanted = list::Wanted { name: name.clone(), kind: *kind, zero: *print0 };
            list::find(session.calls(path), path.path(), &wanted)
        }
        Operation::Tar { extract: true, file, path, .. } => {
            archive::extract(session, path, file.as_deref())
        }
        Operation::Tar { file, path, .. } => archive::create(session, path, file.as_deref()),
        Operation::Mount(_) => anyhow::bail!("a mount has a session of its own"),
        Operation::Df { human, path, .. } => list::size(session.calls(path), path.path(), *human),
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

/// The folder that a path is in, and its name there.
fn parent<'a>(session: &'a Session, place: &Place) -> Result<(Folder<'a>, CString)> {
    let path = place.path();
    let name = path.file_name().with_context(|| format!("{place} has no name of its own"))?;
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
