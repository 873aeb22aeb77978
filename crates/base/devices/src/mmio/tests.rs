use super::*;
use crate::fake::driver::{add_status, get, negotiate, notify, set, set_up, start, ALL};
use crate::fake::{Guest, BASE, BYTES, DESCRIPTORS, FREE};
use crate::mmio::registers::{TRANSPORT, VIRTIO_MMIO_QUEUE_RESET};
use crate::ring::{Place, Served, MAX_SIZE};
use std::io::ErrorKind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::SeqCst};
use std::sync::OnceLock;
use virtio_bindings::virtio_config::*;
use virtio_bindings::virtio_ring::VIRTIO_RING_F_EVENT_IDX;
use vm_memory::GuestMemoryMmap;

const DRIVER: u32 = VIRTIO_CONFIG_S_ACKNOWLEDGE | VIRTIO_CONFIG_S_DRIVER;
const NEGOTIATED: u32 = DRIVER | VIRTIO_CONFIG_S_FEATURES_OK;
const RUNNING: u32 = NEGOTIATED | VIRTIO_CONFIG_S_DRIVER_OK;
const VERSION_1: u64 = 1 << VIRTIO_F_VERSION_1;

/// A device with two queues that returns every entry.
#[derive(Default)]
struct Echo {
    features: AtomicU64,
    fails: AtomicBool,
    served: AtomicUsize,
    resets: AtomicUsize,
}

impl Device<GuestMemoryMmap> for Echo {
    fn kind(&self) -> u32 {
        42
    }

    fn features(&self) -> u64 {
        1 << 5 | 1 << 50
    }

    fn queues(&self) -> usize {
        2
    }

    fn config(&self) -> Vec<u8> {
        (1..=10).collect()
    }

    fn activate(&self, features: u64) -> Result<()> {
        self.features.store(features, SeqCst);
        if self.fails.load(SeqCst) {
            return Err(ErrorKind::Unsupported.into());
        }
        Ok(())
    }

    fn notify(&self, link: &Link<GuestMemoryMmap>, queue: usize) {
        let served = link.serve(queue, |ring, memory| {
            let served = ring.serve(memory, |_, _| Ok(0));
            (served, served.wake)
        });
        self.served.fetch_add(served.map_or(0, |served: Served| served.count), SeqCst);
    }

    fn reset(&self) {
        self.resets.fetch_add(1, SeqCst);
    }
}

struct Setting {
    guest: Guest,
    transport: Transport<GuestMemoryMmap, Echo>,
    raised: Arc<AtomicUsize>,
}

fn setting() -> Setting {
    let (guest, raised) = (Guest::default(), Arc::new(AtomicUsize::new(0)));
    let count = raised.clone();
    let raise = Box::new(move || {
        count.fetch_add(1, SeqCst);
    });
    let transport = Transport::new(Echo::default(), guest.memory.clone(), raise).unwrap();
    Setting { guest, transport, raised }
}

impl Setting {
    fn status(&self) -> u32 {
        get(&self.transport, VIRTIO_MMIO_STATUS)
    }

    fn served(&self) -> usize {
        self.transport.device.served.load(SeqCst)
    }

    /// Starts the device with both queues; the second one is returned.
    fn start(&self) -> Guest {
        let second = self.guest.queue(1);
        start(&self.transport, ALL, &[self.guest.place(), second.place()]);
        assert_eq!(self.status(), RUNNING);
        second
    }
}

#[test]
fn registers_identify_the_device() {
    let s = setting();
    let read = |offset, size| s.transport.read(offset, size);
    assert_eq!(read(0, 4), u64::from(u32::from_le_bytes(*b"virt")));
    assert_eq!([read(4, 4), read(8, 4)], [2, 42]);
    assert_eq!(read(0x34, 4), u64::from(MAX_SIZE));
    set(&s.transport, VIRTIO_MMIO_QUEUE_SEL, 2);
    assert_eq!([read(0x34, 4), read(0x44, 4)], [0, 0]);
    assert_eq!([read(0xb0, 4), read(0xb4, 4)], [0xffff_ffff; 2]);
    let wanted = TRANSPORT | 1 << 5 | 1 << 50;
    assert_eq!(negotiate(&s.transport, ALL), wanted);
    set(&s.transport, VIRTIO_MMIO_DEVICE_FEATURES_SEL, 2);
    assert_eq!(read(0x10, 4), 0);
}

