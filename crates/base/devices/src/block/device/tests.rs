use super::*;
use crate::disk::{Disk, MemoryDisk};
use crate::fake::driver::{get, notify, set, start, ALL};
use crate::fake::{Guest, FREE};
use crate::mmio::{Transport, Window};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::mpsc::{channel, Receiver, Sender};
use std::sync::Mutex;
use std::time::Duration;
use virtio_bindings::virtio_mmio::VIRTIO_MMIO_STATUS;
use vm_memory::{GuestMemoryMmap, VolatileSlice};

const LONG: Duration = Duration::from_secs(10);

struct Setting {
    guest: Guest,
    transport: Arc<Transport<GuestMemoryMmap, BlockDevice>>,
    raised: Receiver<()>,
}

fn setting(device: BlockDevice) -> Setting {
    let (guest, (sender, raised)) = (Guest::default(), channel());
    let sender = Mutex::new(sender);
    let raise = Box::new(move || {
        // The test may have ended.
        let _ = sender.lock().unwrap().send(());
    });
    let transport = Arc::new(Transport::new(device, guest.memory.clone(), raise).unwrap());
    start(&*transport, ALL, &[guest.place()]);
    Setting { guest, transport, raised }
}

fn block(disk: impl Disk + 'static) -> Block {
    Block::new(Box::new(disk), false, "disk").extended()
}

impl Setting {
    /// Asks for sector 0.
    fn ask(&mut self) {
        self.guest.ask(&[(FREE, 16, false), (FREE + 512, 512, true), (FREE + 256, 1, true)]);
        notify(&*self.transport, 0);
    }
}

#[test]
fn both_ways_serve_requests_and_raise_interrupts() {
    let disk = || block(MemoryDisk::new(vec![6; 4096]));
    for device in [BlockDevice::inline(disk()), BlockDevice::threaded(disk()).unwrap()] {
        let mut s = setting(device);
        for _ in 0..1000 {
            s.guest.poke(FREE + 256, &[77; 512]);
            s.ask();
            s.raised.recv_timeout(LONG).unwrap();
            assert_eq!(s.guest.answer().unwrap().1, 513);
            assert_eq!(s.guest.peek::<257>(FREE + 256)[..], [&[0][..], &[77; 255], &[6]].concat());
        }
    }
}

/// A disk whose reads wait for a permission.
struct Slow {
    begun: Sender<()>,
    go_on: Receiver<()>,
}

impl Disk for Slow {
    fn bytes(&self) -> u64 {
        4096
    }

    fn read(&mut self, _: u64, _: &[VolatileSlice<'_>]) -> Result<()> {
        self.begun.send(()).unwrap();
        self.go_on.recv().unwrap();
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[VolatileSlice<'_>]) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_slow_disk_delays_the_guest_only_when_it_stops_the_queue() {
    let ((begun, has_begun), (permit, go_on)) = (channel(), channel());
    let mut s = setting(BlockDevice::threaded(block(Slow { begun, go_on })).unwrap());
    s.ask();
    has_begun.recv_timeout(LONG).unwrap();
    // The guest's calls return although the disk has not finished.
    s.ask();
    assert_eq!(get(&*s.transport, VIRTIO_MMIO_STATUS), 15);
    assert!(s.guest.answer().is_none() && s.transport.read(0x100, 8) == 8);
    let (done, reset) = channel();
    let transport = s.transport.clone();
    let thread = std::thread::spawn(move || {
        set(&*transport, VIRTIO_MMIO_STATUS, 0);
        done.send(()).unwrap();
    });
    // The thread may write to the guest's memory.
    assert!(reset.recv_timeout(Duration::from_millis(50)).is_err());
    permit.send(()).unwrap();
    // It may have taken the second request before the reset.
    permit.send(()).unwrap();
    reset.recv_timeout(LONG).unwrap();
    thread.join().unwrap();
    let before: [u8; 256] = s.guest.peek(crate::fake::USED);
    s.ask();
    std::thread::sleep(Duration::from_millis(10));
    assert_eq!(s.guest.peek::<256>(crate::fake::USED), before);
}

#[test]
fn a_dropped_device_has_no_thread() {
    let disk = Arc::new(());
    struct Holds(MemoryDisk, #[expect(dead_code)] Arc<()>);
    impl Disk for Holds {
        fn bytes(&self) -> u64 {
            self.0.bytes()
        }
        fn read(&mut self, at: u64, to: &[VolatileSlice<'_>]) -> Result<()> {
            self.0.read(at, to)
        }
        fn write(&mut self, at: u64, from: &[VolatileSlice<'_>]) -> Result<()> {
            self.0.write(at, from)
        }
        fn flush(&mut self) -> Result<()> {
            self.0.flush()
        }
    }
    let block = block(Holds(MemoryDisk::new(vec![0; 4096]), disk.clone()));
    let s = setting(BlockDevice::threaded(block).unwrap());
    assert_eq!(Arc::strong_count(&disk), 2);
    drop(s);
    assert_eq!(Arc::strong_count(&disk), 1);
}

#[test]
fn a_broken_queue_of_a_thread_asks_for_a_reset() {
    let mut s = setting(BlockDevice::threaded(block(MemoryDisk::new(vec![6; 4096]))).unwrap());
    s.guest.ask(&[(0, 16, false)]);
    notify(&*s.transport, 0);
    s.raised.recv_timeout(LONG).unwrap();
    assert_eq!(get(&*s.transport, VIRTIO_MMIO_STATUS), 15 | 64);
    s.guest = Guest::with_memory(s.guest.memory.clone());
    s.guest.poke(crate::fake::AVAILABLE, &[0; 4]);
    s.guest.poke(crate::fake::USED, &[0; 4]);
    start(&*s.transport, ALL, &[s.guest.place()]);
    s.ask();
    s.raised.recv_timeout(LONG).unwrap();
    assert_eq!(s.guest.answer().unwrap().1, 513);
}

/// Tells where its stack is when it is read.
struct Probe(Arc<AtomicUsize>);

impl Disk for Probe {
    fn bytes(&self) -> u64 {
        4096
    }

    fn read(&mut self, _: u64, _: &[VolatileSlice<'_>]) -> Result<()> {
        let here = 0_u8;
        self.0.store((&raw const here).addr(), SeqCst);
        Ok(())
    }

    fn write(&mut self, _: u64, _: &[VolatileSlice<'_>]) -> Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_guests_call_needs_little_stack() {
    let at = Arc::new(AtomicUsize::new(0));
    let mut s = setting(BlockDevice::inline(block(Probe(at.clone()))));
    let here = 0_u8;
    s.ask();
    let used = (&raw const here).addr() - at.load(SeqCst);
    println!("{used} bytes of stack to the disk");
    // A kernel's stack has 16 KiB. Without optimisation frames are several times larger.
    assert!(used < if cfg!(debug_assertions) { 6144 } else { 2048 });
}
