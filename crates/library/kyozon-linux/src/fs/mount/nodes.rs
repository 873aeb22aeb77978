//! The inodes that the host knows, by the numbers by which it knows them.
//!
//! A node keeps its inode open (`O_PATH`): it stays the same inode whatever happens to its names. If many are open,
//! those that were not used for a while are closed, and opened again by their handles.

use super::closing::{Closing, Held};
use liblinux::calls::inodes::{Handle, Inodes};
use liblinux::calls::{Calls, Fd, Result};
use liblinux::Errno;
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

/// The root directory's number (`FUSE_ROOT_ID`).
pub const ROOT: u64 = 1;
/// Numbers from here on are no inode numbers of an image.
const OWN: u64 = 1 << 62;
/// Devices of an image whose inode numbers are kept: what is above 48 bits of an inode number.
const DEVICES: u64 = 1 << 14;
/// Inodes that are kept open, if they can be opened again.
const KEEP: usize = 1 << 14;
/// Inodes that can be open at all: they fit into the kernel's memory.
const MOST: usize = 200_000;

/// Device and inode number of an image.
type Key = (u64, u64);

/// An inode that the host knows.
pub struct Node {
    /// Its number for the host.
    pub id: u64,
    /// Tells it from an earlier inode with the same number.
    pub generation: u64,
    key: Key,
    used: AtomicBool,
    state: Mutex<State>,
}

enum State {
    Open(Arc<Held>),
    Closed(Handle),
}

struct Known {
    node: Arc<Node>,
    /// How many answers with this node the host has not forgotten.
    lookups: u64,
}

struct Table {
    by_id: HashMap<u64, Known>,
    by_key: HashMap<Key, u64>,
    /// Devices of the image in the order in which they were met: btrfs has one for each subvolume.
    devices: HashMap<u64, u64>,
    generation: u64,
    next: u64,
}

/// All of them.
pub struct Nodes {
    /// The root directory, for opening handles.
    root: Fd,
    closing: Arc<Closing>,
    table: Mutex<Table>,
    /// Open nodes in the order in which they are looked at for closing.
    clock: Mutex<VecDeque<Weak<Node>>>,
    /// Whether handles outlive the kernel's caches.
    handles: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|e| e.into_inner())
}

impl Table {
    /// The host's number of a new node: the inode number in the image, if that is free.
    fn number(&mut self, (device, inode): Key) -> u64 {
        let devices = self.devices.len() as u64;
        if devices < DEVICES {
            self.devices.entry(device).or_insert(devices);
        }
        let number = match self.devices.get(&device) {
            Some(0) => inode,
            Some(device) if inode < 1 << 48 => device << 48 | inode,
            _ => 0,
        };
        if number > ROOT && number < OWN && !self.by_id.contains_key(&number) {
            return number;
        }
        self.own_number()
    }

    fn own_number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn add(&mut self, key: Key, held: Arc<Held>) -> Arc<Node> {
        let id = self.number(key);
        self.generation += 1;
        let node = Arc::new(Node {
            id,
            generation: self.generation,
            key,
            used: AtomicBool::new(true),
            state: Mutex::new(State::Open(held)),
        });
        self.by_id.insert(id, Known { node: node.clone(), lookups: 1 });
        self.by_key.insert(key, id);
        node
    }
}

impl Nodes {
    /// Nodes of a file system whose root directory is open as `root`. With `handles`, its inodes can be opened again.
    pub fn new(closing: Arc<Closing>, root: Fd, status: &libc::stat, handles: bool) -> Self {
        let key = (status.st_dev, status.st_ino);
        let node = Arc::new(Node {
            id: ROOT,
            generation: 0,
            key,
            used: AtomicBool::new(true),
            state: Mutex::new(State::Open(closing.hold(root))),
        });
        let table = Table {
            by_id: HashMap::from([(ROOT, Known { node, lookups: 1 })]),
            by_key: HashMap::from([(key, ROOT)]),
            devices: HashMap::from([(status.st_dev, 0)]),
            generation: 0,
            next: OWN,
        };
        Self { root, closing, table: Mutex::new(table), clock: Mutex::default(), handles }
    }

    /// The node that the host means.
    pub fn get(&self, id: u64) -> Result<Arc<Node>> {
        let table = lock(&self.table);
        table.by_id.get(&id).map(|known| known.node.clone()).ok_or(Errno(libc::ESTALE))
    }

