//! A network device behind a transport. Its thread, or a poller, waits for the backend; the guest's own thread sends.

use super::backend::Backend;
use super::pace::TICK;
use super::port::{Counts, Port, Wait};
use super::{Mac, Net, RECEIVE, TRANSMIT};
use crate::mmio::{Device, Link};
use crate::poller::{Holder, Plan, Poller, Seat, Source};
use crate::worker::{Bell, Worker};
use crate::Memory;
use rustix::event::{poll, PollFd, PollFlags, Timespec};
use std::io::Result;
use std::os::fd::BorrowedFd;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use virtio_bindings::virtio_ids::VIRTIO_ID_NET;

/// How long packets wait for a backend that takes none, before they are lost. A driver that waits for 5 seconds warns.
const PATIENCE: Duration = Duration::from_secs(1);

/// Reports a change of the configuration space.
type Changed = Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>;

/// A network device.
pub struct NetDevice {
    handle: NetHandle,
    /// Wakes the thread: the guest has buffers again, or the backend does not take a packet.
    bell: Arc<Bell>,
    holder: OnceLock<Holder>,
    worker: Option<Worker>,
}

/// The host's view of a network device.
#[derive(Clone)]
pub struct NetHandle {
    port: Arc<Port>,
    changed: Changed,
}

impl NetHandle {
    /// Numbers of packets.
    pub fn counts(&self) -> Counts {
        self.port.counts()
    }

    /// Sets whether the guest has a link.
    pub fn set_link(&self, up: bool) {
        if self.port.set_up(up) {
            if let Some(changed) = self.changed.get() {
                changed();
            }
        }
    }

    /// Whether the guest has a link. It loses the link when the backend's other end is gone.
    pub fn link(&self) -> bool {
        self.port.is_up()
    }
}

impl NetDevice {
    /// A device with this address. Its frames have at most `mtu` bytes after the Ethernet header, unless their receiver
    /// divides them.
    ///
    /// # Errors
    /// Linux refuses another descriptor.
    pub fn new(mac: Mac, mtu: u16, backend: Box<dyn Backend>) -> Result<Self> {
        let handle =
            NetHandle { port: Arc::new(Port::new(mac, mtu, backend)), changed: Arc::default() };
        Ok(Self { handle, bell: Arc::new(Bell::new()?), holder: OnceLock::new(), worker: None })
    }

    /// The host's view. The result stays valid when the device has a transport.
    pub fn handle(&self) -> NetHandle {
        self.handle.clone()
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec { tv_sec: duration.as_secs() as i64, tv_nsec: duration.subsec_nanos().into() }
}

/// The work that the backend's descriptor announces, for pollers.
struct Receive<M> {
    link: Arc<Link<M>>,
    port: Arc<Port>,
    bell: Arc<Bell>,
}

impl<M: Memory + Send + Sync> Source for Receive<M> {
    fn fd(&self) -> BorrowedFd<'_> {
        self.port.backend().fd()
    }

    fn serve(&self) -> bool {
        match self.port.receive_soon(&self.link) {
            Wait::Backend => true,
            Wait::Nothing => !self.port.backend().holds_packets(),
            Wait::Guest | Wait::Closed => false,
        }
    }

    fn pause(&self) {
        if self.port.pause(&self.link) {
            self.bell.ring();
        }
    }
}

/// The device's thread.
struct Thread<M> {
    link: Arc<Link<M>>,
    handle: NetHandle,
    bell: Arc<Bell>,
    seat: Seat,
    holder: Holder,
}

