//! Reads the structures that a PVH loader leaves in memory.
//!
//! Reference: Xen, `xen/include/public/arch-x86/hvm/start_info.h`, version 1 of `hvm_start_info`. They are
//! untrusted: each address is read through [`Physical`], which knows the addresses that can be read.

use super::memory::Ranges;
use kyozon_abi::layer::Range;

const MAGIC: u32 = 0x336e_c578;
/// The first version with a memory map.
const VERSION: u32 = 1;
const START_INFO_BYTES: usize = 56;
const MODULE_BYTES: usize = 32;
const MEMORY_BYTES: usize = 24;
/// Entries of [`MEMORY_BYTES`] each; further ones are ignored.
const MEMORY_ENTRIES_MAX: u32 = 256;
const TYPE_RAM: u32 = 1;
/// Longest command line, with its zero byte.
pub const COMMAND_BYTES: usize = 512;

/// Memory by physical address.
pub trait Physical {
    /// Copies the bytes from `address` on. False if they cannot be read; the contents of `into` are unspecified then.
    fn read(&self, address: u64, into: &mut [u8]) -> bool;
}

/// The loader's start information.
#[derive(Clone, Debug)]
pub struct StartInfo {
    /// The first module: address and bytes, all of it in RAM.
    pub module: Range,
    /// RAM, as the loader lists it: not aligned, not in order.
    pub ram: Ranges,
    command: [u8; COMMAND_BYTES],
    command_bytes: usize,
}

impl StartInfo {
    /// The command line.
    ///
    /// # Errors
    ///
    /// The bytes are not text.
    pub fn command(&self) -> Result<&str, &'static str> {
        core::str::from_utf8(&self.command[..self.command_bytes])
            .map_err(|_| "the command line is not text")
    }
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

/// Reads the structure at `address` and what it points to.
pub fn read(memory: &impl Physical, address: u64) -> Result<StartInfo, &'static str> {
    let mut info = [0; START_INFO_BYTES];
    if !memory.read(address, &mut info) || half(&info, 0) != MAGIC {
        return Err(
            "no PVH start information: boot it with -kernel under QEMU, or another PVH loader",
        );
    }
    if half(&info, 4) < VERSION {
        return Err("the PVH loader gives no memory map");
    }
    let ram = read_ram(memory, word(&info, 40), half(&info, 48))?;
    let mut module = [0; MODULE_BYTES];
    if half(&info, 12) == 0 || !memory.read(word(&info, 16), &mut module) {
        return Err("no cokernel: pass its image as the first module (-initrd under QEMU)");
    }
    let module = Range { base: word(&module, 0), bytes: word(&module, 8) };
    if !crate::linux::contains(ram.as_slice(), module.base, module.bytes) {
        return Err("the cokernel's image is not in RAM");
    }
    let mut start = StartInfo { module, ram, command: [0; COMMAND_BYTES], command_bytes: 0 };
    start.command_bytes = read_command(memory, word(&info, 24), &mut start.command)?;
    Ok(start)
}

fn read_ram(memory: &impl Physical, list: u64, entries: u32) -> Result<Ranges, &'static str> {
    let mut ram = Ranges::default();
    for i in 0..entries.min(MEMORY_ENTRIES_MAX) {
        let mut entry = [0; MEMORY_BYTES];
        let at = list.checked_add(u64::from(i) * MEMORY_BYTES as u64);
        if !at.is_some_and(|at| memory.read(at, &mut entry)) {
            return Err("the PVH loader's memory map cannot be read");
        }
        let range = Range { base: word(&entry, 0), bytes: word(&entry, 8) };
        if half(&entry, 16) == TYPE_RAM && range.base.checked_add(range.bytes).is_some() {
            ram.push(range);
        }
    }
    Ok(ram)
}

fn read_command(
    memory: &impl Physical,
    address: u64,
    into: &mut [u8; COMMAND_BYTES],
) -> Result<usize, &'static str> {
    if address == 0 {
        return Ok(0);
    }
    for i in 0..COMMAND_BYTES {
        let at = address.checked_add(i as u64);
        if !at.is_some_and(|at| memory.read(at, &mut into[i..=i])) {
            return Err("the command line cannot be read");
        }
        if into[i] == 0 {
            return Ok(i);
        }
    }
    Err("the command line is too long")
}

