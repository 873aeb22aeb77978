//! What the threads that serve requests share.

use super::closing::{Closing, Held};
use super::handles::Handles;
use super::nodes::Nodes;
use super::worker::Worker;
use crate::fs::kernel::Tasks;
use liblinux::calls::inodes::Inodes;
use liblinux::calls::{Calls, Fd, Result};
use liblinux::Errno;
use std::cell::RefCell;
use std::sync::{Arc, RwLock};
use std::time::Duration;

/// How long the host may use what it was told. Nothing but this mount changes the image; but on some file systems a
/// file has names that the host takes for different ones (`A` and `a`), so that it cannot know everything that it
/// changes.
pub const TTL: Duration = Duration::from_secs(1);

/// The largest error number of a system call.
const MOST_ERRNO: i32 = 511;

/// Kinds of file systems whose handles stay valid when the kernel forgets an inode.
const HANDLES: [&str; 6] = ["btrfs", "erofs", "ext4", "iso9660", "squashfs", "xfs"];

thread_local! {
    /// The calling thread's task, from its first request on.
    static WORKER: RefCell<Option<Worker>> = const { RefCell::new(None) };
}

/// Serves requests, from several threads at a time.
pub struct Server {
    /// Inodes.
    pub nodes: Nodes,
    /// Open files and folders.
    pub handles: Handles,
    /// Whether other users have access, which the host checks.
    pub shared: bool,
    /// Descriptors that wait for being closed.
    pub closing: Arc<Closing>,
    tasks: Tasks,
    /// Whether requests are served. Each holds it while it is.
    serving: RwLock<bool>,
    /// Called with an error that means that the kernel in this process has ended.
    ended: Box<dyn Fn() + Send + Sync>,
}

impl Server {
    /// Serves the file system of kind `kind` whose root directory is open as `root`.
    pub fn new(
        calls: &dyn Calls,
        tasks: Tasks,
        root: Fd,
        kind: &str,
        shared: bool,
        ended: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self> {
        let closing = Arc::new(Closing::default());
        let status = calls.status(root).inspect_err(|_| {
            // The error is another one.
            let _ = calls.close(root);
        })?;
        let handles = HANDLES.contains(&kind) && calls.handle(root).is_ok();
        Ok(Self {
            nodes: Nodes::new(closing.clone(), root, &status, handles),
            handles: Handles::new(closing.clone()),
            shared,
            closing,
            tasks,
            serving: RwLock::new(true),
            ended: Box::new(ended),
        })
    }

    /// Performs a request on the calling thread's task.
    pub fn serve<T>(
        &self,
        work: impl FnOnce(&Worker) -> Result<T>,
    ) -> std::result::Result<T, fuser::Errno> {
        let serving = self.serving.read().unwrap_or_else(|e| e.into_inner());
        if !*serving {
            return Err(fuser::Errno::EIO);
        }
        WORKER.with_borrow_mut(|slot| {
            let worker = match slot {
                Some(worker) => worker,
                None => slot.insert(Worker::new(&self.tasks).map_err(|error| self.error(error))?),
            };
            let result = work(worker).map_err(|error| self.error(error));
            self.closing.sweep(&*worker.calls);
            result
        })
    }

    /// The error that the host gets.
    fn error(&self, Errno(number): Errno) -> fuser::Errno {
        match number {
            libc::ESHUTDOWN => {
                (self.ended)();
                fuser::Errno::EIO
            }
            // A kernel's own numbers are not for programs; the host does not take them.
            1..=MOST_ERRNO => fuser::Errno::from_i32(number),
            _ => fuser::Errno::EIO,
        }
    }

    /// A node's inode, open.
    pub fn inode(&self, worker: &Worker, node: u64) -> Result<Arc<Held>> {
        self.nodes.open(&*worker.calls, &self.nodes.get(node)?)
    }

    /// Serves nothing any more, and closes everything.
    pub fn stop(&self, calls: &dyn Calls) {
        *self.serving.write().unwrap_or_else(|e| e.into_inner()) = false;
        self.handles.clear();
        self.nodes.clear();
        self.closing.sweep(calls);
    }
}
