//! Cases of hostile queues: a guest writes arbitrary values to every field of every ring. The devices are those of
//! [`devices`](crate::devices).

use crate::hostile::ask;
use crate::Case;
use alloc::alloc::{alloc_zeroed, Layout};
use kyozon_abi::unikernel::*;
use kyozon_unikernel::block::{Disk, SECTOR};
use kyozon_unikernel::net::Port;
use kyozon_unikernel::{boot, clock, me, println, sleep};

pub const CASES: &[Case] = &[
    ("ring-fields", fields),
    ("ring-frames", frames),
    ("ring-places", places),
    ("ring-calls", calls),
    ("ring-noise", noise),
    ("ring-storm", storm),
    ("ring-killed", killed),
    ("ring-neighbour", neighbour),
];

/// Entries of a queue.
const SIZE: u64 = 8;
/// Offsets of the rings and of the requests' data in a queue's memory.
const AVAILABLE: u64 = 0x1000;
const USED: u64 = 0x2000;
const HEADER: u64 = 0x3000;
const DATA: u64 = 0x4000;
const BYTES: usize = 0x1_0000;

const NEXT: u64 = 1;
const WRITE: u64 = 2;
const INDIRECT: u64 = 4;

/// A queue that keeps no rule.
struct Queue {
    device: u64,
    index: u64,
    base: u64,
}

impl Queue {
    fn new(device: u64, index: u64) -> Self {
        let layout = Layout::from_size_align(BYTES, 4096).unwrap();
        // SAFETY: the size is not 0. The memory is never freed, as the device may use it as long as it runs.
        let base = unsafe { alloc_zeroed(layout) } as u64;
        assert!(base != 0);
        Self { device, index, base }
    }

    /// Writes the low `bytes` bytes of a value at an offset.
    fn put(&self, offset: u64, bytes: u64, value: u64) {
        let to = (self.base + offset) as *mut u8;
        for (i, byte) in value.to_le_bytes().iter().enumerate().take(bytes as usize) {
            // SAFETY: inside the queue's memory; the device may read it meanwhile.
            unsafe { to.add(i).write_volatile(*byte) };
        }
    }

    /// Reads 2 bytes at an offset.
    fn get(&self, offset: u64) -> u16 {
        // SAFETY: inside the queue's memory, aligned.
        unsafe { ((self.base + offset) as *const u16).read_volatile() }
    }

    /// Writes a descriptor.
    fn describe(&self, index: u64, address: u64, bytes: u64, flags: u64, next: u64) {
        self.put(16 * index, 8, address);
        self.put(16 * index + 8, 4, bytes);
        self.put(16 * index + 12, 2, flags);
        self.put(16 * index + 14, 2, next);
    }

    /// Starts the queue with empty rings, and with one valid request that is not yet available: it reads sector 3.
    fn start(&self) {
        ask(ASK_QUEUE_STOP, [self.device, self.index, 0, 0, 0, 0]);
        for at in (0..HEADER).step_by(8) {
            self.put(at, 8, 0);
        }
        self.put(HEADER, 8, 0);
        self.put(HEADER + 8, 8, 3);
        self.describe(0, self.base + HEADER, 16, NEXT, 1);
        self.describe(1, self.base + DATA, 512, NEXT | WRITE, 2);
        self.describe(2, self.base + HEADER + 64, 1, WRITE, 0);
        let place = [SIZE, self.base, self.base + AVAILABLE, self.base + USED];
        let [size, descriptors, available, used] = place;
        let answer =
            ask(ASK_QUEUE_START, [self.device, self.index, size, descriptors, available, used]);
        assert_eq!(answer, 0);
    }

    /// Sets the available index, and notifies the device.
    fn offer(&self, index: u64) {
        self.put(AVAILABLE + 2, 2, index);
        self.ring();
    }

    fn ring(&self) {
        ring(QUEUE_DOORBELL + self.device as u32 + self.index as u32);
    }

    fn state(&self) -> u64 {
        ask(ASK_QUEUE_STATE, [self.device, self.index, 0, 0, 0, 0]) as u64
    }

    /// Waits until the device stopped the queue, or `used` entries were used. Returns whether it stopped the queue.
    fn ends(&self, used: u16) -> bool {
        let end = clock::now() + 10_000_000_000;
        loop {
            if self.state() == QUEUE_FAILED {
                return true;
            }
            if self.get(USED + 2) == used {
                return false;
            }
            assert!(clock::now() < end, "the queue was not stopped, and there is no answer");
            sleep::park(Some(clock::now() + 5_000_000));
        }
    }
}

fn ring(number: u32) {
    // SAFETY: the tender put a function of this type there.
    let doorbell =
        unsafe { core::mem::transmute::<usize, extern "C" fn(u32)>(boot().doorbell as usize) };
    doorbell(number);
}

