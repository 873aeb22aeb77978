//! A port on a network of the host's, for a program of threads. Its end at the host is the tender's, as that of a
//! unikernel: a thread takes frames from it, and wakes the port's owner where that sleeps.

use kyozon_tender::device::host::{Host, HostOption};
use kyozon_unikernel::tcp::Frames;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Thread};
use std::time::Duration;
use vmm_sys_util::eventfd::EventFd;

/// Frames that wait, at most, as in a unikernel. More of them are lost.
const FRAMES: usize = 256;
/// Bytes of a frame, at most.
const MOST: usize = 1514;
/// An address that is no manufacturer's (IEEE 802, 8.2.2).
const MAC: [u8; 6] = [2, b'K', 0, 0, 0, 0];

/// Frames that came, and who has the port.
struct Came {
    frames: Mutex<VecDeque<Vec<u8>>>,
    asleep: AtomicBool,
    owner: Thread,
}

impl Came {
    fn frames(&self) -> MutexGuard<'_, VecDeque<Vec<u8>>> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, frame: &[u8]) {
        let mut frames = self.frames();
        if frames.len() < FRAMES && frame.len() <= MOST {
            frames.push_back(frame.to_vec());
        }
        drop(frames);
        if self.asleep.swap(false, Ordering::SeqCst) {
            self.owner.unpark();
        }
    }
}

/// The port, for the thread that opened it.
pub struct Port {
    host: Arc<Host>,
    came: Arc<Came>,
    stop: Arc<EventFd>,
    worker: Option<thread::JoinHandle<()>>,
}

/// What an argument says of the network, where it does.
pub(super) fn option(word: &str) -> Option<HostOption> {
    match word.split_once('=')? {
        ("tap", name) => Some(HostOption::Tap(name.to_owned())),
        ("socket", path) => Some(HostOption::Socket(path.into())),
        _ => None,
    }
}

/// The port that an argument of the program names.
///
/// # Errors
///
/// What is missing.
pub fn port() -> Result<Port, String> {
    let option = std::env::args().skip(1).find_map(|word| option(&word));
    let option = option.ok_or("tap=DEVICE or socket=PATH says which")?;
    let host = Host::open(&option).map_err(|error| format!("{error:#}"))?;
    Port::new(host).map_err(|error| error.to_string())
}

impl Port {
    fn new(host: Host) -> std::io::Result<Self> {
        let (host, stop) = (Arc::new(host), Arc::new(EventFd::new(0)?));
        let frames = Mutex::new(VecDeque::with_capacity(FRAMES));
        let asleep = AtomicBool::new(false);
        let came = Arc::new(Came { frames, asleep, owner: thread::current() });
        let (from, to, end) = (host.clone(), came.clone(), stop.clone());
        let worker = thread::spawn(move || from.work(&end, |frame| to.put(frame)));
        Ok(Self { host, came, stop, worker: Some(worker) })
    }
}

impl Frames for Port {
    fn mac(&self) -> [u8; 6] {
        MAC
    }

    fn most(&self) -> usize {
        MOST
    }

    fn receive(&mut self) -> Option<Vec<u8>> {
        self.came.frames().pop_front()
    }

    fn can_send(&mut self) -> bool {
        true
    }

    fn send(&mut self, frame: &[u8]) {
        self.host.send(frame);
    }

    fn notify(&mut self) {}

    fn wait(&mut self, deadline: Option<u64>) {
        self.came.asleep.store(true, Ordering::SeqCst);
        if self.came.frames().is_empty() {
            match deadline.map(|at| at.saturating_sub(self.now())) {
                None => thread::park(),
                Some(nanoseconds) => thread::park_timeout(Duration::from_nanos(nanoseconds)),
            }
        }
        self.came.asleep.store(false, Ordering::Relaxed);
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
        // A counter that is full is one that can be read.
        let _ = self.stop.write(1);
        if let Some(worker) = self.worker.take() {
            let _ = worker.join();
        }
    }
}
