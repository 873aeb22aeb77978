use super::*;
use crate::block::{Block, BlockDevice};
use crate::disk::MemoryDisk;
use crate::fake::driver::{start, ALL};
use crate::fake::{Guest, FREE};
use std::sync::Mutex;
use vm_memory::GuestMemoryMmap;

fn disk(name: &str) -> BlockDevice {
    BlockDevice::inline(Block::new(Box::new(MemoryDisk::new(vec![6; 4096])), false, name))
}

fn bus(address: u64, irq: u32) -> Bus<GuestMemoryMmap> {
    Bus::new(Guest::default().memory, Slot { address, irq }, Arc::new(|_| {})).unwrap()
}

#[test]
fn each_device_has_an_address_and_an_interrupt() {
    let (mut bus, base) = (bus(0x1000_0000, 7), 0x1000_0000);
    assert_eq!((bus.command_line(), bus.read(base, 4)), (String::new(), None));
    for (name, irq) in [("a", 7), ("b", 8), ("c", 9)] {
        let slot = bus.add(disk(name)).unwrap();
        assert_eq!(slot, Slot { address: base + 4096 * u64::from(irq - 7), irq });
    }
    assert_eq!(
        bus.command_line(),
        "virtio_mmio.device=4K@0x10000000:7 virtio_mmio.device=4K@0x10001000:8 \
         virtio_mmio.device=4K@0x10002000:9"
    );
    for address in [base + 8, base + 4096 + 8, base + 8192 + 8] {
        assert_eq!(bus.access(address, 4, false, 0), 2);
    }
    for address in [0, base - 4, base + 3 * 4096, u64::MAX] {
        assert_eq!((bus.read(address, 4), bus.write(address, 4, 1)), (None, false));
        assert_eq!(bus.access(address, 4, false, 0), u64::MAX);
    }
}

#[test]
fn an_interrupt_has_the_number_of_its_device() {
    let (mut guest, raised) = (Guest::default(), Arc::new(Mutex::new(Vec::new())));
    let list = raised.clone();
    let raise = Arc::new(move |irq| list.lock().unwrap().push(irq));
    let mut bus = Bus::new(guest.memory.clone(), Slot { address: 0, irq: 30 }, raise).unwrap();
    bus.add(disk("a")).unwrap();
    bus.add(disk("b")).unwrap();
    start(bus.windows[1].as_ref(), ALL, &[guest.place()]);
    guest.ask(&[(FREE, 16, false), (FREE + 512, 512, true), (FREE + 256, 1, true)]);
    bus.access(4096 + 0x50, 4, true, 0);
    assert_eq!((guest.answer(), raised.lock().unwrap().as_slice()), (Some((0, 513)), &[31][..]));
    assert_eq!(guest.peek(FREE + 512), [6; 512]);
}

#[test]
fn a_place_that_does_not_fit_is_refused() {
    let memory = Guest::default().memory;
    assert!(Bus::new(memory, Slot { address: 0x1001, irq: 1 }, Arc::new(|_| {})).is_err());
    let mut last = bus(u64::MAX - 8191, 1);
    last.add(disk("a")).unwrap();
    assert!(last.add(disk("b")).is_err());
    let mut last = bus(0x1000, u32::MAX);
    last.add(disk("a")).unwrap();
    assert!(last.add(disk("b")).is_err());
}
