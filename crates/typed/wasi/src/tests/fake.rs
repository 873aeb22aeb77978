//! A host in memory. Others can change its files in the middle of a call, and any operation can be made to fail.

use std::boxed::Box;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::vec;
use std::vec::Vec;

use crate::host::{Direction, DirectoryEntry, Host, Open, Ready, Status, Time};
use crate::memory::{Buffer, Memory};
use crate::types::{Advice, Clock, Errno, FdFlags, FileType, ReceiveFlags, ShutdownFlags, Whence};

#[derive(Clone, Debug)]
pub struct Node {
    pub kind: FileType,
    /// Contents; the target of a link; what a socket or pipe will receive.
    pub data: Vec<u8>,
    pub entries: BTreeMap<Vec<u8>, usize>,
    pub accessed: u64,
    pub modified: u64,
}

/// All files. Node 0 is the directory that programs get; node 1 is outside of it.
#[derive(Default)]
pub struct Files {
    pub nodes: Vec<Node>,
    /// Open handles.
    pub open: usize,
    /// What was done besides changes of nodes.
    pub log: Vec<std::string::String>,
}

/// What others do to the files.
pub type Change = Box<dyn FnOnce(&mut Files)>;

pub struct Handle {
    files: Rc<RefCell<Files>>,
    pub node: usize,
    offset: Cell<u64>,
    append: Cell<bool>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.files.borrow_mut().open -= 1;
    }
}

pub struct Fake {
    pub files: Rc<RefCell<Files>>,
    /// Operations until the change is made.
    pub change: Option<(usize, Change)>,
    /// Operations until one fails, with this error.
    pub fail: Option<(usize, Errno)>,
    pub now: u64,
    /// Datagrams are cut off.
    pub cut: bool,
}

impl Fake {
    pub fn new() -> Fake {
        let mut files = Files::default();
        files.add(FileType::Directory, b"");
        files.add(FileType::Directory, b"");
        let secret = files.add(FileType::RegularFile, b"secret");
        files.nodes[1].entries.insert(b"f".to_vec(), secret);
        let files = Rc::new(RefCell::new(files));
        Fake { files, change: None, fail: None, now: 1000, cut: false }
    }

    pub fn handle(&self, node: usize) -> Handle {
        self.files.borrow_mut().open += 1;
        let files = Rc::clone(&self.files);
        Handle { files, node, offset: Cell::new(0), append: Cell::new(false) }
    }

    /// Begins an operation.
    fn step(&mut self) -> Result<(), Errno> {
        if let Some((left, change)) = self.change.take() {
            match left.checked_sub(1) {
                None => change(&mut self.files.borrow_mut()),
                Some(left) => self.change = Some((left, change)),
            }
        }
        match self.fail {
            Some((0, error)) => Err(error),
            Some((left, error)) => {
                self.fail = Some((left - 1, error));
                Ok(())
            }
            None => Ok(()),
        }
    }

    fn log(&self, line: impl Into<std::string::String>) {
        self.files.borrow_mut().log.push(line.into());
    }

    fn times(&self, node: usize, accessed: Time, modified: Time) {
        let mut files = self.files.borrow_mut();
        let value = |time, old| match time {
            Time::Keep => old,
            Time::Now => self.now,
            Time::At(time) => time,
        };
        let node = &mut files.nodes[node];
        node.accessed = value(accessed, node.accessed);
        node.modified = value(modified, node.modified);
    }

    fn status_of(&self, node: usize) -> Status {
        let node_ref = &self.files.borrow().nodes[node];
        Status {
            device: 7,
            inode: node as u64,
            kind: node_ref.kind,
            links: 1,
            size: node_ref.data.len() as u64,
            accessed: node_ref.accessed,
            modified: node_ref.modified,
            changed: 3,
        }
    }
}

impl Files {
    pub fn add(&mut self, kind: FileType, data: &[u8]) -> usize {
        let entries = BTreeMap::new();
        self.nodes.push(Node { kind, data: data.to_vec(), entries, accessed: 1, modified: 2 });
        self.nodes.len() - 1
    }

    /// Adds a file in a directory, and checks the name as no program can be trusted to.
    pub fn create(
        &mut self,
        directory: usize,
        name: &[u8],
        kind: FileType,
        data: &[u8],
    ) -> Result<usize, Errno> {
        if self.find(directory, name).is_ok() {
            return Err(Errno::Exist);
        }
        let node = self.add(kind, data);
        self.nodes[directory].entries.insert(name.to_vec(), node);
        Ok(node)
    }

