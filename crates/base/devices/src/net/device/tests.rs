use super::*;
use crate::fake::driver::{get, notify, set, start, ALL};
use crate::fake::wire::Wire;
use crate::fake::{Guest, FREE};
use crate::mmio::{Transport, Window};
use crate::net::backend::{pair, Stream};
use crate::net::HEADER;
use std::sync::mpsc::{channel, Receiver};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use virtio_bindings::virtio_mmio::*;
use virtio_bindings::virtio_net::VIRTIO_NET_F_HOST_TSO4;
use vm_memory::GuestMemoryMmap;

const LONG: Duration = Duration::from_secs(10);
const BUFFER: u64 = FREE + 0x4000;

struct Setting {
    transport: Transport<GuestMemoryMmap, NetDevice>,
    handle: NetHandle,
    receive: Guest,
    transmit: Guest,
    raised: Receiver<()>,
    features: u64,
}

fn setting(backend: Box<dyn Backend>) -> Setting {
    let (receive, (sender, raised)) = (Guest::default(), channel());
    let device = NetDevice::new([2, 0, 0, 0, 0, 1], 1500, backend).unwrap();
    let (handle, sender) = (device.handle(), Mutex::new(sender));
    let raise = Box::new(move || {
        // The test may have ended.
        let _ = sender.lock().unwrap().send(());
    });
    let transport = Transport::new(device, receive.memory.clone(), raise).unwrap();
    let transmit = receive.queue(1);
    let features = start(&transport, ALL, &[receive.place(), transmit.place()]);
    Setting { transport, handle, receive, transmit, raised, features }
}

impl Setting {
    fn buffer(&mut self, bytes: u32) {
        self.receive.ask(&[(BUFFER, bytes, true)]);
        notify(&self.transport, RECEIVE as u32);
    }

    fn send(&mut self, frame: &[u8]) {
        self.transmit.poke(FREE, &[0; HEADER]);
        self.transmit.poke(FREE + HEADER as u64, frame);
        self.transmit.ask(&[(FREE, (HEADER + frame.len()) as u32, false)]);
        notify(&self.transport, TRANSMIT as u32);
        while self.transmit.answer().is_some() {}
    }

    /// The next answer of the receive queue.
    fn received(&mut self) -> u32 {
        let end = Instant::now() + LONG;
        loop {
            if let Some((_, bytes)) = self.receive.answer() {
                return bytes;
            }
            let _ = self.raised.recv_timeout(Duration::from_millis(100));
            assert!(Instant::now() < end, "nothing was received");
        }
    }
}