#[cfg(test)]
mod tests {
    use super::*;

    const INFO: u64 = 0x100;
    const MODULES: u64 = 0x200;
    const COMMAND: u64 = 0x300;
    const MAP: u64 = 0x400;

    struct Fake(Vec<u8>);

    impl Physical for Fake {
        fn read(&self, address: u64, into: &mut [u8]) -> bool {
            let Some(end) = address.checked_add(into.len() as u64) else { return false };
            if end > self.0.len() as u64 {
                return false;
            }
            into.copy_from_slice(&self.0[address as usize..end as usize]);
            true
        }
    }

    impl Fake {
        fn set(&mut self, at: u64, bytes: &[u8]) {
            self.0[at as usize..at as usize + bytes.len()].copy_from_slice(bytes);
        }
        fn set_word(&mut self, at: u64, value: u64) {
            self.set(at, &value.to_le_bytes());
        }
        fn set_half(&mut self, at: u64, value: u32) {
            self.set(at, &value.to_le_bytes());
        }
    }

    fn good() -> Fake {
        let mut m = Fake(vec![0; 0x1000]);
        m.set_half(INFO, MAGIC);
        m.set_half(INFO + 4, 1);
        m.set_half(INFO + 12, 1);
        m.set_word(INFO + 16, MODULES);
        m.set_word(INFO + 24, COMMAND);
        m.set_word(INFO + 40, MAP);
        m.set_half(INFO + 48, 2);
        m.set_word(MODULES, 0x8_0000);
        m.set_word(MODULES + 8, 0x1234);
        m.set(COMMAND, b"hz=1000\0");
        for (i, (base, bytes, kind)) in
            [(0, 0x10_0000, 1), (0x10_0000, 0x1000, 2)].into_iter().enumerate()
        {
            let at = MAP + i as u64 * 24;
            m.set_word(at, base);
            m.set_word(at + 8, bytes);
            m.set_half(at + 16, kind);
        }
        m
    }

    #[test]
    fn a_loader_is_understood() {
        let start = read(&good(), INFO).unwrap();
        assert_eq!(start.module, Range { base: 0x8_0000, bytes: 0x1234 });
        assert_eq!(start.command(), Ok("hz=1000"));
        assert_eq!(start.ram.as_slice(), [Range { base: 0, bytes: 0x10_0000 }]);
    }

    #[test]
    fn no_command_line_is_an_empty_one() {
        let mut m = good();
        m.set_word(INFO + 24, 0);
        assert_eq!(read(&m, INFO).unwrap().command(), Ok(""));
    }

    #[test]
    fn hostile_loaders_are_refused() {
        for bad in [0, 0xfff, 0x1000, u64::MAX, u64::MAX - 8] {
            assert!(read(&good(), bad).is_err(), "start information at {bad:#x}");
        }
        let lies: [fn(&mut Fake); 12] = [
            |m| m.set_half(INFO, 0),
            |m| m.set_half(INFO + 4, 0),
            |m| m.set_half(INFO + 12, 0),
            |m| m.set_word(INFO + 16, u64::MAX),
            |m| m.set_word(INFO + 24, u64::MAX),
            |m| m.set(COMMAND, &[b'x'; 0xd00]),
            |m| m.set_word(INFO + 40, u64::MAX - 3),
            |m| m.set_half(INFO + 48, u32::MAX),
            |m| m.set_half(INFO + 48, 0),
            |m| m.set_word(MODULES, 0x10_0000),
            |m| m.set_word(MODULES + 8, u64::MAX),
            |m| m.set_word(MODULES, u64::MAX - 5),
        ];
        for (i, lie) in lies.iter().enumerate() {
            let mut m = good();
            lie(&mut m);
            assert!(read(&m, INFO).is_err(), "lie {i}");
        }
        let mut m = good();
        m.set(COMMAND, b"\xff\0");
        assert!(read(&m, INFO).unwrap().command().is_err());
    }

    #[test]
    fn a_range_that_wraps_is_no_ram() {
        let mut m = good();
        m.set_word(MAP + 24, u64::MAX - 0xfff);
        m.set_word(MAP + 32, 0x2000);
        m.set_half(MAP + 40, 1);
        assert_eq!(read(&m, INFO).unwrap().ram.as_slice().len(), 1);
    }
}