    pub fn find(&self, directory: usize, name: &[u8]) -> Result<usize, Errno> {
        assert!(!name.is_empty() && name != b".." && !name.contains(&b'/') && !name.contains(&0));
        let directory = &self.nodes[directory];
        assert_eq!(directory.kind, FileType::Directory);
        directory.entries.get(name).copied().ok_or(Errno::Noent)
    }

    fn find_or_dot(&self, directory: usize, name: &[u8]) -> Result<usize, Errno> {
        if name == b"." {
            Ok(directory)
        } else {
            self.find(directory, name)
        }
    }
}

impl Host for Fake {
    type Handle = Handle;
    type Memory = [u8];

    fn open_directory(&mut self, at: &Handle, name: &[u8]) -> Result<Handle, Errno> {
        self.step()?;
        let node = self.files.borrow().find(at.node, name)?;
        let kind = self.files.borrow().nodes[node].kind;
        if kind != FileType::Directory {
            return Err(Errno::Notdir);
        }
        Ok(self.handle(node))
    }

    fn open(&mut self, at: &Handle, name: &[u8], how: Open) -> Result<Handle, Errno> {
        self.step()?;
        let found = self.files.borrow().find_or_dot(at.node, name);
        let node = match found {
            Ok(_) if how.create && how.exclusive => return Err(Errno::Exist),
            Err(Errno::Noent) if how.create => {
                self.files.borrow_mut().create(at.node, name, FileType::RegularFile, b"")?
            }
            found => found?,
        };
        let kind = self.files.borrow().nodes[node].kind;
        match kind {
            FileType::SymbolicLink => return Err(Errno::Loop),
            FileType::Directory if how.write => return Err(Errno::Isdir),
            FileType::Directory => {}
            _ if how.directory => return Err(Errno::Notdir),
            _ => {}
        }
        if how.truncate {
            self.files.borrow_mut().nodes[node].data.clear();
        }
        let handle = self.handle(node);
        handle.append.set(how.flags.contains(FdFlags::APPEND));
        Ok(handle)
    }

    fn status_at(&mut self, at: &Handle, name: &[u8]) -> Result<Status, Errno> {
        self.step()?;
        let node = self.files.borrow().find_or_dot(at.node, name)?;
        Ok(self.status_of(node))
    }

    fn set_times_at(
        &mut self,
        at: &Handle,
        name: &[u8],
        accessed: Time,
        modified: Time,
    ) -> Result<(), Errno> {
        self.step()?;
        let node = self.files.borrow().find_or_dot(at.node, name)?;
        self.times(node, accessed, modified);
        Ok(())
    }

    fn read_link(&mut self, at: &Handle, name: &[u8], into: &mut [u8]) -> Result<usize, Errno> {
        self.step()?;
        let files = self.files.borrow();
        let node = &files.nodes[files.find(at.node, name)?];
        if node.kind != FileType::SymbolicLink {
            return Err(Errno::Inval);
        }
        let bytes = node.data.len().min(into.len());
        into[..bytes].copy_from_slice(&node.data[..bytes]);
        Ok(bytes)
    }

    fn create_directory(&mut self, at: &Handle, name: &[u8]) -> Result<(), Errno> {
        self.step()?;
        self.files.borrow_mut().create(at.node, name, FileType::Directory, b"").map(|_| ())
    }

    fn create_symlink(&mut self, target: &[u8], at: &Handle, name: &[u8]) -> Result<(), Errno> {
        self.step()?;
        let kind = FileType::SymbolicLink;
        self.files.borrow_mut().create(at.node, name, kind, target).map(|_| ())
    }

    fn create_link(
        &mut self,
        from: &Handle,
        old: &[u8],
        to: &Handle,
        new: &[u8],
    ) -> Result<(), Errno> {
        self.step()?;
        let mut files = self.files.borrow_mut();
        let node = files.find(from.node, old)?;
        if files.nodes[node].kind == FileType::Directory {
            return Err(Errno::Perm);
        }
        if files.find(to.node, new).is_ok() {
            return Err(Errno::Exist);
        }
        files.nodes[to.node].entries.insert(new.to_vec(), node);
        Ok(())
    }

