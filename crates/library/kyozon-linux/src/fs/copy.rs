//! Files and folders from one kernel to another.
//!
//! | module | contents |
//! |---|---|
//! | [`operands`] | which entry the paths of a command name, and where its copy goes |
//! | `stream` | the bytes of a file; holes stay holes |
//! | `tree` | folders with everything in them |

pub mod operands;
mod stream;
mod tree;

use super::attributes::{Attributes, Lost, Owner};
use super::failure::{failed, Tolerated};
use super::output;
use super::progress::Progress;
use super::walk::{c_string, is_folder, remove, Folder};
use crate::interrupt;
use anyhow::{bail, ensure, Result};
use liblinux::calls::CWD;
use liblinux::Errno;
use std::collections::{HashMap, HashSet};
use std::ffi::{CStr, CString};
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::ptr;
use stream::Goes;
use tree::Made;

/// What a copy keeps.
#[derive(Debug, Clone, Copy)]
pub struct Keep {
    /// Folders are copied with everything in them.
    pub recursive: bool,
    /// Also owners, extended attributes, hard links, device nodes and the set-user-id bits.
    pub archive: bool,
    /// Also owners and the set-user-id bits.
    pub owner: bool,
    /// Also what has the name of a copy: it is not replaced.
    pub there: bool,
    /// Each copy is printed.
    pub verbose: bool,
}

/// What a file is, on one kernel.
type Identity = (u64, u64);

fn identity(stat: &libc::stat) -> Identity {
    (stat.st_dev, stat.st_ino)
}

/// How a command comes to an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Named {
    /// It is in a folder that is copied.
    ByFolder,
    /// The user named it.
    AsEntry,
    /// The user named it, and means the file to which it leads.
    AsFile,
}

fn is_link(stat: &libc::stat) -> bool {
    stat.st_mode & libc::S_IFMT == libc::S_IFLNK
}

/// Whether it is a device, a pipe or a socket.
fn is_special(stat: &libc::stat) -> bool {
    !matches!(stat.st_mode & libc::S_IFMT, libc::S_IFREG | libc::S_IFLNK | libc::S_IFDIR)
}

/// An entry, and where its copy goes.
struct Job<'x> {
    from: &'x Folder<'x>,
    name: &'x CStr,
    to: &'x Folder<'x>,
    new: &'x CStr,
    /// The entry's own status, or that of the file to which it leads.
    stat: libc::stat,
    /// The user named it.
    operand: bool,
    /// A link is followed.
    follow: bool,
}

impl Job<'_> {
    fn source(&self) -> PathBuf {
        self.from.join(self.name)
    }

    fn target(&self) -> PathBuf {
        self.to.join(self.new)
    }

    /// Whether both sides are of one kernel.
    fn one_kernel(&self) -> bool {
        ptr::addr_eq(self.from.calls, self.to.calls)
    }
}

/// Copies, and counts what it copied.
pub struct Copier {
    keep: Keep,
    /// The path of the first copy of each file with several names.
    links: HashMap<Identity, PathBuf>,
    /// The folders that lead to the target, which must not be copied into it.
    above: Vec<Identity>,
    /// Files of the host that are images of this command.
    images: HashSet<Identity>,
    progress: Progress,
    lost: Lost,
    tolerated: Tolerated,
}

impl Copier {
    /// A copier that has copied nothing. It does not replace `images`, nor copy them while it changes one.
    pub fn new(keep: Keep, images: HashSet<Identity>) -> Self {
        Self {
            keep,
            links: HashMap::new(),
            above: Vec::new(),
            images,
            progress: Progress::start(),
            lost: Lost::default(),
            tolerated: Tolerated::default(),
        }
    }