/// Each bad value in each field of a descriptor stops the queue; the next start finds the device unharmed.
fn fields() {
    let queue = Queue::new(0, 0);
    let heap = boot().heap;
    let wild = [
        0,
        1,
        heap.base - 1,
        heap.base + heap.bytes - 15,
        heap.base + heap.bytes,
        boot().stack.base,
        boot().image.base,
        GUEST_SYSTEM_BASE,
        1 << 47,
        0xffff_8000_0000_0000,
        u64::MAX - 14,
        u64::MAX,
    ];
    let mut count = 0;
    let mut check = |what: &str, breaks: &dyn Fn(&Queue)| {
        queue.start();
        breaks(&queue);
        queue.offer(1);
        assert!(queue.ends(1), "{what}");
        // A stopped queue takes no more entries.
        queue.offer(2);
        assert_eq!((queue.state(), queue.get(USED + 2)), (QUEUE_FAILED, 0), "{what}");
        count += 1;
    };
    for address in wild {
        check("header's address", &|q| q.put(0, 8, address));
        check("data's address", &|q| q.put(16, 8, address));
    }
    for bytes in [heap.bytes + 1, 0x7fff_ffff, 0xffff_ffff] {
        check("data's length", &|q| q.put(16 + 8, 4, bytes));
    }
    check("header's length", &|q| q.put(8, 4, 15));
    check("no header", &|q| q.put(8, 4, 0));
    check("no status", &|q| q.describe(1, q.base + DATA, 512, 0, 0));
    check("reads behind writes", &|q| q.put(32 + 12, 2, 0));
    check("writes first", &|q| q.put(12, 2, NEXT | WRITE));
    check("a table inside", &|q| q.put(16 + 12, 2, INDIRECT));
    check("a table outside", &|q| q.describe(0, 0, 32, INDIRECT, 0));
    check("a table of itself", &|q| q.describe(0, q.base, 16, INDIRECT, 0));
    for next in [0, 1, SIZE, 0x8000, 0xffff] {
        check("the second's next", &|q| q.put(16 + 14, 2, next));
        check("the first's next", &|q| q.put(14, 2, if next == 1 { 0 } else { next }));
    }
    for head in [SIZE, 0x100, 0xffff] {
        check("the head", &|q| q.put(AVAILABLE + 4, 2, head));
    }
    for index in [SIZE + 1, 0x7fff, 0x8000, 0xffff] {
        queue.start();
        queue.offer(index);
        assert!(queue.ends(0x5555), "index {index:#x}");
        count += 1;
    }
    // Any event index is valid.
    for event in [0, 1, SIZE, 0x8000, 0xffff] {
        queue.start();
        queue.put(AVAILABLE + 4 + 2 * SIZE, 2, event);
        queue.offer(1);
        assert!(!queue.ends(1), "event {event:#x}");
    }
    // Everything is as it was.
    queue.start();
    queue.offer(1);
    assert!(!queue.ends(1));
    assert_eq!(ask(ASK_QUEUE_STOP, [0; 6]), 0);
    Disk::open("disk").unwrap().write(0, &[1; SECTOR]).unwrap();
    println!("{count} bad queues");
}

/// The same for queues of frames.
fn frames() {
    for index in 0..2 {
        let queue = Queue::new(2, index);
        let write = if index == 0 { WRITE } else { 0 };
        let other = |q: &Queue| {
            q.start();
            q.describe(0, q.base + DATA, 2000, write, 0);
        };
        let breaks: [&dyn Fn(&Queue); 6] = [
            &|q| q.put(0, 8, 0),
            &|q| q.put(8, 4, 0xffff_ffff),
            &|q| q.put(12, 2, write ^ WRITE),
            &|q| q.put(12, 2, write | NEXT),
            &|q| q.put(AVAILABLE + 4, 2, 0xffff),
            &|q| q.put(AVAILABLE + 2, 2, 0xffff),
        ];
        for (i, breaks) in breaks.iter().enumerate() {
            other(&queue);
            queue.put(AVAILABLE + 2, 2, 1);
            breaks(&queue);
            queue.ring();
            // The device polls a receive queue when a frame arrives; here no guest sends.
            assert!(index == 0 || queue.ends(1), "{i}");
        }
        assert_eq!(ask(ASK_QUEUE_STOP, [2, index, 0, 0, 0, 0]), 0);
    }
    let mut port = Port::open("lan").unwrap();
    assert_eq!(port.send(60, |frame| frame.fill(0xff)), Some(()));
    assert!(port.runs());
}

/// Queues at invalid addresses.
fn places() {
    let queue = Queue::new(0, 0);
    let heap = boot().heap;
    let good = [SIZE, queue.base, queue.base + AVAILABLE, queue.base + USED];
    let start = |[size, descriptors, available, used]: [u64; 4]| {
        ask(ASK_QUEUE_START, [0, 0, size, descriptors, available, used])
    };
    for at in [0, heap.base - 16, heap.base + heap.bytes - 16, boot().call, boot().stack.base, !15]
    {
        for part in 1..4 {
            let mut place = good;
            place[part] = at;
            assert_eq!(start(place), ERROR_ADDRESS, "{part} at {at:#x}");
        }
    }
    for (part, shift) in [(1, 8), (2, 1), (3, 2)] {
        let mut place = good;
        place[part] += shift;
        assert_eq!(start(place), ERROR_ADDRESS);
    }
    for size in [0, 3, 7, 512, 0x1_0000, 0x1_0008, u64::MAX] {
        assert_eq!(start([size, good[1], good[2], good[3]]), ERROR_ARGUMENT, "{size:#x}");
    }
    // All three parts at one address: the device overwrites its own input, and nothing else happens.
    assert_eq!(start([SIZE, queue.base, queue.base, queue.base]), 0);
    for i in 0..200 {
        queue.put(2, 2, i);
        queue.ring();
        sleep::park(Some(clock::now() + 100_000));
    }
    assert_eq!(ask(ASK_QUEUE_STOP, [0; 6]), 0);
    Disk::open("disk").unwrap().read(0, &mut [0; SECTOR]).unwrap();
}