    /// A node's inode, open.
    pub fn open(&self, calls: &dyn Calls, node: &Arc<Node>) -> Result<Arc<Held>> {
        node.used.store(true, Ordering::Relaxed);
        let mut state = lock(&node.state);
        let held = match &*state {
            State::Open(held) => return Ok(held.clone()),
            State::Closed(handle) => {
                self.closing.hold(calls.open_handle(self.root, handle, libc::O_PATH)?)
            }
        };
        *state = State::Open(held.clone());
        drop(state);
        self.remember(node);
        Ok(held)
    }

    /// The node of an inode that was just opened, for an answer to the host.
    pub fn enter(&self, calls: &dyn Calls, fd: Fd, status: &libc::stat) -> Result<Arc<Node>> {
        let held = self.closing.hold(fd);
        let key = (status.st_dev, status.st_ino);
        let known = {
            let mut table = lock(&self.table);
            let id = table.by_key.get(&key).copied();
            let known = id.and_then(|id| table.by_id.get_mut(&id));
            known.map(|known| {
                known.lookups = known.lookups.saturating_add(1);
                known.node.clone()
            })
        };
        if let Some(node) = known {
            if self.is(calls, &node, &held)? {
                return Ok(node);
            }
            // The number belongs to another inode by now: the one that had it was removed.
            self.forget(node.id, 1);
        }
        if self.closing.open() > MOST {
            return Err(Errno(libc::ENFILE));
        }
        let node = lock(&self.table).add(key, held);
        self.remember(&node);
        self.shrink(calls);
        Ok(node)
    }

    /// Whether a node with the same number is the inode that is open as `held`.
    fn is(&self, calls: &dyn Calls, node: &Arc<Node>, held: &Arc<Held>) -> Result<bool> {
        node.used.store(true, Ordering::Relaxed);
        let mut state = lock(&node.state);
        match &*state {
            // An open inode keeps its number.
            State::Open(_) => Ok(true),
            State::Closed(handle) if *handle == calls.handle(held.fd)? => {
                *state = State::Open(held.clone());
                drop(state);
                self.remember(node);
                Ok(true)
            }
            State::Closed(_) => Ok(false),
        }
    }

    fn remember(&self, node: &Arc<Node>) {
        let mut clock = lock(&self.clock);
        clock.push_back(Arc::downgrade(node));
        // Nodes that the host forgot must not pile up.
        if clock.len() > 2 * MOST {
            clock.retain(|node| node.strong_count() > 0);
        }
    }

    /// Closes inodes that were not used for a while, if too many are open.
    fn shrink(&self, calls: &dyn Calls) {
        if !self.handles {
            return;
        }
        let mut looks = 2 * KEEP;
        while self.closing.open() > KEEP && looks > 0 {
            looks -= 1;
            let Some(node) = lock(&self.clock).pop_front() else { return };
            let Some(node) = node.upgrade() else { continue };
            if node.used.swap(false, Ordering::Relaxed) || !close(calls, &node) {
                lock(&self.clock).push_back(Arc::downgrade(&node));
            }
        }
    }

    /// The host forgets some answers with a node.
    pub fn forget(&self, id: u64, lookups: u64) {
        let mut table = lock(&self.table);
        let Some(known) = table.by_id.get_mut(&id).filter(|_| id != ROOT) else { return };
        known.lookups = known.lookups.saturating_sub(lookups);
        if known.lookups > 0 {
            return;
        }
        let known = table.by_id.remove(&id);
        if let Some(Known { node, .. }) = known {
            if table.by_key.get(&node.key) == Some(&id) {
                table.by_key.remove(&node.key);
            }
        }
    }

    /// A number that belongs to no node, for a name whose inode cannot be opened.
    pub fn nobody(&self) -> u64 {
        lock(&self.table).own_number()
    }

    /// Forgets all nodes, the root directory included.
    pub fn clear(&self) {
        let mut table = lock(&self.table);
        table.by_id.clear();
        table.by_key.clear();
    }
}

/// Closes a node's inode, if it can be opened again. Returns whether it did.
fn close(calls: &dyn Calls, node: &Node) -> bool {
    // Whoever holds the lock uses the node.
    let Ok(mut state) = node.state.try_lock() else { return false };
    let State::Open(held) = &*state else { return true };
    match calls.handle(held.fd) {
        Ok(handle) => {
            *state = State::Closed(handle);
            true
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests;