#[test]
fn the_configuration_is_read_in_any_size_and_zero_behind_its_end() {
    let s = setting();
    let read = |offset: u64, size| s.transport.read(0x100 + offset, size);
    assert_eq!([read(0, 1), read(1, 2), read(4, 4)], [1, 0x0302, 0x0807_0605]);
    assert_eq!(read(0, 8), 0x0807_0605_0403_0201);
    assert_eq!([read(8, 4), read(10, 1), read(0xeff, 8)], [0x0a09, 0, 0]);
    s.transport.write(0x100, 1, 99);
    assert_eq!(read(0, 1), 1);
}

#[test]
fn registers_take_aligned_words_only() {
    let s = setting();
    for (offset, size) in
        [(0, 1), (0, 2), (0, 8), (1, 4), (2, 4), (0x70, 3), (0, 0), (4096, 4), (u64::MAX, 4)]
    {
        assert_eq!(s.transport.read(offset, size), 0, "{offset:#x} {size}");
        s.transport.write(offset, size, u64::MAX);
    }
    s.transport.write(0x70, 1, 1);
    s.transport.write(0x71, 4, 1);
    assert_eq!(s.status(), 0);
}

#[test]
fn a_driver_cannot_skip_a_step() {
    let s = setting();
    let status = |value| {
        set(&s.transport, VIRTIO_MMIO_STATUS, value);
        s.status()
    };
    assert_eq!(status(VIRTIO_CONFIG_S_DRIVER), 0);
    assert_eq!(status(VIRTIO_CONFIG_S_DRIVER_OK), 0);
    // Before the driver is there, features and queues cannot be set.
    set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES, 1 << 5);
    assert!(!set_up(&s.transport, 0, s.guest.place()));
    assert_eq!(status(DRIVER), DRIVER);
    assert_eq!(status(DRIVER | VIRTIO_CONFIG_S_DRIVER_OK), DRIVER);
    // The features lack version 1.
    assert_eq!(status(NEGOTIATED), DRIVER);
    assert!(!set_up(&s.transport, 0, s.guest.place()));
    negotiate(&s.transport, VERSION_1);
    assert_eq!(s.status(), NEGOTIATED);
    // A bit cannot be cleared, nor can a feature be added afterwards.
    assert_eq!(status(VIRTIO_CONFIG_S_ACKNOWLEDGE), NEGOTIATED);
    set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 0);
    set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES, 1 << 5);
    assert_eq!(status(RUNNING), RUNNING);
    assert_eq!(s.transport.device.features.load(SeqCst), VERSION_1);
    // A driver that failed can only reset the device.
    assert_eq!(status(RUNNING | VIRTIO_CONFIG_S_FAILED), RUNNING | VIRTIO_CONFIG_S_FAILED);
    assert!(!set_up(&s.transport, 1, s.guest.place()));
    assert_eq!(status(0), 0);
    assert_eq!(s.transport.device.resets.load(SeqCst), 2);
}

#[test]
fn features_that_are_not_offered_are_refused() {
    let s = setting();
    for (half, bits) in [(0, 1), (0, 1 << 5 | 1 << 6), (1, 1 << 1), (1, u32::MAX)] {
        negotiate(&s.transport, 0);
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES_SEL, 1);
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES, 1);
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES, bits | u32::from(half == 1));
        add_status(&s.transport, VIRTIO_CONFIG_S_FEATURES_OK);
        assert_eq!(s.status(), DRIVER, "{half} {bits:#x}");
    }
    // A half that does not exist changes nothing.
    for half in [2, 7, u32::MAX] {
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES_SEL, half);
        set(&s.transport, VIRTIO_MMIO_DRIVER_FEATURES, u32::MAX);
        set(&s.transport, VIRTIO_MMIO_DEVICE_FEATURES_SEL, half);
        assert_eq!(get(&s.transport, VIRTIO_MMIO_DEVICE_FEATURES), 0);
    }
    assert_eq!(s.status(), DRIVER);
}

