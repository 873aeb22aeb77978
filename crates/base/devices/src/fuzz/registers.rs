//! A hostile driver of registers, with a disk or a network port behind them.

use super::{Script, Watched, DISK};
use crate::block::{Block, BlockDevice};
use crate::disk::MemoryDisk;
use crate::fake::driver::{get, notify, set_up, start};
use crate::fake::wire::Wire;
use crate::fake::{Guest, AVAILABLE, FREE, USED};
use crate::mmio::{Device, Link, Transport, Window};
use crate::net::port::Port;
use crate::net::{Net, HEADER, RECEIVE, TRANSMIT};
use std::io::Result;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::Arc;
use virtio_bindings::virtio_config::*;
use virtio_bindings::virtio_ids::VIRTIO_ID_NET;
use virtio_bindings::virtio_mmio::*;
use vm_memory::GuestMemoryMmap;

/// A network device without a thread, so that an input always has the same effect.
struct Polled(Port);

impl Device<GuestMemoryMmap> for Polled {
    fn kind(&self) -> u32 {
        VIRTIO_ID_NET
    }

    fn features(&self) -> u64 {
        self.0.features()
    }

    fn queues(&self) -> usize {
        Net::QUEUES
    }

    fn config(&self) -> Vec<u8> {
        self.0.config()
    }

    fn activate(&self, features: u64) -> Result<()> {
        self.0.accept(features)
    }

    fn notify(&self, link: &Link<GuestMemoryMmap>, queue: usize) {
        match queue {
            RECEIVE => drop(self.0.receive(link)),
            _ => drop(self.0.transmit(link, false)),
        }
    }

    fn reset(&self) {
        self.0.reset();
    }
}

/// The guest: its two queues, and the registers of its device.
struct Player {
    queues: [Guest; 2],
    window: Box<dyn Window>,
    /// The other end of the network port.
    wire: Option<Wire>,
}

impl Player {
    fn new(net: bool, read_only: bool, raised: Arc<AtomicU64>) -> Option<Self> {
        let guest = Guest::default();
        let raise = Box::new(move || {
            raised.fetch_add(1, Relaxed);
        });
        let (memory, second) = (guest.memory.clone(), guest.queue(1));
        let (window, wire): (Box<dyn Window>, _) = if net {
            let wire = Wire::new().ok()?;
            wire.state().datagrams = true;
            let port = Port::new([2, 0, 0, 0, 0, 1], 1500, Box::new(wire.clone()));
            (Box::new(Transport::new(Polled(port), memory, raise).ok()?), Some(wire))
        } else {
            let disk = Watched { disk: MemoryDisk::new(vec![1; DISK as usize]), read_only };
            let block = Block::new(Box::new(disk), read_only, "fuzz").extended();
            (Box::new(Transport::new(BlockDevice::inline(block), memory, raise).ok()?), None)
        };
        Some(Self { queues: [guest, second], window, wire })
    }

    /// Starts the device like an honest driver, with these features.
    fn start(&mut self, features: u64) {
        for at in [AVAILABLE, USED] {
            self.queues[0].poke(at, &[0; 0x400]);
        }
        self.queues = [self.queues[0].queue(0), self.queues[0].queue(1)];
        start(
            self.window.as_ref(),
            features,
            &[0, 1].map(|queue: usize| self.queues[queue].place()),
        );
    }

    fn ask(&mut self, script: &mut Script<'_>) {
        let number = script.number();
        let (kind, count) = (script.byte(), script.half());
        match &self.wire {
            Some(wire) if kind & 1 == 0 => {
                let mut packet = vec![kind; usize::from(count) % 3000];
                for (to, from) in packet.iter_mut().take(HEADER).zip(number.to_le_bytes()) {
                    *to = from & 0x85;
                }
                wire.state().direct = kind & 8 != 0;
                wire.state().room = (kind & 6 == 0).then_some(usize::from(count) % 100);
                wire.give(&packet);
                self.queues[RECEIVE].ask(&[(FREE + 0x800, u32::from(count) % 700, true)]);
            }
            Some(_) => {
                self.queues[TRANSMIT].poke(FREE, &(number & 0x0fff_ff00_0f0f).to_le_bytes());
                let pieces = [(FREE, 12, false), (FREE + 64, u32::from(count) % 3000, false)];
                self.queues[TRANSMIT].ask(&pieces);
            }
            None => {
                let kind = kind % 16;
                let header = [&[kind, 0, 0, 0, 0, 0, 0, 0], &number.to_le_bytes()[..]].concat();
                self.queues[0].poke(FREE, &header);
                let range =
                    [&(number % 80).to_le_bytes()[..], &u32::from(count % 70).to_le_bytes()];
                self.queues[0]
                    .poke(FREE + 512, &[&range.concat()[..], &[kind & 1, 0, 0, 0]].concat());
                let bytes = if kind > 10 { 16 } else { 512 * u32::from(count % 8) };
                let data = (FREE + 512, bytes, kind == 0);
                self.queues[0].ask(&[(FREE, 16, false), data, (FREE + 256, 1, true)]);
            }
        }
    }

