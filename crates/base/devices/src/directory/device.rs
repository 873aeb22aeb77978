//! A folder behind a transport, with a thread: its system calls may wait.

use super::Directory;
use crate::mmio::{Device, Link};
use crate::poller::Poller;
use crate::ring::FEATURES;
use crate::worker::{Bell, Worker};
use crate::Memory;
use rustix::event::{poll, PollFd, PollFlags};
use std::io::{Error, ErrorKind, Result};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;
use virtio_bindings::virtio_ids::VIRTIO_ID_FS;

/// Bytes of the name in the configuration space (section 5.11.4).
const TAG: usize = 36;
/// Queues: one for messages that must not wait behind others, one for requests (section 5.11.2).
const QUEUES: usize = 2;
/// Maximum number of messages of a queue for which the guest is woken at once.
const BATCH: usize = 8;
/// How long what the guest learnt about files is valid, although others may change them.
const VALID: Duration = Duration::from_secs(1);

/// A folder of the host as a file system. Linux mounts it by `mount -t virtiofs TAG FOLDER`.
///
/// The guest has the rights of this process there: as root it can also create files of other users, otherwise all that
/// it creates belongs to this process's user. The host has a descriptor open for each file that the guest remembers.
pub struct DirectoryDevice {
    directory: Arc<Mutex<Directory>>,
    config: Vec<u8>,
    bell: Arc<Bell>,
    worker: Option<Worker>,
}

impl DirectoryDevice {
    /// The folder `path` under the name `tag`.
    ///
    /// # Errors
    ///
    /// There is no such folder; the name is empty or longer than 36 bytes; Linux refuses another descriptor.
    pub fn new(path: &Path, tag: &str) -> Result<Self> {
        if tag.is_empty() || tag.len() > TAG {
            let text = format!("the name {tag:?} has {} bytes, not 1 to {TAG}", tag.len());
            return Err(Error::new(ErrorKind::InvalidInput, text));
        }
        let mut config = tag.as_bytes().to_vec();
        config.resize(TAG, 0);
        // The number of queues for requests.
        config.extend(1_u32.to_le_bytes());
        let directory = Arc::new(Mutex::new(Directory::new(path, VALID)?));
        Ok(Self { directory, config, bell: Arc::new(Bell::new()?), worker: None })
    }
}

/// Serves both queues. Returns whether there are more messages.
fn serve<M: Memory>(link: &Link<M>, directory: &mut Directory) -> bool {
    let mut more = false;
    for queue in 0..QUEUES {
        let served = link.serve(queue, |ring, memory| {
            let served =
                ring.serve_some(memory, BATCH, |memory, chain| directory.serve(memory, chain));
            (served.more, served.wake)
        });
        more |= served.unwrap_or(false);
    }
    more
}

fn lock(directory: &Mutex<Directory>) -> MutexGuard<'_, Directory> {
    directory.lock().unwrap_or_else(|e| e.into_inner())
}

fn work<M: Memory>(link: &Link<M>, directory: &Mutex<Directory>, bell: &Bell, stop: &Bell) {
    lock(directory).own_mask();
    loop {
        let mut polls = [PollFd::new(stop, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        // An interrupted wait has no events.
        let _ = poll(&mut polls, None);
        if !polls[0].revents().is_empty() {
            return;
        }
        bell.clear();
        if serve(link, &mut lock(directory)) {
            bell.ring();
        }
    }
}

impl<M: Memory + Send + Sync + 'static> Device<M> for DirectoryDevice {
    fn kind(&self) -> u32 {
        VIRTIO_ID_FS
    }

    fn features(&self) -> u64 {
        FEATURES
    }

    fn queues(&self) -> usize {
        QUEUES
    }

    fn config(&self) -> Vec<u8> {
        self.config.clone()
    }

    fn attach(&mut self, link: &Arc<Link<M>>, _: &Arc<Poller>) -> Result<()> {
        let (link, directory, bell) = (link.clone(), self.directory.clone(), self.bell.clone());
        let run = move |stop: &Bell| work(&link, &directory, &bell, stop);
        self.worker = Some(Worker::start("virtio-fs", run)?);
        Ok(())
    }

    fn activate(&self, _: u64) -> Result<()> {
        Ok(())
    }

    fn notify(&self, _: &Link<M>, _: usize) {
        self.bell.ring();
    }

    fn reset(&self) {}
}