#[test]
fn a_queue_outside_memory_is_not_ready_and_the_device_needs_a_reset() {
    let s = setting();
    let (good, end) = (s.guest.place(), BASE + BYTES as u64);
    for place in [
        Place { size: 0, ..good },
        Place { size: 3, ..good },
        Place { size: MAX_SIZE * 2, ..good },
        Place { size: u16::MAX, ..good },
        Place { descriptors: 0, ..good },
        Place { descriptors: good.descriptors + 8, ..good },
        Place { available: end, ..good },
        Place { available: BASE - 2, ..good },
        Place { used: end - 4, ..good },
        Place { used: u64::MAX - 3, ..good },
    ] {
        negotiate(&s.transport, ALL);
        assert!(!set_up(&s.transport, 0, place), "{place:x?}");
        assert_eq!(s.status(), NEGOTIATED | VIRTIO_CONFIG_S_NEEDS_RESET);
    }
    // Size registers have 32 bits.
    negotiate(&s.transport, ALL);
    set(&s.transport, VIRTIO_MMIO_QUEUE_NUM, 1 << 16 | 8);
    set(&s.transport, VIRTIO_MMIO_QUEUE_READY, 1);
    assert_eq!(get(&s.transport, VIRTIO_MMIO_QUEUE_READY), 0);
    s.start();
}

#[test]
fn a_ready_queue_keeps_its_place_until_it_is_stopped() {
    let mut s = setting();
    s.start();
    assert!(set_up(&s.transport, 0, Place { descriptors: 0, ..s.guest.place() }), "it stays ready");
    s.guest.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 0);
    assert_eq!(s.served(), 1);
    // Both ways to stop it. A value that has no meaning changes nothing.
    set(&s.transport, VIRTIO_MMIO_QUEUE_READY, 2);
    for (register, value) in [(VIRTIO_MMIO_QUEUE_READY, 0), (VIRTIO_MMIO_QUEUE_RESET, 1)] {
        assert_eq!(get(&s.transport, VIRTIO_MMIO_QUEUE_READY), 1);
        set(&s.transport, register, value);
        assert_eq!(get(&s.transport, register), 0);
        assert_eq!(get(&s.transport, VIRTIO_MMIO_QUEUE_READY), 0);
        let before = s.served();
        s.guest.ask(&[(FREE, 1, false)]);
        notify(&s.transport, 0);
        assert_eq!(s.served(), before);
        s.guest = Guest::default();
        s.guest = Guest::with_memory(
            s.transport.link.serve(1, |_, memory| (memory.clone(), false)).unwrap(),
        );
        s.guest.poke(crate::fake::AVAILABLE, &[0; 4]);
        assert!(set_up(&s.transport, 0, s.guest.place()));
        s.guest.ask(&[(FREE, 1, false)]);
        notify(&s.transport, 0);
        assert_eq!(s.served(), before + 1);
    }
    assert_eq!(s.status(), RUNNING);
}

#[test]
fn a_queue_reset_needs_its_feature() {
    let s = setting();
    start(&s.transport, ALL & !(1 << VIRTIO_F_RING_RESET), &[s.guest.place()]);
    set(&s.transport, VIRTIO_MMIO_QUEUE_SEL, 0);
    set(&s.transport, VIRTIO_MMIO_QUEUE_RESET, 1);
    assert_eq!(get(&s.transport, VIRTIO_MMIO_QUEUE_READY), 1);
}

#[test]
fn an_interrupt_has_a_reason_until_it_is_acknowledged() {
    let mut s = setting();
    let mut second = s.start();
    let pending = |s: &Setting| get(&s.transport, VIRTIO_MMIO_INTERRUPT_STATUS);
    assert_eq!((pending(&s), s.raised.load(SeqCst)), (0, 0));
    second.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 0);
    assert_eq!(s.served(), 0, "it is the other queue");
    notify(&s.transport, 1);
    assert_eq!((s.served(), pending(&s), s.raised.load(SeqCst)), (1, VIRTIO_MMIO_INT_VRING, 1));
    assert!(second.answer().is_some());
    set(&s.transport, VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_CONFIG);
    assert_eq!(pending(&s), VIRTIO_MMIO_INT_VRING);
    set(&s.transport, VIRTIO_MMIO_INTERRUPT_ACK, VIRTIO_MMIO_INT_VRING);
    assert_eq!(pending(&s), 0);
    // A change of the configuration.
    let generation = get(&s.transport, VIRTIO_MMIO_CONFIG_GENERATION);
    s.transport.link().config_changed();
    assert_eq!(get(&s.transport, VIRTIO_MMIO_CONFIG_GENERATION), generation + 1);
    assert_eq!((pending(&s), s.raised.load(SeqCst)), (VIRTIO_MMIO_INT_CONFIG, 2));
    // A queue without a number, and a reset.
    for queue in [2, 77, u32::MAX] {
        notify(&s.transport, queue);
    }
    set(&s.transport, VIRTIO_MMIO_STATUS, 0);
    s.guest.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 0);
    assert_eq!((pending(&s), s.served(), s.raised.load(SeqCst)), (0, 1, 2));
}