    fn rename(&mut self, from: &Handle, old: &[u8], to: &Handle, new: &[u8]) -> Result<(), Errno> {
        self.step()?;
        let mut files = self.files.borrow_mut();
        let node = files.find(from.node, old)?;
        files.nodes[from.node].entries.remove(old);
        files.nodes[to.node].entries.insert(new.to_vec(), node);
        Ok(())
    }

    fn remove_file(&mut self, at: &Handle, name: &[u8]) -> Result<(), Errno> {
        self.step()?;
        let mut files = self.files.borrow_mut();
        let node = files.find(at.node, name)?;
        if files.nodes[node].kind == FileType::Directory {
            return Err(Errno::Isdir);
        }
        files.nodes[at.node].entries.remove(name);
        Ok(())
    }

    fn remove_directory(&mut self, at: &Handle, name: &[u8]) -> Result<(), Errno> {
        self.step()?;
        let mut files = self.files.borrow_mut();
        let node = files.find(at.node, name)?;
        if files.nodes[node].kind != FileType::Directory {
            return Err(Errno::Notdir);
        }
        if !files.nodes[node].entries.is_empty() {
            return Err(Errno::Notempty);
        }
        files.nodes[at.node].entries.remove(name);
        Ok(())
    }

    fn read_directory(
        &mut self,
        directory: &Handle,
        cookie: u64,
        each: &mut dyn FnMut(DirectoryEntry<'_>) -> bool,
    ) -> Result<(), Errno> {
        self.step()?;
        let files = self.files.borrow();
        let mut list = vec![(b".".to_vec(), directory.node), (b"..".to_vec(), 1)];
        list.extend(files.nodes[directory.node].entries.clone());
        for (n, (name, node)) in (1..).zip(&list).skip(cookie as usize) {
            let (inode, kind) = (*node as u64, files.nodes[*node].kind);
            if !each(DirectoryEntry { next: n, inode, kind, name }) {
                break;
            }
        }
        Ok(())
    }

    fn read(
        &mut self,
        handle: &Handle,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        self.step()?;
        let data = self.files.borrow().nodes[handle.node].data.clone();
        let mut from = offset.unwrap_or(handle.offset.get());
        let begin = from;
        for buffer in buffers {
            let rest = data.get(from as usize..).unwrap_or(&[]);
            let bytes = rest.len().min(buffer.bytes as usize);
            memory.write(buffer.at, &rest[..bytes])?;
            from += bytes as u64;
        }
        if offset.is_none() {
            handle.offset.set(from);
        }
        Ok((from - begin) as u32)
    }

    fn write(
        &mut self,
        handle: &Handle,
        memory: &mut [u8],
        buffers: &[Buffer],
        offset: Option<u64>,
    ) -> Result<u32, Errno> {
        self.step()?;
        let mut files = self.files.borrow_mut();
        let data = &mut files.nodes[handle.node].data;
        let mut at = offset.unwrap_or(handle.offset.get()) as usize;
        if handle.append.get() {
            at = data.len();
        }
        let begin = at;
        for buffer in buffers {
            let mut bytes = vec![0; buffer.bytes as usize];
            memory.read(buffer.at, &mut bytes)?;
            data.resize(data.len().max(at + bytes.len()), 0);
            data[at..at + bytes.len()].copy_from_slice(&bytes);
            at += bytes.len();
        }
        if offset.is_none() {
            handle.offset.set(at as u64);
        }
        Ok((at - begin) as u32)
    }

    fn seek(&mut self, handle: &Handle, distance: i64, whence: Whence) -> Result<u64, Errno> {
        self.step()?;
        let from = match whence {
            Whence::Set => 0,
            Whence::Cur => handle.offset.get(),
            Whence::End => self.files.borrow().nodes[handle.node].data.len() as u64,
        };
        let offset = from.checked_add_signed(distance).ok_or(Errno::Inval)?;
        handle.offset.set(offset);
        Ok(offset)
    }

    fn sync(&mut self, handle: &Handle, data_only: bool) -> Result<(), Errno> {
        self.step()?;
        self.log(std::format!("sync {} {data_only}", handle.node));
        Ok(())
    }

    fn advise(
        &mut self,
        handle: &Handle,
        offset: u64,
        bytes: u64,
        advice: Advice,
    ) -> Result<(), Errno> {
        self.step()?;
        self.log(std::format!("advise {} {offset} {bytes} {advice:?}", handle.node));
        Ok(())
    }

    fn allocate(&mut self, handle: &Handle, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.step()?;
        let data = &mut self.files.borrow_mut().nodes[handle.node].data;
        data.resize(data.len().max((offset + bytes) as usize), 0);
        Ok(())
    }

    fn set_size(&mut self, handle: &Handle, size: u64) -> Result<(), Errno> {
        self.step()?;
        self.files.borrow_mut().nodes[handle.node].data.resize(size as usize, 0);
        Ok(())
    }

    fn status(&mut self, handle: &Handle) -> Result<Status, Errno> {
        self.step()?;
        Ok(self.status_of(handle.node))
    }

    fn set_times(&mut self, handle: &Handle, accessed: Time, modified: Time) -> Result<(), Errno> {
        self.step()?;
        self.times(handle.node, accessed, modified);
        Ok(())
    }

    fn set_flags(&mut self, handle: &Handle, flags: FdFlags) -> Result<(), Errno> {
        self.step()?;
        handle.append.set(flags.contains(FdFlags::APPEND));
        Ok(())
    }

    fn close(&mut self, _handle: Handle) -> Result<(), Errno> {
        self.step()
    }

    fn accept(&mut self, handle: &Handle, flags: FdFlags) -> Result<Handle, Errno> {
        self.step()?;
        self.log(std::format!("accept {} {}", handle.node, flags.0));
        let node = self.files.borrow_mut().add(FileType::SocketStream, b"from peer");
        Ok(self.handle(node))
    }

    fn receive(
        &mut self,
        handle: &Handle,
        memory: &mut [u8],
        buffers: &[Buffer],
        flags: ReceiveFlags,
    ) -> Result<(u32, bool), Errno> {
        self.log(std::format!("receive {}", flags.0));
        let offset = flags.contains(ReceiveFlags::PEEK).then_some(handle.offset.get());
        Ok((self.read(handle, memory, buffers, offset)?, self.cut))
    }

    fn send(
        &mut self,
        handle: &Handle,
        memory: &mut [u8],
        buffers: &[Buffer],
    ) -> Result<u32, Errno> {
        self.write(handle, memory, buffers, None)
    }

    fn shutdown(&mut self, _handle: &Handle, how: ShutdownFlags) -> Result<(), Errno> {
        self.step()?;
        self.log(std::format!("shutdown {}", how.0));
        Ok(())
    }

    fn ready(&mut self, handle: &Handle, direction: Direction) -> Result<Option<Ready>, Errno> {
        self.step()?;
        let bytes = self.files.borrow().nodes[handle.node].data.len() as u64;
        Ok(match direction {
            Direction::Write => Some(Ready { bytes: 1, hangup: false }),
            Direction::Read => (bytes > 0).then_some(Ready { bytes, hangup: self.cut }),
        })
    }

    fn wait(
        &mut self,
        handles: &mut dyn Iterator<Item = (&Handle, Direction)>,
        timeout: Option<u64>,
    ) -> Result<(), Errno> {
        self.step()?;
        let nodes: Vec<usize> = handles.map(|(handle, _)| handle.node).collect();
        self.log(std::format!("wait {nodes:?} {timeout:?}"));
        match timeout {
            Some(timeout) => self.now += timeout,
            // Whoever waits without an end gets data.
            None => nodes.iter().for_each(|&node| {
                self.files.borrow_mut().nodes[node].data.push(b'x');
            }),
        }
        Ok(())
    }

    fn clock_resolution(&mut self, clock: Clock) -> Result<u64, Errno> {
        self.step()?;
        Ok(clock as u64 + 1)
    }

    fn clock_time(&mut self, clock: Clock) -> Result<u64, Errno> {
        self.step()?;
        Ok(self.now + if clock == Clock::Realtime { 1 << 60 } else { 0 })
    }

    fn random(&mut self, into: &mut [u8]) -> Result<(), Errno> {
        self.step()?;
        into.fill(0x5a);
        Ok(())
    }

    fn yield_now(&mut self) -> Result<(), Errno> {
        self.step()?;
        self.log("yield");
        Ok(())
    }
}
