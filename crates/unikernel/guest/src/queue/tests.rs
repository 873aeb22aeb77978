//! The queue against the tender's device model, in one process.

extern crate std;
use super::*;
use kyozon_devices::ring::{Place, Ring, Served, State};
use vm_memory::{GuestAddress, GuestMemoryMmap, GuestRegionMmap, MmapRegion};

/// The memory of a queue and of a buffer, as guest memory at the same addresses.
fn memory(queue: &Queue, buffer: &Shared) -> GuestMemoryMmap {
    let region = |shared: &Shared| {
        let bytes = shared.layout.size().next_multiple_of(4096);
        // SAFETY: the memory outlives its use in the test, and only raw pointers to it exist.
        let region = unsafe { MmapRegion::build_raw(shared.at(0), bytes, 0, 0) }.unwrap();
        GuestRegionMmap::new(region, GuestAddress(shared.at(0) as u64)).unwrap()
    };
    let mut regions = std::vec![region(&queue.memory), region(buffer)];
    regions.sort_by_key(|region| vm_memory::GuestMemoryRegion::start_addr(region).0);
    GuestMemoryMmap::from_regions(regions).unwrap()
}

fn queue_and_device(size: u16) -> (Queue, Shared, GuestMemoryMmap, Ring) {
    // Whole pages, as guest memory regions need.
    let (mut queue, buffer) = (Queue::new(size).unwrap(), Shared::new(4096).unwrap());
    let bytes = queue.memory.layout.size().next_multiple_of(4096);
    queue.memory = Shared::new(bytes).unwrap();
    let memory = memory(&queue, &buffer);
    let [size, descriptors, available, used] = queue.layout();
    let mut ring = Ring::default();
    let place = Place { size: size as u16, descriptors, available, used };
    ring.start(&memory, place).unwrap();
    (queue, buffer, memory, ring)
}

#[test]
fn used_entries_make_room() {
    for size in [1_u16, 4, 256] {
        let (mut queue, buffer, memory, mut ring) = queue_and_device(size);
        let at = buffer.at(0) as u64;
        for round in 0..500_u32 {
            let pieces = [(at, 4, false), (at + 8, 4, true), (at + 16, 4, true)];
            let pieces = &pieces[..3.min(usize::from(size))];
            let mut heads = Vec::new();
            // SAFETY: no other code uses the buffer.
            while let Some(head) = unsafe { queue.add(pieces) } {
                heads.push(head);
            }
            assert_eq!(heads.len(), usize::from(size) / pieces.len());
            assert!(queue.wants_ring());
            let mut serve = || ring.serve(&memory, |_, chain| Ok(chain.to_write() as u32 + round));
            let served = serve();
            assert_eq!(served.count, heads.len());
            // A device that took its maximum per call is called again.
            assert!(!served.more || serve() == Served::default());
            for head in heads {
                let written = 4 * (pieces.len() as u32 - 1);
                assert_eq!(queue.take(), Some((head, written + round)));
            }
            assert_eq!((queue.take(), queue.room()), (None, size));
        }
        assert_eq!(ring.state(), State::Running);
    }
}

#[test]
fn only_a_sleeping_driver_is_woken() {
    let (mut queue, buffer, memory, mut ring) = queue_and_device(4);
    let piece = [(buffer.at(0) as u64, 1, false)];
    // Enough rounds for all indices to wrap.
    for round in 0..40_000 {
        let wake = round % 3 != 0;
        if wake {
            assert!(queue.listen());
        } else {
            queue.ignore();
        }
        // SAFETY: no other code uses the buffer.
        let mut add = || unsafe { queue.add(&piece) }.unwrap();
        add();
        add();
        assert!(queue.is_empty());
        let served = ring.serve(&memory, |_, _| Ok(0));
        assert_eq!(served, Served { count: 2, wake, more: false });
        assert!(!queue.listen() && queue.take().is_some());
        assert!(!queue.listen() && queue.take().is_some() && queue.is_empty());
    }
}

#[test]
fn a_batch_does_not_wake_a_driver_that_is_awake() {
    let (mut queue, buffer, memory, mut ring) = queue_and_device(4);
    let piece = [(buffer.at(0) as u64, 1, false)];
    for _ in 0..20_000 {
        for _ in 0..4 {
            // SAFETY: no other code uses the buffer.
            unsafe { queue.add(&piece) }.unwrap();
        }
        // The device asks once whether to wake, after it returned a whole batch.
        for entry in 0..4 {
            let (head, chain) = ring.next(&memory).unwrap();
            ring.put(&memory, head, chain, 0);
            if entry == 2 {
                assert!(queue.take().is_some() && queue.take().is_some());
                queue.ignore();
            }
        }
        assert!(!ring.wants_wake(&memory));
        assert!(queue.take().is_some() && queue.take().is_some() && queue.is_empty());
    }
}

#[test]
fn a_device_is_notified_once_of_new_entries() {
    let (mut queue, buffer, memory, mut ring) = queue_and_device(4);
    let piece = [(buffer.at(0) as u64, 1, false)];
    for _ in 0..40_000 {
        // SAFETY: no other code uses the buffer.
        let mut add = || unsafe { queue.add(&piece) }.unwrap();
        add();
        add();
        assert!(queue.wants_ring());
        assert!(!queue.wants_ring(), "no new entries");
        // SAFETY: as above.
        unsafe { queue.add(&piece) }.unwrap();
        assert!(!queue.wants_ring(), "the device has not polled since");
        assert_eq!(ring.serve(&memory, |_, _| Ok(0)).count, 3);
        assert!((0..3).all(|_| queue.take().is_some()));
    }
}

#[test]
fn entries_without_room_are_refused() {
    let (mut queue, buffer, ..) = queue_and_device(2);
    let piece = (buffer.at(0) as u64, 1, false);
    // SAFETY: no code uses the buffer.
    unsafe {
        assert_eq!(queue.add(&[]), None);
        assert_eq!(queue.add(&[piece; 3]), None);
        assert_eq!(queue.add(&[piece; 2]), Some(0));
        assert_eq!(queue.add(&[piece]), None);
    }
}
