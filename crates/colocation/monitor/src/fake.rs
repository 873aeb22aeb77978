//! For tests: a small physical memory, and a profile without a real kernel.

pub mod image;

pub use image::{note, vmlinux, BUILD};

use crate::check::{Budget, Check};
use crate::finding::Finding;
use crate::kernel::Kernel;
use crate::memory::{KernelMemory, Page, PAGE_BYTES};
use crate::profile::btf::Btf;
use crate::profile::build::{encode, Image, LayoutEntry};
use crate::profile::format::Header;
use crate::profile::listing::{SymbolLine, SymbolNames};
use crate::profile::vmlinux as payload;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::LinuxRegisters;
use std::boxed::Box;
use std::format;
use std::string::{String, ToString};
use std::vec::Vec;

/// The fake kernel's image: virtual address, physical address, bytes.
pub const TEXT: u64 = 0xffff_ffff_8100_0000;
pub const TEXT_PHYSICAL: u64 = 0x10_0000;
pub const IMAGE_BYTES: u64 = 0x10_0000;
/// Start of the direct map if the profile has no `page_offset_base`.
pub const DIRECT: u64 = 0xffff_8880_0000_0000;

/// The members of a module that its owner is known by, for [`profile`].
pub const MODULES: [(&str, u64, u64); 6] = [
    ("module.list", 0, 16),
    ("module.name", 16, 56),
    ("module.mem", 128, 112),
    ("module_memory", 0, 16),
    ("module_memory.base", 0, 8),
    ("module_memory.size", 8, 4),
];

/// Memory from physical address 0 on.
pub struct FakeMemory {
    pages: Vec<Box<Page>>,
}

impl FakeMemory {
    pub fn new(bytes: u64) -> Self {
        let page = || Box::new([const { AtomicU64::new(0) }; 512]);
        Self { pages: (0..bytes / PAGE_BYTES).map(|_| page()).collect() }
    }

    fn word(&self, physical: u64) -> &AtomicU64 {
        &self.pages[(physical / PAGE_BYTES) as usize][(physical % PAGE_BYTES / 8) as usize]
    }

    pub fn bytes(&self) -> u64 {
        self.pages.len() as u64 * PAGE_BYTES
    }

    pub fn get(&self, physical: u64) -> u64 {
        self.word(physical).load(Relaxed)
    }

    pub fn set(&self, physical: u64, value: u64) {
        self.word(physical).store(value, Relaxed);
    }

    /// Writes `bytes` at any alignment.
    pub fn put(&self, physical: u64, bytes: &[u8]) {
        for (at, byte) in (physical..).zip(bytes) {
            let mut word = self.get(at & !7).to_le_bytes();
            word[(at % 8) as usize] = *byte;
            self.set(at & !7, u64::from_le_bytes(word));
        }
    }
}

impl KernelMemory for FakeMemory {
    fn page(&self, physical: u64) -> Option<&Page> {
        self.pages.get((physical / PAGE_BYTES) as usize).map(|page| &**page)
    }
}

/// A small memory, and two CPUs whose registers a test sets; `None`: the other one has not shown its own.
pub struct FakeMachine {
    pub memory: FakeMemory,
    pub registers: LinuxRegisters,
    pub other: Option<LinuxRegisters>,
}

impl KernelMemory for FakeMachine {
    fn page(&self, physical: u64) -> Option<&Page> {
        self.memory.page(physical)
    }

    fn registers(&self) -> Option<LinuxRegisters> {
        Some(self.registers)
    }

    fn other_registers(&self) -> Option<LinuxRegisters> {
        self.other
    }
}

/// The physical address of `address` in the fake image or direct map.
pub fn physical(address: u64) -> u64 {
    if address >= TEXT {
        address - TEXT + TEXT_PHYSICAL
    } else {
        address - DIRECT
    }
}

/// The findings of some steps of `check`, as lines.
pub fn lines<M: KernelMemory>(
    check: &mut impl Check<M>,
    kernel: &Kernel<'_, M>,
    steps: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    for _ in 0..steps {
        let mut found = |f: Finding| {
            let Finding { what, symbol, owner, expected, found, .. } = f;
            lines.push(format!("{what}, {symbol}: {expected}, {found}, {owner}"));
        };
        check.step(kernel, &mut CallBudget(1000), &mut found, &mut 0);
    }
    lines
}

/// A profile of `symbols` (address, kind, name) and `layouts` (key as in the format, offset or value, bytes).
pub fn profile(symbols: &[(u64, u8, &str)], layouts: &[(&str, u64, u64)]) -> Vec<u8> {
    profile_with(symbols, layouts, None)
}

/// The same with fingerprints of `vmlinux`, an unpacked kernel image with the build ID [`BUILD`].
pub fn profile_with(
    symbols: &[(u64, u8, &str)],
    layouts: &[(&str, u64, u64)],
    vmlinux: Option<&[u8]>,
) -> Vec<u8> {
    let header = Header {
        text: TEXT,
        end: TEXT + IMAGE_BYTES,
        text_physical: TEXT_PHYSICAL,
        ..Header::default()
    };
    let mut lines: Vec<SymbolLine<'_>> =
        symbols.iter().map(|&(address, kind, name)| SymbolLine { address, kind, name }).collect();
    lines.sort();
    let names = SymbolNames::new(&lines);
    let mut layouts: Vec<LayoutEntry> =
        layouts.iter().map(|&(key, value, bytes)| (key.to_string(), value, bytes)).collect();
    layouts.sort();
    let fingerprints = vmlinux.map(|vmlinux| {
        let image = Image { vmlinux, notes: &note(BUILD), key: [3, 4], calls_changed: false };
        payload::fingerprints(&image, &names, &Btf::parse(&no_types()).unwrap(), &header).unwrap()
    });
    encode(header, &names, &layouts, "6.0.0-fake", fingerprints.unwrap_or_default()).unwrap()
}

/// Type information without types.
pub fn no_types() -> Vec<u8> {
    [0x1_eb9f, 24, 0, 0, 0, 1u32].into_iter().flat_map(u32::to_le_bytes).chain([0]).collect()
}

/// A slice that ends at the given number of calls of [`Budget::spent`].
pub struct CallBudget(pub u64);

impl Budget for CallBudget {
    fn spent(&mut self) -> bool {
        self.0 = self.0.saturating_sub(1);
        self.0 == 0
    }
}

/// Pseudo-random numbers, the same in each run (xorshift64*).
pub struct RandomNumbers(pub u64);

impl RandomNumbers {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// Number of rounds of a fuzz test: `KYOZON_FUZZ`, or `default`.
pub fn rounds(default: u64) -> u64 {
    std::env::var("KYOZON_FUZZ").ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}