    fn check_status(&self) {
        let status = get(self.window.as_ref(), VIRTIO_MMIO_STATUS);
        for (bit, before) in [
            (VIRTIO_CONFIG_S_DRIVER, VIRTIO_CONFIG_S_ACKNOWLEDGE),
            (VIRTIO_CONFIG_S_FEATURES_OK, VIRTIO_CONFIG_S_DRIVER),
            (VIRTIO_CONFIG_S_DRIVER_OK, VIRTIO_CONFIG_S_FEATURES_OK),
        ] {
            assert!(status & bit == 0 || status & before != 0, "{status:#x}");
        }
        if status & VIRTIO_CONFIG_S_FEATURES_OK == 0 {
            assert_eq!(get(self.window.as_ref(), VIRTIO_MMIO_QUEUE_READY), 0);
        }
    }

    /// Rings. Nothing happens to the used rings before the driver is ready.
    fn notify(&self, queue: u32) {
        let window = self.window.as_ref();
        let running = get(window, VIRTIO_MMIO_STATUS) & VIRTIO_CONFIG_S_DRIVER_OK != 0;
        let before: [u8; 0x400] = self.queues[0].peek(USED);
        notify(window, queue);
        assert!(running || self.queues[0].peek(USED) == before);
    }

    fn reset(&self) {
        let window = self.window.as_ref();
        window.write(VIRTIO_MMIO_STATUS.into(), 4, 0);
        let registers = [VIRTIO_MMIO_STATUS, VIRTIO_MMIO_INTERRUPT_STATUS, VIRTIO_MMIO_QUEUE_READY];
        assert_eq!(registers.map(|register| get(window, register)), [0; 3]);
    }
}

/// Plays `input` as a guest that reads and writes registers. The first byte selects the device. Returns the number of
/// interrupts. Panics if the device breaks a rule.
pub fn registers(input: &[u8]) -> u64 {
    let raised = Arc::new(AtomicU64::new(0));
    let first = input.first().copied().unwrap_or(0);
    let Some(mut player) = Player::new(first & 1 != 0, first & 2 != 0, raised.clone()) else {
        return 0;
    };
    let mut script = Script(input.get(1..).unwrap_or(&[]));
    player.start(u64::MAX);
    while !script.0.is_empty() {
        match script.byte() % 16 {
            0 => {
                let (offset, size) = (u64::from(script.half()) % 4200, script.byte() % 9);
                player.window.write(offset, size, script.number());
            }
            1 => {
                let (offset, size) = (u64::from(script.half()) % 4200, script.byte() % 9);
                let value = player.window.read(offset, size);
                assert!(size >= 8 || value >> (8 * size) == 0);
            }
            // Registers that exist, as a word.
            2 | 3 => {
                let offset = u64::from(script.byte() & 0xfc);
                player.window.write(offset, 4, script.number());
            }
            4 => player.reset(),
            5 => player.start(script.number() | 1 << VIRTIO_F_VERSION_1),
            6 => player.start(u64::MAX),
            7 => {
                let queue = usize::from(script.byte() % 2);
                let place = script.place(&player.queues[queue]);
                set_up(player.window.as_ref(), queue as u32, place);
            }
            8 => script.poke(&player.queues[0]),
            9..=12 => player.ask(&mut script),
            _ => player.notify(u32::from(script.byte() % 3)),
        }
        player.check_status();
    }
    raised.load(Relaxed)
}