    /// Copies an entry that is no folder. Makes the copy of a folder, and returns both: their contents come next.
    fn begin<'a>(
        &mut self,
        from: &Folder<'a>,
        name: &CStr,
        to: &Folder<'a>,
        new: &CStr,
        named: Named,
    ) -> Result<Option<(Folder<'a>, Folder<'a>, Made)>> {
        interrupt::check()?;
        let follow = named == Named::AsFile;
        let operand = named != Named::ByFolder;
        let stat = if follow { from.stat_target(name)? } else { from.stat(name)? };
        let job = Job { from, name, to, new, stat, operand, follow };
        if !is_folder(&stat) {
            self.file(&job)?;
            self.progress.file();
            return Ok(None);
        }
        ensure!(self.keep.recursive, "{} is a folder: use -r", job.source().display());
        let (source, target) = self.folder(&job, from, to)?;
        self.progress.file();
        let made = Made { name: name.into(), new: new.into(), stat, operand, follow };
        Ok(Some((source, target, made)))
    }

    /// Makes the copy of a folder, and opens both.
    fn folder<'a>(
        &self,
        job: &Job<'_>,
        from: &Folder<'a>,
        to: &Folder<'a>,
    ) -> Result<(Folder<'a>, Folder<'a>)> {
        let Job { name, new, follow, stat, .. } = *job;
        let inside_itself = job.one_kernel() && self.above.contains(&identity(&stat));
        ensure!(!inside_itself, "{} cannot be copied into itself", job.source().display());
        match to.calls.mkdir_at(to.fd, new, 0o700) {
            Err(error) if error.0 != libc::EEXIST => {
                return Err(failed("make", &job.target())(error))
            }
            _ => (),
        }
        let target = to.enter(new)?;
        let source = if follow { from.follow(name)? } else { from.enter(name)? };
        Ok((source, target))
    }

    /// Decides what becomes of an entry that has the copy's name, and removes it if the copy replaces it.
    fn make_room(&self, job: &Job<'_>, regular: bool) -> Result<Goes> {
        let Job { from, name, to, new, stat, .. } = *job;
        let there = match to.calls.stat_at(to.fd, new, libc::AT_SYMLINK_NOFOLLOW) {
            // A folder cannot be replaced: the call that makes the copy says so.
            Ok(there) if !is_folder(&there) => there,
            _ => return Ok(Goes::New),
        };
        let leads_to = to.stat_target(new).ok().filter(|target| !is_folder(target));
        // As cp of GNU writes through a link or device that the user names: /dev/stdout is one.
        let named = job.operand && regular;
        let through = leads_to.filter(|target| named && (is_link(&there) || is_special(target)));
        if job.one_kernel() {
            // The entry that is copied may be a link to the one that would be removed.
            let leads_there =
                from.stat_target(name).is_ok_and(|target| identity(&target) == identity(&there));
            let same = identity(&there) == identity(&stat)
                || through.is_some_and(|target| identity(&target) == identity(&stat));
            ensure!(
                !same && !leads_there,
                "{} and {} are the same file",
                job.source().display(),
                job.target().display()
            );
        }
        if to.is_host() {
            let target = leads_to.unwrap_or(there);
            let image = self.images.contains(&identity(&target));
            ensure!(!image, "{} is an image of this command", job.target().display());
            if through.is_none() && is_special(&there) {
                bail!("{} is there and is no file: remove it first", job.target().display());
            }
        }
        if through.is_some() {
            return Ok(Goes::Through);
        }
        remove(to, new, false)?;
        Ok(Goes::New)
    }

    fn file(&mut self, job: &Job<'_>) -> Result<()> {
        let Job { from, name, to, new, stat, .. } = *job;
        let target = job.target();
        let kind = stat.st_mode & libc::S_IFMT;
        // Without -r, a pipe or device stands for what can be read from it.
        let regular = kind == libc::S_IFREG || !self.keep.recursive;
        let image = from.is_host() && !to.is_host() && self.images.contains(&identity(&stat));
        ensure!(!image, "{} is an image of this command", job.source().display());
        if !regular && matches!(kind, libc::S_IFCHR | libc::S_IFBLK) && !self.keep.archive {
            bail!("{} is a device: use -a to copy the node", job.source().display());
        }
        let exists = || to.calls.stat_at(to.fd, new, libc::AT_SYMLINK_NOFOLLOW).is_ok();
        if self.keep.there && exists() {
            return Ok(());
        }
        let goes = self.make_room(job, regular)?;
        if self.keep.verbose {
            let [source, target] = [job.source(), target.clone()]
                .map(|path| output::name(path.as_os_str().as_bytes()));
            output::write(&[&source[..], b" -> ", &target[..], b"\n"].concat())?;
        }
        let several = self.keep.archive && stat.st_nlink > 1;
        if several {
            if let Some(first) = self.links.get(&identity(&stat)) {
                return to
                    .calls
                    .link_at(CWD, &c_string(first.as_os_str())?, to.fd, new)
                    .map_err(failed("link", &target));
            }
        }
        match kind {
            _ if regular => {
                stream::copy(job, goes, &mut self.progress)?;
                // What is there keeps its attributes. A pipe or device has none that a file could have.
                if goes == Goes::Through || kind != libc::S_IFREG {
                    return Ok(());
                }
            }
            libc::S_IFLNK => {
                let link = from
                    .calls
                    .read_link_at(from.fd, name)
                    .map_err(failed("read", &job.source()))?;
                let link = CString::new(link)?;
                to.calls.symlink_at(&link, to.fd, new).map_err(failed("make", &target))?;
            }
            kind => {
                let device =
                    if matches!(kind, libc::S_IFCHR | libc::S_IFBLK) { stat.st_rdev } else { 0 };
                to.calls
                    .mknod_at(to.fd, new, kind | 0o600, device)
                    .map_err(failed("make", &target))?;
            }
        }
        if several {
            self.links.insert(identity(&stat), target);
        }
        self.attributes(job)
    }

    fn attributes(&mut self, job: &Job<'_>) -> Result<()> {
        // The attributes of a link that was followed are its target's, which has another name.
        let archive = self.keep.archive && !job.follow;
        let mut attributes = Attributes::read(job.from, job.name, &job.stat, archive)?;
        if self.keep.owner {
            attributes.owner = Some(Owner { user: job.stat.st_uid, group: job.stat.st_gid });
        }
        attributes.set(job.to, job.new, &mut self.lost)
    }

    /// Names what could not be kept. An error if something could not be copied.
    pub fn finish(self) -> Result<()> {
        drop(self.progress);
        let lost = self.lost.end();
        self.tolerated.end("copied").and(lost)
    }
}

/// The folders that lead to a folder, and the folder itself.
fn ancestors(folder: &Folder<'_>) -> Result<Vec<Identity>> {
    let mut all: Vec<Identity> = Vec::new();
    let mut at = folder.again()?;
    loop {
        let stat = at.stat(c".")?;
        // The root directory is its own parent.
        if all.last() == Some(&identity(&stat)) {
            return Ok(all);
        }
        all.push(identity(&stat));
        at = match at.enter(c"..") {
            Ok(parent) => parent,
            // A folder of the host above which the user may not look is none that the user copies.
            Err(_) if folder.is_host() => return Ok(all),
            Err(error) => return Err(error),
        };
    }
}

/// What [`Errno`] says of an entry that does not exist.
fn is_missing(errno: Errno) -> bool {
    matches!(errno.0, libc::ENOENT | libc::ENOTDIR)
}
