//! A block device behind a transport: served in the guest's call, or by a thread.

use super::{Block, Errors};
use crate::mmio::{Device, Link};
use crate::poller::Poller;
use crate::ring::MAX_SIZE;
use crate::worker::{Bell, Worker};
use crate::Memory;
use rustix::event::{poll, PollFd, PollFlags};
use std::io::Result;
use std::sync::{Arc, Mutex, MutexGuard};
use virtio_bindings::virtio_ids::VIRTIO_ID_BLOCK;

/// Maximum number of requests for which the guest is woken at once. If it is larger, the first of them waits for
/// longer; if it is smaller, the guest is woken more often.
const BATCH: usize = 8;
/// Maximum number of rounds in one call of the guest. A guest that adds entries meanwhile waits for its next call.
const ROUNDS: usize = 8;

/// A block device.
pub struct BlockDevice {
    block: Arc<Mutex<Block>>,
    features: u64,
    config: Vec<u8>,
    errors: Arc<Errors>,
    /// Wakes the thread, if there is one.
    bell: Option<Arc<Bell>>,
    worker: Option<Worker>,
}

fn lock(block: &Mutex<Block>) -> MutexGuard<'_, Block> {
    block.lock().unwrap_or_else(|e| e.into_inner())
}

impl BlockDevice {
    /// A device that serves requests while the guest rings: the guest's thread waits for the disk. It is the choice for
    /// disks in memory.
    pub fn inline(block: Block) -> Self {
        let (features, config, errors) = (block.features(), block.config(), block.errors());
        let block = Arc::new(Mutex::new(block));
        Self { block, features, config, errors, bell: None, worker: None }
    }

    /// A device with a thread, so that the guest continues while the disk works.
    ///
    /// # Errors
    /// Linux refuses another descriptor.
    pub fn threaded(block: Block) -> Result<Self> {
        Ok(Self { bell: Some(Arc::new(Bell::new()?)), ..Self::inline(block) })
    }

    /// The host's errors. The result stays valid when the device has a transport.
    pub fn errors(&self) -> Arc<Errors> {
        self.errors.clone()
    }
}

/// Serves requests. Returns whether there are more.
fn serve<M: Memory>(link: &Link<M>, block: &Mutex<Block>, max: usize) -> bool {
    let served = link.serve(0, |ring, memory| {
        let served = lock(block).serve_some(ring, memory, max);
        (served.more, served.wake)
    });
    served.unwrap_or(false)
}

fn work<M: Memory>(link: &Link<M>, block: &Mutex<Block>, bell: &Bell, stop: &Bell) {
    loop {
        let mut polls = [PollFd::new(stop, PollFlags::IN), PollFd::new(bell, PollFlags::IN)];
        // An interrupted wait has no events.
        let _ = poll(&mut polls, None);
        if !polls[0].revents().is_empty() {
            return;
        }
        bell.clear();
        if serve(link, block, BATCH) {
            bell.ring();
        }
    }
}

impl<M: Memory + Send + Sync + 'static> Device<M> for BlockDevice {
    fn kind(&self) -> u32 {
        VIRTIO_ID_BLOCK
    }

    fn features(&self) -> u64 {
        self.features
    }

    fn queues(&self) -> usize {
        Block::QUEUES
    }

    fn config(&self) -> Vec<u8> {
        self.config.clone()
    }

    fn attach(&mut self, link: &Arc<Link<M>>, _: &Arc<Poller>) -> Result<()> {
        if let Some(bell) = &self.bell {
            let (link, block, bell) = (link.clone(), self.block.clone(), bell.clone());
            let run = move |stop: &Bell| work(&link, &block, &bell, stop);
            self.worker = Some(Worker::start("virtio-blk", run)?);
        }
        Ok(())
    }

    fn activate(&self, features: u64) -> Result<()> {
        lock(&self.block).accept(features);
        Ok(())
    }

    fn notify(&self, link: &Link<M>, _: usize) {
        match &self.bell {
            Some(bell) => bell.ring(),
            None => {
                let more = (0..ROUNDS).all(|_| serve(link, &self.block, MAX_SIZE.into()));
                if more {
                    link.listen(0);
                }
            }
        }
    }

    fn reset(&self) {}
}

#[cfg(test)]
mod tests;
