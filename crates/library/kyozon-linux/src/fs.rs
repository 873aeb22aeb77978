//! Files in images of file systems.
//!
//! | module | contents |
//! |---|---|
//! | [`place`] | `IMAGE@PARTITION:/PATH`, or a path of the host |
//! | [`kernel`] | a kernel, in this process or confined |
//! | [`operation`] | the operations: which files they have, and what they do |
//! | [`batch`] | several operations by one kernel |
//! | [`session`] | a kernel with the images of a command, mounted |
//! | [`walk`] | folders by descriptors, safe from names and links |
//! | [`failure`] | errors, and whether a command goes on after one |
//! | [`attributes`] | owner, rights, times and extended attributes |
//! | [`copy`] | files and folders from one kernel to another |
//! | [`attach`], [`ext4`] | which file system a disk has, and whether it has recorded an error |
//! | [`written`] | whether an image is still what its name names |
//! | [`output`] | standard output |
//! | [`progress`] | how far a command is, on a terminal |
//! | [`list`] | what is printed about files |
//! | [`archive`] | a tar archive of a folder |
//! | [`mount`] | a file system in a folder of the host |

pub mod archive;
pub mod attach;
pub mod attributes;
pub mod batch;
pub mod copy;
pub mod ext4;
pub mod failure;
pub mod kernel;
pub mod list;
pub mod mount;
pub mod operation;
pub mod output;
pub mod place;
pub mod progress;
pub mod session;
pub mod walk;
pub mod written;

use crate::cli::Operation;
use anyhow::Result;
use kernel::Boot;
use session::Session;

/// Runs one command.
pub fn execute(boot: &Boot, operation: Operation) -> Result<()> {
    match operation {
        Operation::Mount(what) => return mount::run(boot, &what),
        Operation::Batch(what) => return batch::run(boot, &what),
        _ => (),
    }
    operation.check()?;
    within(boot, &operation.uses(), |session| operation.perform(session))
}

/// Does something with images: boots, mounts, and unmounts them again.
pub(crate) fn within(
    boot: &Boot,
    places: &[(&place::Place, bool)],
    act: impl FnOnce(&Session) -> Result<()>,
) -> Result<()> {
    let mut session = Session::new(boot, places)?;
    let done = act(&session).and(output::flush());
    // The images' errors count even if the command noticed none.
    let closed = session.close();
    // If the kernel died, or the host had an error, the errors of calls say less.
    session.died()?;
    closed.after(done)
}
