//! A simulated machine, for tests on the host.

use crate::boot::Boot;
use crate::elf::tests::image;
use crate::kernel::Kernel;
use crate::machine::{Frames, Machine, WORDS};
use crate::memory::{Memory, PAGE};
use crate::space;
use crate::typed::Gates;
use kyozon_abi::events::StatusWords;
use kyozon_abi::layer::*;
use kyozon_abi::task::*;
use std::collections::VecDeque;

/// Physical address of the first page, so that none is at 0.
const BASE: u64 = 0x10_0000;

/// Memory, and a log of the layer's calls.
pub struct Fake {
    pub pages: Vec<[u64; WORDS]>,
    pub memory: Memory,
    pub root: u64,
    pub ticks: VecDeque<TickEvent>,
    pub due: Option<TickEvent>,
    pub idles: u32,
    pub lines: Vec<String>,
    pub published: Vec<(u64, StatusWords)>,
    pub repairs: Vec<RepairRequest>,
    pub resets: u32,
    pub reset_how: u64,
    pub watched: Vec<(Range, u64)>,
    pub vectors_given: u32,
    pub answer: i64,
    pub cr2: u64,
    pub clock: u64,
}

impl Fake {
    /// A machine with `pages` pages.
    pub fn new(pages: usize) -> Self {
        let range = Range { base: BASE, bytes: pages as u64 * PAGE };
        Self {
            pages: vec![[0; WORDS]; pages],
            memory: Memory::new(&[range]),
            root: 0,
            ticks: VecDeque::new(),
            due: None,
            idles: 0,
            lines: Vec::new(),
            published: Vec::new(),
            repairs: Vec::new(),
            resets: 0,
            reset_how: 0,
            watched: Vec::new(),
            vectors_given: 0,
            answer: 0,
            cr2: 0,
            clock: 0,
        }
    }
}

impl Frames for Fake {
    fn page(&mut self, physical: u64) -> Option<&mut [u64; WORDS]> {
        let index = self.memory.offset(physical)? / PAGE;
        self.pages.get_mut(index as usize)
    }
}

impl Machine for Fake {
    fn enter(&mut self, root: u64) {
        self.root = root;
    }
    fn forget(&mut self, _: u64) {}
    fn fault_address(&mut self) -> u64 {
        self.cr2
    }
    fn tick(&mut self) -> Option<TickEvent> {
        self.due.take()
    }
    fn idle(&mut self) {
        self.idles += 1;
        self.due = Some(self.ticks.pop_front().expect("a thread runs, or a tick is due"));
    }
    fn task_image(&self, _: usize) -> Option<&'static [u8]> {
        Some(image().leak())
    }
    fn report(&mut self, _: u32, _: u32, line: &[u8]) -> i64 {
        self.lines.push(String::from_utf8(line.to_vec()).expect("text"));
        self.answer
    }
    fn publish(&mut self, index: u64, status: &StatusWords) -> i64 {
        self.published.push((index, *status));
        self.answer
    }
    fn repair(&mut self, request: &RepairRequest) -> i64 {
        self.repairs.push(*request);
        self.answer
    }
    fn clock(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
    fn copy_linux(&mut self, from: u64, to: u64, at: usize, words: usize) -> bool {
        if !(0x1000..0x3000).contains(&from) || from + 8 * words as u64 > 0x3000 {
            return false;
        }
        let Some(page) = self.page(to) else { return false };
        for (n, word) in page[at..at + words].iter_mut().enumerate() {
            *word = from + 8 * n as u64;
        }
        true
    }
    fn linux_registers(&mut self, registers: &mut LinuxRegisters) -> i64 {
        registers.cpu = 7;
        registers.dr7 = 0x400;
        self.answer
    }
    fn other_registers(&mut self, registers: &mut LinuxRegisters) -> i64 {
        registers.cpu = 8;
        self.answer
    }
    fn reset(&mut self, how: u64) -> i64 {
        self.resets += 1;
        self.reset_how = how;
        self.answer
    }
    fn watch(&mut self, range: Range, space: u64) -> i64 {
        self.watched.push((range, space));
        self.answer
    }
    fn writes(&mut self, writes: &mut Writes) -> i64 {
        (writes.count, writes.lost) = (2, 5);
        writes.writes[1] = Write {
            kind: WRITE_REGISTER,
            cpu: 3,
            address: 0x1008,
            before: [1, 2, 3, 4],
            after: [5, 6, 7, 8],
            rip: 9,
            cr3: 10,
        };
        self.answer
    }
    fn give_vectors(&mut self) -> bool {
        self.vectors_given += 1;
        self.answer == 0
    }
    fn window(&mut self, window: &mut Window) -> i64 {
        window.count = 1;
        window.ram[0] = Range { base: 0x1000, bytes: 0x2000 };
        self.answer
    }
}

