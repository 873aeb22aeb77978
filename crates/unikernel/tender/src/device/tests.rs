//! Devices of a guest that does not run.

use super::*;
use crate::elf;
use crate::layout::Layout;
use crate::memory::Memory;
use kyozon_devices::disk::MemoryDisk;
use kyozon_devices::net::{Net, RECEIVE};
use std::time::{Duration, Instant};

const QUEUE: u64 = GUEST_HEAP_BASE;
const AVAILABLE: u64 = QUEUE + 0x1000;
const USED: u64 = QUEUE + 0x2000;
const DATA: u64 = QUEUE + 0x3000;

fn memory() -> Memory {
    let file = elf::tests::image();
    let image = elf::parse(&file).unwrap();
    let layout = Layout::new(&image, 1 << 20).unwrap();
    Memory::new(&image, &file, layout, false).unwrap()
}

fn token() -> EventFd {
    EventFd::new(libc::EFD_NONBLOCK).unwrap()
}

fn disk(memory: &Memory, token: &EventFd, name: &str) -> Result<Device> {
    let block = Block::new(Box::new(MemoryDisk::new(vec![9; 4096])), false, name);
    let queues = vec![Arc::new(Queue::new().unwrap())];
    Device::new(name, Model::Block(Mutex::new(block)), queues, Heap::of(memory), token)
}

fn put(memory: &Memory, at: u64, words: &[u16]) {
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    memory.write(at, &bytes).unwrap();
}

/// Offers one chain of descriptors, as the only entry of the queue.
fn offer(memory: &Memory, descriptors: &[(u64, u32, u16, u16)]) {
    for (i, (address, bytes, flags, next)) in descriptors.iter().enumerate() {
        memory.write(QUEUE + 16 * i as u64, &address.to_le_bytes()).unwrap();
        let (low, high) = (*bytes as u16, (*bytes >> 16) as u16);
        put(memory, QUEUE + 16 * i as u64 + 8, &[low, high, *flags, *next]);
    }
    put(memory, AVAILABLE, &[0, 1, 0]);
}

fn wait_for(token: &EventFd) {
    let end = Instant::now() + Duration::from_secs(10);
    while token.read().is_err() {
        assert!(Instant::now() < end, "the guest was not woken");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn queues_must_lie_in_the_heap() {
    let (memory, token) = (memory(), token());
    let mut devices = Devices::default();
    devices.add(disk(&memory, &token, "a").unwrap()).unwrap();
    let heap = memory.layout.heap;
    let start = |size, table, available, used| devices.start([0, 0, size, table, available, used]);
    for outside in [
        0,
        heap.base - 16,
        heap.base + heap.bytes,
        heap.base + heap.bytes - 16,
        memory.layout.stack.base,
        memory.layout.tls.base,
        GUEST_SYSTEM_BASE,
        GUEST_IMAGE_BASE + 0x1000,
        !15,
    ] {
        assert_eq!(start(8, outside, AVAILABLE, USED), Err(ERROR_ADDRESS), "{outside:#x}");
        assert_eq!(start(8, QUEUE, outside, USED), Err(ERROR_ADDRESS), "{outside:#x}");
        assert_eq!(start(8, QUEUE, AVAILABLE, outside), Err(ERROR_ADDRESS), "{outside:#x}");
    }
    for size in [0, 3, 512, 1 << 16, 1 << 16 | 8, u64::MAX] {
        assert_eq!(start(size, QUEUE, AVAILABLE, USED), Err(ERROR_ARGUMENT), "{size}");
    }
    assert_eq!(devices.state(0, 0), Ok(QUEUE_STOPPED));
    assert_eq!(start(8, QUEUE, AVAILABLE, USED), Ok(0));
    assert_eq!(start(8, QUEUE, AVAILABLE, USED), Err(ERROR_EXISTS));
    assert_eq!((devices.state(0, 0), devices.stop(0, 0)), (Ok(QUEUE_RUNNING), Ok(0)));
    for (device, queue) in [(1, 0), (0, 1), (u64::MAX, 0), (0, u64::MAX), (1 << 32, 0)] {
        assert_eq!(devices.state(device, queue), Err(ERROR_NAME));
        assert_eq!(devices.stop(device, queue), Err(ERROR_NAME));
        assert_eq!(devices.start([device, queue, 8, QUEUE, AVAILABLE, USED]), Err(ERROR_NAME));
    }
}

#[test]
fn a_doorbell_is_served_and_the_guest_woken() {
    let (memory, token, stop) = (memory(), token(), token());
    let mut devices = Devices::default();
    devices.add(disk(&memory, &token, "a").unwrap()).unwrap();
    devices.start([0, 0, 8, QUEUE, AVAILABLE, USED]).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| devices.iter().next().unwrap().work(&stop));
        // Sector 1, 512 bytes, and the status.
        memory.write(DATA + 8, &1_u64.to_le_bytes()).unwrap();
        offer(&memory, &[(DATA, 16, 1, 1), (DATA + 512, 512, 3, 2), (DATA + 1024, 1, 2, 0)]);
        devices.doorbells().next().unwrap().write(1).unwrap();
        wait_for(&token);
        assert_eq!(memory.word(DATA + 512), Ok(0x0909_0909_0909_0909));
        // An invalid entry stops the queue and wakes the guest.
        put(&memory, AVAILABLE + 2, &[77]);
        devices.doorbells().next().unwrap().write(1).unwrap();
        wait_for(&token);
        assert_eq!(devices.state(0, 0), Ok(QUEUE_FAILED));
        stop.write(1).unwrap();
    });
}