#[test]
fn entries_from_before_the_start_are_served_at_the_start() {
    let mut s = setting();
    negotiate(&s.transport, ALL);
    assert!(set_up(&s.transport, 0, s.guest.place()));
    s.guest.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 0);
    assert_eq!(s.served(), 0, "the driver is not ready");
    add_status(&s.transport, VIRTIO_CONFIG_S_DRIVER_OK);
    assert_eq!(s.served(), 1);
}

#[test]
fn an_ended_queue_asks_for_a_reset_once() {
    let mut s = setting();
    let mut second = s.start();
    for _ in 0..3 {
        s.guest.ask(&[(0, 1, false)]);
        notify(&s.transport, 0);
    }
    assert_eq!(s.status(), RUNNING | VIRTIO_CONFIG_S_NEEDS_RESET);
    let pending = get(&s.transport, VIRTIO_MMIO_INTERRUPT_STATUS);
    assert_ne!(pending & VIRTIO_MMIO_INT_CONFIG, 0);
    assert_eq!(s.raised.load(SeqCst), 1);
    // The other queue works.
    second.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 1);
    assert_eq!(s.served(), 1);
    s.guest.poke(DESCRIPTORS, &[0; 128]);
    s.start();
}

#[test]
fn a_device_that_cannot_start_needs_a_reset() {
    let mut s = setting();
    s.transport.device.fails.store(true, SeqCst);
    start(&s.transport, ALL, &[s.guest.place()]);
    assert_eq!(s.status(), RUNNING | VIRTIO_CONFIG_S_NEEDS_RESET);
    s.guest.ask(&[(FREE, 1, false)]);
    notify(&s.transport, 0);
    assert_eq!(s.served(), 0);
}

#[test]
fn without_event_indices_flags_decide() {
    let mut s = setting();
    let features = start(&s.transport, ALL & !(1 << VIRTIO_RING_F_EVENT_IDX), &[s.guest.place()]);
    assert_eq!(features >> VIRTIO_RING_F_EVENT_IDX & 1, 0);
    for (flags, raised) in [(0_u16, 1), (1, 1), (0, 2)] {
        s.guest.poke(crate::fake::AVAILABLE, &flags.to_le_bytes());
        s.guest.ask(&[(FREE, 1, false)]);
        notify(&s.transport, 0);
        assert_eq!(s.raised.load(SeqCst), raised, "{flags}");
    }
    assert_eq!(s.served(), 3);
}

#[test]
fn an_interrupt_handler_may_access_registers() {
    type Cell = Arc<OnceLock<Arc<Transport<GuestMemoryMmap, Echo>>>>;
    let (mut guest, cell) = (Guest::default(), Cell::default());
    let (seen, inner, count) = (Arc::new(AtomicUsize::new(0)), cell.clone(), AtomicUsize::new(0));
    let handled = seen.clone();
    let raise = Box::new(move || {
        let transport = inner.get().unwrap().as_ref();
        let pending = get(transport, VIRTIO_MMIO_INTERRUPT_STATUS);
        set(transport, VIRTIO_MMIO_INTERRUPT_ACK, pending);
        // A handler that resets the device from inside the call, once.
        if count.fetch_add(1, SeqCst) == 2 {
            set(transport, VIRTIO_MMIO_STATUS, 0);
        }
        handled.fetch_add(pending as usize, SeqCst);
    });
    let transport = Arc::new(Transport::new(Echo::default(), guest.memory.clone(), raise).unwrap());
    cell.set(transport.clone()).ok().unwrap();
    start(&*transport, ALL, &[guest.place()]);
    guest.ask(&[(FREE, 1, false)]);
    notify(&*transport, 0);
    assert!(guest.answer().is_some());
    transport.link().config_changed();
    guest.ask(&[(0, 1, false)]);
    notify(&*transport, 0);
    assert_eq!((seen.load(SeqCst), get(&*transport, VIRTIO_MMIO_STATUS)), (1 + 2 + (1 | 2), 0));
}