/// The layer's top table: the kernel in entry 0, the window in entry 128; user mode has neither.
pub const TOP: [u64; WORDS] = {
    let mut top = [0; WORDS];
    top[0] = 0xaaaa_0003;
    top[128] = 0xbbbb_0023;
    top
};

/// The layer's level-3 table below: its images, and the cokernel's memory.
pub const LEVEL3: [u64; WORDS] = {
    let mut table = [0; WORDS];
    table[0] = 0xcccc_0003;
    table[64] = 0xdddd_0003;
    table
};

/// The layer's tables.
pub const TABLES: space::Kernel<'static> =
    space::Kernel { top: &TOP, level4: None, level3: &LEVEL3, low: None, root_bits: 0x7f0 };

/// The kernel's code for the calls of typed code.
pub const GATES: Gates = Gates { call: 0x2000_1000, wait: 0x2000_1100, returned: 0x2000_1200 };

/// `count` tasks on a machine of `pages` pages.
pub fn boot(count: usize, pages: usize, data: &[u8]) -> (Kernel, Fake) {
    let (mut kernel, mut fake) = (Kernel::EMPTY, Fake::new(pages));
    let mut memory = fake.memory;
    let image = image();
    let info = StartInfo { tick_hz: 100, mode: MODE_NONE, ..StartInfo::default() };
    let mut boot = Boot {
        frames: &mut fake,
        memory: &mut memory,
        tables: TABLES,
        data,
        typed: None,
        gates: GATES,
        info,
        yield_cpu: |_| {},
    };
    boot.tasks(&mut kernel, &vec![&image[..]; count]).expect("tasks");
    (kernel, fake)
}

/// A running system: kernel, machine and live registers.
pub struct System {
    pub kernel: Kernel,
    pub fake: Fake,
    pub frame: Frame,
}

impl System {
    /// A system with `count` tasks.
    pub fn new(count: usize) -> Self {
        let (mut kernel, mut fake) = boot(count, 400 * count + 200, b"");
        let frame = kernel.start(&mut fake);
        Self { kernel, fake, frame }
    }

    /// The running thread makes a system call; afterwards the next thread's registers are live.
    pub fn call(&mut self, number: u64, rdi: u64, words: [u64; 6]) -> &mut Self {
        self.call_with(number, rdi, 0, words)
    }

    /// Like [`System::call`], with a transfer in `rcx`.
    pub fn call_with(&mut self, number: u64, rdi: u64, rcx: u64, words: [u64; 6]) -> &mut Self {
        let f = &mut self.frame;
        (f.vector, f.rax, f.rdi, f.rcx) = (SYSTEM_CALL_VECTOR, number, rdi, rcx);
        [f.rsi, f.rdx, f.r8, f.r9, f.r10, f.r11] = words;
        self.trap()
    }

    /// The running thread is interrupted.
    pub fn interrupt(&mut self, vector: u64) -> &mut Self {
        self.frame.vector = vector;
        self.trap()
    }

    fn trap(&mut self) -> &mut Self {
        self.kernel.trap(&mut self.frame, &mut self.fake);
        crate::kernel::tests::check(&self.kernel);
        assert_eq!(
            self.fake.root,
            self.kernel.tasks[self.kernel.current_task()].space.root,
            "the running thread is in its own address space"
        );
        self
    }

    /// Queues tick `number`.
    pub fn tick(&mut self, number: u64) {
        self.fake.ticks.push_back(TickEvent {
            number,
            scheduled_tsc: 10 * number,
            ..TickEvent::default()
        });
    }

    /// The running thread.
    pub fn runs(&self) -> u8 {
        self.kernel.current
    }

    /// The running thread's `rax`.
    pub fn answer(&self) -> i64 {
        self.frame.rax as i64
    }

    /// The running thread's message words.
    pub fn words(&self) -> [u64; 6] {
        let f = &self.frame;
        [f.rsi, f.rdx, f.r8, f.r9, f.r10, f.r11]
    }
}
