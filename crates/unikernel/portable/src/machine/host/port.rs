//! A port on a host network, for a program of host threads. The tender's device model connects it to the host, as it
//! does for a unikernel. A worker thread receives frames, and wakes the port's owner if that sleeps.

use crate::machine::PortError;
use kyozon_tender::device::host::{Host, HostOption};
use kyozon_unikernel::tcp::Frames;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use vmm_sys_util::eventfd::EventFd;

/// Maximum frames that wait for the owner, as in a unikernel. Further ones are dropped.
const FRAMES: usize = 256;
/// Maximum bytes of a frame.
const FRAME_BYTES: usize = 1514;
/// A locally administered address (IEEE 802, 8.2.2).
const MAC: [u8; 6] = [2, b'K', 0, 0, 0, 0];

/// Frames that the worker has received, and the thread that takes them.
struct Inbox {
    frames: Mutex<VecDeque<Vec<u8>>>,
    asleep: AtomicBool,
    owner: Thread,
}

impl Inbox {
    fn frames(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, frame: &[u8]) {
        let mut frames = self.frames();
        if frames.len() < FRAMES && frame.len() <= FRAME_BYTES {
            frames.push_back(frame.to_vec());
        }
        drop(frames);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.owner.unpark();
        }
    }
}

/// The port. It belongs to the thread that opened it.
pub struct Port {
    host: Arc<Host>,
    inbox: Arc<Inbox>,
    stop: Arc<EventFd>,
    worker: Option<thread::JoinHandle<()>>,
}

/// The network that an argument names, `tap=DEVICE` or `socket=PATH`; `None` if it is another argument.
pub(super) fn option(word: &str) -> Option<HostOption> {
    match word.split_once('=')? {
        ("tap", name) => Some(HostOption::Tap(name.to_owned())),
        ("socket", path) => Some(HostOption::Socket(path.into())),
        _ => None,
    }
}

/// Opens the port that an argument of the program names.
///
/// # Errors
///
/// [`PortError::Missing`]: no argument names a network. [`PortError::Failed`]: the host's device or socket cannot be
/// opened.
pub fn port() -> Result<Port, PortError> {
    let option = std::env::args().skip(1).find_map(|word| option(&word));
    let option = option.ok_or(PortError::Missing("tap=DEVICE or socket=PATH"))?;
    let host = Host::open(&option).map_err(|error| PortError::Failed(format!("{error:#}")))?;
    Port::new(host).map_err(|error| PortError::Failed(error.to_string()))
}

impl Port {
    fn new(host: Host) -> std::io::Result<Self> {
        let (host, stop) = (Arc::new(host), Arc::new(EventFd::new(0)?));
        let frames = Mutex::new(VecDeque::with_capacity(FRAMES));
        let asleep = AtomicBool::new(false);
        let inbox = Arc::new(Inbox { frames, asleep, owner: thread::current() });
        let (from, to, end) = (host.clone(), inbox.clone(), stop.clone());
        let worker = thread::spawn(move || from.work(&end, |frame| to.put(frame)));
        Ok(Self { host, inbox, stop, worker: Some(worker) })
    }
}

impl Frames for Port {
    fn mac(&self) -> [u8; 6] {
        MAC
    }

    fn max_frame(&self) -> usize {
        FRAME_BYTES
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.inbox.frames().pop_front()
    }

    fn can_send(&mut self) -> bool {
        true
    }

    fn send(&mut self, frame: &[u8]) {
        self.host.send(frame);
    }

    fn notify(&mut self) {}

    fn wait(&mut self, deadline: Option<u64>) {
        self.inbox.asleep.store(true, Ordering::SeqCst);
        if self.inbox.frames().is_empty() {
            match deadline.map(|deadline| deadline.saturating_sub(self.now())) {
                None => thread::park(),
                Some(nanoseconds) => thread::park_timeout(Duration::from_nanos(nanoseconds)),
            }
        }
        self.inbox.asleep.store(false, Ordering::Relaxed);
    }

    fn now(&self) -> u64 {
        super::now()
    }

    fn random(&self) -> kyozon_unikernel::Result<u64> {
        Ok(super::random()[0])
    }
}

impl Drop for Port {
    fn drop(&mut self) {
        // If the counter is full, it is readable, which is what stops the worker.
        let _ = self.stop.write(1);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