#[test]
fn a_broken_receiver_does_not_stop_the_sender() {
    let (memories, tokens) = ([memory(), memory()], [token(), token()]);
    let network = Arc::new(Network::default());
    let (mut ports, mut all) = (Vec::new(), Vec::new());
    for (i, (memory, token)) in memories.iter().zip(&tokens).enumerate() {
        let net = Net::new([2, 0, 0, 0, 0, i as u8], 1500);
        let queues = [0, 1].map(|_| Arc::new(Queue::new().unwrap()));
        ports.push((net.clone(), queues[RECEIVE].clone(), Heap::of(memory), token));
        let model = Model::Net(net, network.clone(), i);
        let mut devices = Devices::default();
        let device = Device::new("lan", model, queues.to_vec(), Heap::of(memory), token);
        devices.add(device.unwrap()).unwrap();
        all.push(devices);
    }
    network.connect(ports).unwrap();
    all[0].start([0, 1, 8, QUEUE, AVAILABLE, USED]).unwrap();
    let send = || {
        memories[0]
            .write(DATA, &[[0; 12].as_slice(), &[2, 0, 0, 0, 0, 1], &[5; 60]].concat())
            .unwrap();
        offer(&memories[0], &[(DATA, 78, 0, 0)]);
        all[0].iter().next().unwrap().serve(TRANSMIT)
    };
    // The receiver's queue is stopped.
    assert!(send().wake && tokens[1].read().is_err());
    all[0].stop(0, 1).unwrap();
    put(&memories[0], USED, &[0; 2]);
    all[0].start([0, 1, 8, QUEUE, AVAILABLE, USED]).unwrap();
    // The receiver has a buffer.
    all[1].start([0, 0, 8, QUEUE, AVAILABLE, USED]).unwrap();
    offer(&memories[1], &[(DATA, 2000, 2, 0)]);
    assert!(send().wake && tokens[1].read().is_ok());
    let mut frame = [0; 78];
    memories[1].read(DATA, &mut frame).unwrap();
    assert_eq!(
        (frame[10], &frame[12..18], &frame[18..]),
        (1, &[2, 0, 0, 0, 0, 1][..], &[5; 60][..])
    );
    // The receiver breaks its queue; the sender continues.
    put(&memories[1], AVAILABLE + 2, &[99]);
    all[0].stop(0, 1).unwrap();
    all[0].start([0, 1, 8, QUEUE, AVAILABLE, USED]).unwrap();
    assert!(send().wake && tokens[1].read().is_ok());
    assert_eq!((all[0].state(0, 1), all[1].state(0, 0)), (Ok(QUEUE_RUNNING), Ok(QUEUE_FAILED)));
}

#[test]
fn devices_describe_themselves() {
    let (memory, token) = (memory(), token());
    let mut devices = Devices::default();
    for name in ["a", "b"] {
        devices.add(disk(&memory, &token, name).unwrap()).unwrap();
    }
    let info = devices.info(1).unwrap();
    assert_eq!(info.len(), size_of::<DeviceInfo>());
    let word = |at: usize| u32::from_le_bytes(info[at..at + 4].try_into().unwrap());
    use std::mem::offset_of;
    assert_eq!((info[0], info[1]), (b'b', 0));
    assert_eq!(word(offset_of!(DeviceInfo, kind)), DEVICE_BLOCK);
    assert_eq!(word(offset_of!(DeviceInfo, queues)), 1);
    assert_eq!(word(offset_of!(DeviceInfo, doorbell)), QUEUE_DOORBELL + 1);
    assert_eq!(word(offset_of!(DeviceInfo, config_bytes)), 8);
    assert_eq!(word(offset_of!(DeviceInfo, config)), 8);
    assert_eq!(devices.info(2), Err(ERROR_NAME));
    assert!(devices.add(disk(&memory, &token, "a").unwrap()).is_err());
    assert!(disk(&memory, &token, "a b").is_err());
    for i in 2..MAX_QUEUES {
        devices.add(disk(&memory, &token, &i.to_string()).unwrap()).unwrap();
    }
    assert!(devices.add(disk(&memory, &token, "one-more").unwrap()).is_err());
}