impl<M: Memory> Thread<M> {
    fn run(mut self, stop: &Bell) {
        let Self { link, handle, bell, seat, holder } = &mut self;
        let port = &handle.port;
        let mut wait = Wait::Nothing;
        // Whether the backend may have packets.
        let mut ready = true;
        // Since when the backend does not take a packet.
        let mut since: Option<Instant> = None;
        loop {
            if wait != Wait::Closed && ready {
                wait = port.receive(link);
                if wait == Wait::Closed {
                    handle.set_link(false);
                }
            }
            since = port.is_blocked().then(|| since.unwrap_or_else(Instant::now));
            // A backend whose other end is gone takes no packet later.
            let patience = if wait == Wait::Closed { Duration::ZERO } else { PATIENCE };
            let left = since.map(|since| patience.saturating_sub(since.elapsed()));
            let (watch, time) = match wait {
                Wait::Backend => match seat.plan() {
                    Plan::Watch => (true, None),
                    Plan::Stand(time) => (false, time),
                },
                _ => {
                    seat.keep();
                    (false, (wait == Wait::Nothing).then_some(Duration::ZERO))
                }
            };
            // Then who sends looks for packets, too, and this thread only if nobody sends.
            let holding = port.is_holding();
            holder.hold(holding);
            let watch = watch && !holding;
            let time = time.into_iter().chain(holding.then_some(TICK)).min();
            let timeout = time.into_iter().chain(left).min();
            let mut flags = PollFlags::empty();
            flags.set(PollFlags::IN, watch);
            flags.set(PollFlags::OUT, since.is_some());
            let mut polls =
                vec![PollFd::new(stop, PollFlags::IN), PollFd::new(&**bell, PollFlags::IN)];
            // An error of a descriptor would end each wait, whatever it waits for.
            if !flags.is_empty() {
                polls.push(PollFd::from_borrowed_fd(port.backend().fd(), flags));
            }
            // An interrupted wait has no events.
            let _ = poll(&mut polls, timeout.map(timespec).as_ref());
            seat.woken();
            if !polls[0].revents().is_empty() {
                return;
            }
            if !polls[1].revents().is_empty() {
                bell.clear();
            }
            let events = polls.get(2).map_or(PollFlags::empty(), PollFd::revents);
            let quiet = holding && port.tick(link);
            ready = wait != Wait::Backend
                || watch && !events.is_empty()
                || quiet
                || port.must_look()
                || seat.is_returned();
            let give_up = left == Some(Duration::ZERO);
            if since.is_some() && (give_up || !events.difference(PollFlags::IN).is_empty()) {
                let before = port.counts();
                port.transmit(link, give_up);
                if give_up || port.counts() != before {
                    // Patience begins again.
                    since = None;
                }
            }
        }
    }
}

impl<M: Memory + Send + Sync + 'static> Device<M> for NetDevice {
    fn kind(&self) -> u32 {
        VIRTIO_ID_NET
    }

    fn features(&self) -> u64 {
        self.handle.port.features()
    }

    fn queues(&self) -> usize {
        Net::QUEUES
    }

    fn config(&self) -> Vec<u8> {
        self.handle.port.config()
    }

    fn attach(&mut self, link: &Arc<Link<M>>, poller: &Arc<Poller>) -> Result<()> {
        let weak = Arc::downgrade(link);
        let changed = move || {
            if let Some(link) = weak.upgrade() {
                link.config_changed();
            }
        };
        // A device has one transport, so the cell is empty.
        let _ = self.handle.changed.set(Box::new(changed));
        let (handle, bell) = (self.handle.clone(), self.bell.clone());
        let receive =
            Arc::new(Receive { link: link.clone(), port: handle.port.clone(), bell: bell.clone() });
        let seat = poller.add(receive, bell.clone())?;
        // As above.
        let _ = self.holder.set(seat.holder());
        let holder = seat.holder();
        let thread = Thread { link: link.clone(), handle, bell, seat, holder };
        self.worker = Some(Worker::start("virtio-net", move |stop| thread.run(stop))?);
        Ok(())
    }

    fn activate(&self, features: u64) -> Result<()> {
        self.handle.port.accept(features)
    }

    fn notify(&self, link: &Link<M>, queue: usize) {
        let port = &self.handle.port;
        if queue == TRANSMIT {
            let Some(holder) = self.holder.get() else { return };
            port.set_turn(holder.turn());
            if port.transmit(link, false) {
                holder.hold(true);
                self.bell.ring();
            }
            if port.is_holding() && port.receive_between(link) == Wait::Closed {
                self.bell.ring();
            }
        }
        if queue == RECEIVE || port.is_blocked() {
            self.bell.ring();
        }
    }

    fn reset(&self) {
        self.handle.port.reset();
    }
}

#[cfg(test)]
mod tests;
