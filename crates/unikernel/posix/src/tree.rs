//! A file system in memory: directories, files and symbolic links.
//!
//! Times and owners are not kept; modes are kept, and not checked, as there is one user.

use crate::errno::*;
use crate::Answer;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The number of a node.
pub type Number = usize;

/// The root directory.
pub const ROOT: Number = 0;

/// Types in a mode.
pub const S_IFMT: u32 = 0o170_000;
/// A directory.
pub const S_IFDIR: u32 = 0o040_000;
/// A regular file.
pub const S_IFREG: u32 = 0o100_000;
/// A symbolic link.
pub const S_IFLNK: u32 = 0o120_000;

const MAX_NAME: usize = 255;
const MAX_LINKS: u32 = 40;

type Result<T> = core::result::Result<T, Answer>;
/// The entries of a directory.
type Entries = BTreeMap<Vec<u8>, Number>;

/// What a node is.
#[derive(Debug)]
enum Kind {
    File(Vec<u8>),
    /// The entries, and the directory's parent.
    Directory(Entries, Number),
    Link(Vec<u8>),
}

/// A file, a directory or a link.
#[derive(Debug)]
struct Node {
    kind: Kind,
    mode: u32,
    /// Entries that lead here.
    links: u32,
    /// Open descriptions.
    opens: u32,
}

/// What `stat` tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct About {
    /// The node.
    pub number: Number,
    /// Type and permissions.
    pub mode: u32,
    /// Entries that lead to it.
    pub links: u32,
    /// Bytes.
    pub bytes: u64,
}

/// Where a path leads: its directory, its last name, and the node there.
#[derive(Debug)]
struct Place<'p> {
    directory: Number,
    name: &'p [u8],
    node: Option<Number>,
}

/// All files.
#[derive(Debug)]
pub struct Tree {
    nodes: Vec<Option<Node>>,
}

impl Tree {
    /// Without a root.
    pub const fn empty() -> Self {
        Self { nodes: Vec::new() }
    }

    /// Makes the root and the directories that programs expect.
    pub fn set_up(&mut self) {
        let mode = S_IFDIR | 0o755;
        let root = Node { kind: Kind::Directory(Entries::new(), ROOT), mode, links: 2, opens: 0 };
        self.nodes.push(Some(root));
        for name in ["tmp", "dev"] {
            let _ = self.make_directory(ROOT, name.as_bytes(), 0o777);
        }
    }

    fn node(&self, number: Number) -> Result<&Node> {
        self.nodes.get(number).and_then(Option::as_ref).ok_or(ENOENT)
    }

    fn node_mut(&mut self, number: Number) -> Result<&mut Node> {
        self.nodes.get_mut(number).and_then(Option::as_mut).ok_or(ENOENT)
    }

    fn entries(&self, directory: Number) -> Result<&Entries> {
        match &self.node(directory)?.kind {
            Kind::Directory(entries, _) => Ok(entries),
            _ => Err(ENOTDIR),
        }
    }

    fn entries_mut(&mut self, directory: Number) -> Result<&mut Entries> {
        match &mut self.node_mut(directory)?.kind {
            Kind::Directory(entries, _) => Ok(entries),
            _ => Err(ENOTDIR),
        }
    }

    fn parent(&self, directory: Number) -> Result<Number> {
        match self.node(directory)?.kind {
            Kind::Directory(_, parent) => Ok(parent),
            _ => Err(ENOTDIR),
        }
    }