fn wait_for(mut what: impl FnMut() -> bool) {
    let end = Instant::now() + LONG;
    while !what() {
        assert!(Instant::now() < end);
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn two_devices_of_a_pair_exchange_frames() {
    let (a, b) = pair().unwrap();
    let (mut a, mut b) = (setting(Box::new(a)), setting(Box::new(b)));
    assert_ne!(a.features >> VIRTIO_NET_F_HOST_TSO4 & 1, 0);
    for round in 0..500_u16 {
        let frame = [&round.to_le_bytes()[..], &[3; 98]].concat();
        let (from, to) = if round % 2 == 0 { (&mut a, &mut b) } else { (&mut b, &mut a) };
        to.buffer(2000);
        from.send(&frame);
        assert_eq!(to.received(), 112);
        assert_eq!(to.receive.peek::<100>(BUFFER + 12)[..], frame);
    }
    assert_eq!((a.handle.counts().sent, b.handle.counts().received), (250, 250));
}

#[test]
fn a_receiver_without_buffers_loses_nothing_and_does_not_spin() {
    let wire = Wire::new().unwrap();
    let mut s = setting(Box::new(wire.clone()));
    for byte in 0..20 {
        wire.give(&[byte; 72][..].iter().map(|_| 0).chain([byte]).collect::<Vec<u8>>());
    }
    wait_for(|| wire.state().asked > 0);
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(wire.state().asked, 1, "the thread waits for the guest");
    for byte in 0..20 {
        s.buffer(2000);
        assert_eq!((s.received(), s.receive.peek::<1>(BUFFER + 72)), (73, [byte]));
    }
    assert_eq!(s.handle.counts().received, 20);
}

#[test]
fn packets_that_the_backend_does_not_take_are_sent_or_lost_later() {
    let wire = Wire::new().unwrap();
    let mut s = setting(Box::new(wire.clone()));
    wire.state().room = Some(0);
    // The descriptor of this backend is always ready to be written, so the thread tries again at once.
    s.send(&[1; 60]);
    s.send(&[2; 60]);
    wire.state().room = None;
    wait_for(|| s.handle.counts().sent == 2);
    assert_eq!(wire.state().from_device.len(), 2);
}

#[test]
fn packets_for_a_peer_that_does_not_read_are_lost_after_a_second() {
    let (ours, theirs) = pair().unwrap();
    let mut s = setting(Box::new(ours));
    let start = Instant::now();
    while !s.handle.port.is_blocked() {
        s.send(&[1; 1500]);
    }
    assert_eq!(s.handle.counts().lost_out, 0);
    // Buffers for the other direction do not extend the wait.
    wait_for(|| {
        s.buffer(2000);
        s.handle.counts().lost_out > 0
    });
    assert!(start.elapsed() >= PATIENCE);
    wait_for(|| !s.handle.port.is_blocked());
    assert!(s.handle.link());
    drop(theirs);
}

#[test]
fn the_other_ends_loss_is_the_links_loss() {
    let (ours, theirs) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut s = setting(Box::new(Stream::new(ours.into()).unwrap()));
    // No offloads: a stream has no headers.
    assert_eq!(s.features >> VIRTIO_NET_F_HOST_TSO4 & 1, 0);
    assert_eq!((s.transport.read(0x106, 2), s.transport.read(0x10a, 2)), (1, 1500));
    let generation = get(&s.transport, VIRTIO_MMIO_CONFIG_GENERATION);
    drop(theirs);
    s.raised.recv_timeout(LONG).unwrap();
    assert_eq!(get(&s.transport, VIRTIO_MMIO_INTERRUPT_STATUS), VIRTIO_MMIO_INT_CONFIG);
    assert_eq!(get(&s.transport, VIRTIO_MMIO_CONFIG_GENERATION), generation + 1);
    assert_eq!((s.transport.read(0x106, 2), s.handle.link()), (0, false));
    s.send(&[1; 60]);
    assert_eq!(s.handle.counts().lost_out, 1);
}

#[test]
fn the_host_can_take_the_link_away() {
    let s = setting(Box::new(Wire::new().unwrap()));
    s.handle.set_link(false);
    s.handle.set_link(false);
    s.raised.recv_timeout(LONG).unwrap();
    assert!(s.raised.try_recv().is_err(), "it was down before");
    assert_eq!(s.transport.read(0x106, 2), 0);
    s.handle.set_link(true);
    assert_eq!(s.transport.read(0x106, 2), 1);
    // The handle outlives the device.
    let handle = s.handle.clone();
    drop(s);
    handle.set_link(false);
    assert!(!handle.link());
}

#[test]
fn a_reset_device_uses_no_memory_until_it_starts_again() {
    let wire = Wire::new().unwrap();
    let mut s = setting(Box::new(wire.clone()));
    s.buffer(2000);
    set(&s.transport, VIRTIO_MMIO_STATUS, 0);
    s.receive.poke(BUFFER, &[9; 100]);
    wire.give(&[0; 72]);
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((s.receive.peek::<100>(BUFFER), wire.state().to_device.len()), ([9; 100], 1));
    for at in [crate::fake::AVAILABLE, crate::fake::USED] {
        s.receive.poke(at, &[0; 0x400]);
    }
    (s.receive, s.transmit) = (s.receive.queue(0), s.receive.queue(1));
    start(&s.transport, ALL, &[s.receive.place(), s.transmit.place()]);
    s.buffer(2000);
    assert_eq!(s.received(), 72);
}

#[test]
fn packets_of_a_guest_that_does_not_ring_are_sent() {
    let wire = Wire::new().unwrap();
    let mut s = setting(Box::new(wire.clone()));
    // The guest sends many packets without a pause, and then computes. If this thread does not run for a while, the
    // device wants a ring again before the last packet is there.
    let sent = (0..100).any(|_| {
        (0..32).for_each(|_| s.send(&[5; 200]));
        wire.state().from_device.clear();
        s.transmit.poke(FREE, &[0; HEADER]);
        s.transmit.ask(&[(FREE, 500, false)]);
        let end = Instant::now() + Duration::from_millis(20);
        while wire.state().from_device.is_empty() && Instant::now() < end {
            std::thread::yield_now();
        }
        let sent = !wire.state().from_device.is_empty();
        notify(&s.transport, TRANSMIT as u32);
        while s.transmit.answer().is_some() {}
        sent
    });
    assert!(sent, "the packet still waits");
}