/// Hypercalls with invalid numbers.
fn calls() {
    let info = boot().heap.base;
    for device in [3, 99, 1 << 32, u64::MAX] {
        assert_eq!(ask(ASK_DEVICE, [device, info, 0, 0, 0, 0]), ERROR_NAME);
        assert_eq!(ask(ASK_QUEUE_START, [device, 0, 8, info, info, info]), ERROR_NAME);
        assert_eq!(ask(ASK_QUEUE_STOP, [device, 0, 0, 0, 0, 0]), ERROR_NAME);
        assert_eq!(ask(ASK_QUEUE_STATE, [device, 0, 0, 0, 0, 0]), ERROR_NAME);
    }
    for queue in [1, 2, 1 << 32, u64::MAX] {
        assert_eq!(ask(ASK_QUEUE_STATE, [0, queue, 0, 0, 0, 0]), ERROR_NAME);
        assert_eq!(ask(ASK_QUEUE_STOP, [0, queue, 0, 0, 0, 0]), ERROR_NAME);
    }
    let text = crate::run as *const () as u64;
    for at in [0, text, kyozon_unikernel::boot_address(), 1 << 47, u64::MAX] {
        assert_eq!(ask(ASK_DEVICE, [0, at, 0, 0, 0, 0]), ERROR_ADDRESS, "{at:#x}");
    }
    for number in [ASK_DEVICE, ASK_QUEUE_STOP, ASK_QUEUE_STATE] {
        assert_eq!(ask(number, [0, 0, 1, 0, 0, 0]), ERROR_ARGUMENT);
    }
}

/// Writes random values to the whole queue while the device works.
fn noise() {
    let queue = Queue::new(0, 0);
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        state.wrapping_mul(0x2545_f491_4f6c_dd1d)
    };
    let mut ended = 0;
    for _ in 0..100 {
        queue.start();
        for i in 1..50 {
            queue.offer(i);
            let (at, value) = (random() % (HEADER + 16), random());
            match random() % 4 {
                0 => queue.put(at, 1 + random() % 8, value),
                1 => queue.put(at & !7, 8, queue.base + value % 0x5000),
                2 => queue.put(at & 0x7f, 2, value % 16),
                _ => queue.put(AVAILABLE + 4 + at % 16, 2, value % 10),
            }
        }
        // On a busy machine the device may not have looked yet.
        let until = clock::now() + 10_000_000;
        while ended <= 10 && queue.state() != QUEUE_FAILED && clock::now() < until {
            sleep::park(Some(clock::now() + 100_000));
        }
        ended += u32::from(queue.state() == QUEUE_FAILED);
    }
    // The device may have overwritten the heap, as the entries told it to: nothing more is allocated.
    queue.start();
    queue.offer(1);
    assert!(!queue.ends(1) && ended > 10);
    assert_eq!(ask(ASK_QUEUE_STOP, [0; 6]), 0);
}

/// Rings all doorbells, valid and invalid, as fast as possible.
fn storm() {
    let queue = Queue::new(0, 0);
    queue.start();
    for i in 0..20_000 {
        ring(QUEUE_DOORBELL + i % 40);
        queue.ring();
    }
    queue.offer(1);
    assert!(!queue.ends(1));
    for number in [127, 128, 0xffff, 0x8000_0000, u32::MAX] {
        ring(number);
    }
}

/// Crashes while requests are in progress.
fn killed() {
    let queue = Queue::new(0, 0);
    queue.start();
    for i in 0..SIZE {
        queue.put(AVAILABLE + 4 + 2 * i, 2, 0);
    }
    queue.offer(SIZE);
    // SAFETY: none: this crashes the guest.
    unsafe { core::ptr::null_mut::<u8>().write_volatile(0) };
}

/// The first guest breaks its port's queues as above, and crashes; the others exchange frames meanwhile.
fn neighbour() {
    if me() == 0 {
        frames();
        let queue = Queue::new(2, 0);
        // The device finds this queue broken when the next frame arrives.
        queue.start();
        queue.describe(0, 0, 2000, WRITE, 0);
        queue.offer(1);
        assert!(queue.ends(1));
        let sends = Queue::new(2, 1);
        sends.start();
        sends.describe(0, sends.base + DATA, 100, 0, 0);
        sends.offer(SIZE);
        // SAFETY: none: this crashes the guest.
        unsafe { core::ptr::null_mut::<u8>().write_volatile(0) };
    }
    crate::devices::exchange(&mut crate::devices::port_of(2), 1, 2);
}