    /// The place of a path that begins in `from`. The last name's link is followed if `follow`.
    fn place<'p>(
        &self,
        from: Number,
        path: &'p [u8],
        follow: bool,
    ) -> Result<(Place<'p>, Option<Number>)> {
        let mut links = 0;
        let (place, found) = self.walk(from, path, follow, &mut links)?;
        Ok((place, found))
    }

    fn walk<'p>(
        &self,
        from: Number,
        path: &'p [u8],
        follow: bool,
        links: &mut u32,
    ) -> Result<(Place<'p>, Option<Number>)> {
        if path.is_empty() {
            return Err(ENOENT);
        }
        let mut directory = if path[0] == b'/' { ROOT } else { from };
        let names: Vec<&[u8]> =
            path.split(|&byte| byte == b'/').filter(|n| !n.is_empty()).collect();
        let must_be_directory = path.ends_with(b"/");
        let Some((last, before)) = names.split_last() else {
            let place = Place { directory: ROOT, name: b"/", node: Some(ROOT) };
            return Ok((place, Some(ROOT)));
        };
        for name in before {
            let next = self.step(directory, name)?.ok_or(ENOENT)?;
            directory = self.followed(directory, next, links)?;
            self.entries(directory)?;
        }
        let node = self.step(directory, last)?;
        let found = match node {
            Some(node) if follow || must_be_directory => {
                match self.followed(directory, node, links) {
                    Ok(found) => Some(found),
                    Err(ENOENT) => None,
                    Err(error) => return Err(error),
                }
            }
            other => other,
        };
        if must_be_directory && found.is_some_and(|found| self.entries(found).is_err()) {
            return Err(ENOTDIR);
        }
        Ok((Place { directory, name: last, node }, found))
    }

    fn step(&self, directory: Number, name: &[u8]) -> Result<Option<Number>> {
        if name.len() > MAX_NAME {
            return Err(ENAMETOOLONG);
        }
        let entries = self.entries(directory)?;
        Ok(match name {
            b"." => Some(directory),
            b".." => Some(self.parent(directory)?),
            name => entries.get(name).copied(),
        })
    }

    /// Where a node in `directory` leads if it is a link.
    fn followed(&self, directory: Number, node: Number, links: &mut u32) -> Result<Number> {
        let Kind::Link(to) = &self.node(node)?.kind else { return Ok(node) };
        *links += 1;
        if *links > MAX_LINKS {
            return Err(ELOOP);
        }
        self.walk(directory, to, true, links)?.1.ok_or(ENOENT)
    }

    /// The node of a path.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn find(&self, from: Number, path: &[u8], follow: bool) -> Result<Number> {
        self.place(from, path, follow)?.1.ok_or(ENOENT)
    }

    fn add(&mut self, directory: Number, name: &[u8], kind: Kind, mode: u32) -> Result<Number> {
        if [&b"."[..], b".."].contains(&name) {
            return Err(EEXIST);
        }
        let links = if matches!(kind, Kind::Directory(..)) { 2 } else { 1 };
        let node = Node { kind, mode, links, opens: 0 };
        let number = match self.nodes.iter().position(Option::is_none) {
            Some(free) => {
                self.nodes[free] = Some(node);
                free
            }
            None => {
                self.nodes.push(Some(node));
                self.nodes.len() - 1
            }
        };
        self.entries_mut(directory)?.insert(name.into(), number);
        Ok(number)
    }

    /// Opens a file, which is made if it is missing and `create` has its mode: its node.
    ///
    /// # Errors
    ///
    /// It is missing, or there although `exclusive`, or the end of a chain of links.
    pub fn open(
        &mut self,
        from: Number,
        path: &[u8],
        create: Option<u32>,
        exclusive: bool,
        follow: bool,
    ) -> Result<Number> {
        let (place, found) = self.place(from, path, follow && !exclusive)?;
        let number = match (found, create) {
            (Some(_), Some(_)) if exclusive => return Err(EEXIST),
            (Some(found), _) => {
                if matches!(self.node(found)?.kind, Kind::Link(_)) {
                    return Err(ELOOP);
                }
                found
            }
            (None, None) => return Err(ENOENT),
            // The last name is a link that leads nowhere.
            (None, Some(_)) if place.node.is_some() => return Err(ENOENT),
            (None, Some(_)) if path.ends_with(b"/") => return Err(EISDIR),
            (None, Some(mode)) => {
                let (directory, name) = (place.directory, place.name);
                self.add(directory, name, Kind::File(Vec::new()), S_IFREG | mode & 0o7777)?
            }
        };
        self.node_mut(number)?.opens += 1;
        Ok(number)
    }

    /// The end of an open description.
    pub fn close(&mut self, number: Number) {
        if let Ok(node) = self.node_mut(number) {
            node.opens = node.opens.saturating_sub(1);
        }
        self.forget(number);
    }

    /// Removes a node that nothing leads to.
    fn forget(&mut self, number: Number) {
        if self.node(number).is_ok_and(|node| node.links == 0 && node.opens == 0) {
            self.nodes[number] = None;
        }
    }

    /// `mkdir`.
    ///
    /// # Errors
    ///
    /// Its place is taken, or missing.
    pub fn make_directory(&mut self, from: Number, path: &[u8], mode: u32) -> Result<()> {
        let (place, found) = self.place(from, path, false)?;
        if found.or(place.node).is_some() {
            return Err(EEXIST);
        }
        let (directory, name) = (place.directory, place.name);
        let kind = Kind::Directory(Entries::new(), directory);
        self.add(directory, name, kind, S_IFDIR | mode & 0o7777)?;
        self.node_mut(directory)?.links += 1;
        Ok(())
    }

    /// `symlink`.
    ///
    /// # Errors
    ///
    /// Its place is taken, or missing.
    pub fn make_link(&mut self, to: &[u8], from: Number, path: &[u8]) -> Result<()> {
        let (place, found) = self.place(from, path, false)?;
        if found.or(place.node).is_some() {
            return Err(EEXIST);
        }
        let (directory, name) = (place.directory, place.name);
        self.add(directory, name, Kind::Link(to.into()), S_IFLNK | 0o777).map(drop)
    }

    /// `link`.
    ///
    /// # Errors
    ///
    /// The file is missing, or a directory; or the new name is taken.
    pub fn link(&mut self, old: (Number, &[u8]), new: (Number, &[u8]), follow: bool) -> Result<()> {
        let number = self.find(old.0, old.1, follow)?;
        if self.entries(number).is_ok() {
            return Err(EPERM);
        }
        let (place, found) = self.place(new.0, new.1, false)?;
        if found.or(place.node).is_some() {
            return Err(EEXIST);
        }
        self.node_mut(number)?.links += 1;
        self.entries_mut(place.directory)?.insert(place.name.into(), number);
        Ok(())
    }

    /// `unlink`, or `rmdir`.
    ///
    /// # Errors
    ///
    /// It is missing, or of the other kind, or a directory that is not empty.
    pub fn remove(&mut self, from: Number, path: &[u8], directory: bool) -> Result<()> {
        let (place, _) = self.place(from, path, false)?;
        let number = place.node.ok_or(ENOENT)?;
        if place.name == b"." {
            return Err(EINVAL);
        }
        if number == ROOT {
            return Err(EBUSY);
        }
        match (self.entries(number).map(BTreeMap::is_empty), directory) {
            (Ok(_), false) => return Err(EISDIR),
            (Err(_), true) => return Err(ENOTDIR),
            (Ok(false), true) => return Err(ENOTEMPTY),
            _ if place.name == b".." => return Err(EBUSY),
            _ => {}
        }
        self.entries_mut(place.directory)?.remove(place.name);
        if directory {
            self.node_mut(place.directory)?.links -= 1;
            self.node_mut(number)?.links = 0;
        } else {
            self.node_mut(number)?.links -= 1;
        }
        self.forget(number);
        Ok(())
    }

    /// `rename`. With `keep`, an existing file is not replaced.
    ///
    /// # Errors
    ///
    /// The old name is missing, or the new one cannot be replaced.
    pub fn rename(&mut self, old: (Number, &[u8]), new: (Number, &[u8]), keep: bool) -> Result<()> {
        let (old_place, _) = self.place(old.0, old.1, false)?;
        let number = old_place.node.ok_or(ENOENT)?;
        let (new_place, _) = self.place(new.0, new.1, false)?;
        let dots = |name: &[u8]| [&b"."[..], b".."].contains(&name);
        if dots(old_place.name) || dots(new_place.name) {
            return Err(EBUSY);
        }
        let is_directory = self.entries(number).is_ok();
        // A directory cannot move into itself.
        let mut above = new_place.directory;
        while is_directory && above != ROOT {
            if above == number {
                return Err(EINVAL);
            }
            above = self.parent(above)?;
        }
        match new_place.node {
            Some(same) if same == number => return Ok(()),
            Some(_) if keep => return Err(EEXIST),
            Some(there) => match (is_directory, self.entries(there).is_ok()) {
                (true, false) => return Err(ENOTDIR),
                (false, true) => return Err(EISDIR),
                (_, directory) => self.remove(new.0, new.1, directory)?,
            },
            None => {}
        }
        self.entries_mut(old_place.directory)?.remove(old_place.name);
        self.entries_mut(new_place.directory)?.insert(new_place.name.into(), number);
        if let Kind::Directory(_, parent) = &mut self.node_mut(number)?.kind {
            *parent = new_place.directory;
            self.node_mut(old_place.directory)?.links -= 1;
            self.node_mut(new_place.directory)?.links += 1;
        }
        Ok(())
    }

    /// `readlink`.
    ///
    /// # Errors
    ///
    /// It is no link.
    pub fn read_link(&self, from: Number, path: &[u8]) -> Result<&[u8]> {
        let number = self.place(from, path, false)?.0.node.ok_or(ENOENT)?;
        match &self.node(number)?.kind {
            Kind::Link(to) => Ok(to),
            _ => Err(EINVAL),
        }
    }

    /// `stat`.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn about(&self, number: Number) -> Result<About> {
        let node = self.node(number)?;
        let bytes = match &node.kind {
            Kind::File(bytes) | Kind::Link(bytes) => bytes.len() as u64,
            Kind::Directory(entries, _) => entries.len() as u64,
        };
        Ok(About { number, mode: node.mode, links: node.links, bytes })
    }

    /// `chmod`.
    ///
    /// # Errors
    ///
    /// There is no such node.
    pub fn set_mode(&mut self, number: Number, mode: u32) -> Result<()> {
        let node = self.node_mut(number)?;
        node.mode = node.mode & S_IFMT | mode & 0o7777;
        Ok(())
    }

    /// The entry of a directory at a position: its name, its node, and the next position.
    ///
    /// # Errors
    ///
    /// It is no directory.
    pub fn entry(&self, directory: Number, at: usize) -> Result<Option<(&[u8], About)>> {
        let entries = self.entries(directory)?;
        let (name, number) = match at {
            0 => (&b"."[..], directory),
            1 => (&b".."[..], self.parent(directory)?),
            _ => match entries.iter().nth(at - 2) {
                Some((name, number)) => (name.as_slice(), *number),
                None => return Ok(None),
            },
        };
        Ok(Some((name, self.about(number)?)))
    }

    /// The path of a directory.
    ///
    /// # Errors
    ///
    /// It was removed.
    pub fn path(&self, directory: Number) -> Result<Vec<u8>> {
        let mut names: Vec<&[u8]> = Vec::new();
        let mut at = directory;
        while at != ROOT {
            let parent = self.parent(at)?;
            let entry = self.entries(parent)?.iter().find(|(_, number)| **number == at);
            names.push(entry.ok_or(ENOENT)?.0);
            at = parent;
        }
        let mut path = Vec::new();
        for name in names.iter().rev() {
            path.push(b'/');
            path.extend_from_slice(name);
        }
        if path.is_empty() {
            path.push(b'/');
        }
        Ok(path)
    }

    /// The bytes of a file.
    ///
    /// # Errors
    ///
    /// It is a directory.
    pub fn bytes(&self, number: Number) -> Result<&[u8]> {
        match &self.node(number)?.kind {
            Kind::File(bytes) => Ok(bytes),
            _ => Err(EISDIR),
        }
    }

    /// Writes to a file.
    ///
    /// # Errors
    ///
    /// It is a directory, or there is no memory.
    pub fn write(&mut self, number: Number, at: u64, bytes: &[u8]) -> Result<()> {
        let end =
            usize::try_from(at).ok().and_then(|at| at.checked_add(bytes.len())).ok_or(EFBIG)?;
        if end > self.bytes(number)?.len() {
            self.set_size(number, end as u64)?;
        }
        let Kind::File(content) = &mut self.node_mut(number)?.kind else { return Err(EISDIR) };
        content[at as usize..end].copy_from_slice(bytes);
        Ok(())
    }

    /// `ftruncate`.
    ///
    /// # Errors
    ///
    /// It is no file, or there is no memory.
    pub fn set_size(&mut self, number: Number, bytes: u64) -> Result<()> {
        let Kind::File(content) = &mut self.node_mut(number)?.kind else { return Err(EINVAL) };
        let bytes = usize::try_from(bytes).map_err(|_| EFBIG)?;
        if bytes > content.len() {
            content.try_reserve(bytes - content.len()).map_err(|_| ENOSPC)?;
        }
        content.resize(bytes, 0);
        if bytes < content.capacity() / 4 {
            content.shrink_to_fit();
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
