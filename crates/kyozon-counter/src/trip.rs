//! From the blocks that ran to the trips that they make up.

use crate::code::{Event, EVENTS};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// A piece of code that runs from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address behind it.
    pub end: u64,
    /// How many there are.
    pub instructions: u32,
    /// How many there are of each event.
    pub events: [u8; EVENTS.len()],
    /// Whether the last one may go elsewhere by itself.
    pub transfers: bool,
    /// Whether it waits for an interrupt.
    pub halts: bool,
}

/// What a stage of a trip costs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Cost {
    instructions: u32,
    events: [u32; EVENTS.len()],
}

impl Cost {
    fn add(&mut self, block: &Block) {
        self.instructions += block.instructions;
        for (sum, n) in self.events.iter_mut().zip(block.events) {
            *sum += u32::from(n);
        }
    }

    fn take(&mut self, other: &mut Self) {
        self.instructions += other.instructions;
        for (sum, n) in self.events.iter_mut().zip(other.events) {
            *sum += n;
        }
        *other = Self::default();
    }
}

/// Names of the stages, in the order of time.
const STAGES: [&str; 5] = ["entry", "path", "cokernel", "back", "exit"];

/// Where in a trip the last block was.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Not in one.
    #[default]
    Outside,
    Entry,
    Path,
    Cokernel,
    Back,
}

/// Which addresses are whose.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// The module, the trampoline, the layer.
    pub ours: Vec<Range<u64>>,
    /// The cokernel.
    pub cokernel: Range<u64>,
}

impl Map {
    /// Whether code at `address` may belong to a trip: ours, or a kernel's.
    pub fn is_watched(&self, address: u64) -> bool {
        address >> 63 != 0 || self.is_ours(address) || self.cokernel.contains(&address)
    }

    fn is_ours(&self, address: u64) -> bool {
        self.ours.iter().any(|range| range.contains(&address))
    }
}

/// Puts trips together.
#[derive(Debug, Default)]
pub struct Recorder {
    map: Map,
    stage: Stage,
    /// In the order of [`STAGES`].
    costs: [Cost; STAGES.len()],
    /// Whether the last block was ours.
    ours: bool,
    /// What came after the last block of ours: it is `back` if one of ours follows, `exit` if not.
    tail: Cost,
    /// End and last instruction of the last block, and whether it could go elsewhere.
    before: (u64, u64, bool),
    /// The last block ended in an IRET.
    returned: bool,
    /// Pages that were touched since CR3 was written in this trip, while it was `ours`.
    pages: Option<Vec<u64>>,
    /// Where the trip that is followed began.
    began: u64,
    /// Where trips began. An interrupt behind a jump is known by these only: the jump may have gone there.
    gates: Vec<u64>,
    /// How many trips of each kind there were.
    trips: BTreeMap<[Cost; STAGES.len()], u64>,
}

const PAGE_SHIFT: u32 = 12;

impl Recorder {
    /// Nothing seen so far.
    pub fn new(map: Map) -> Self {
        Self { map, ..Self::default() }
    }

    /// A block begins.
    pub fn block(&mut self, block: &Block) {
        let (end, last, transferred) =
            std::mem::replace(&mut self.before, (block.end, block.last, block.transfers));
        // A string instruction is a block that follows itself.
        let interrupted = !transferred && block.start != end && block.start != last
            || self.gates.contains(&block.start);
        self.settle_return(block.start);
        if interrupted && matches!(self.stage, Stage::Outside | Stage::Entry) {
            self.begin(block.start);
        }
        if self.stage == Stage::Outside {
            return;
        }
        self.place(block);
        if block.events[Event::Cr3Write as usize] > 0 {
            self.pages = (self.stage == Stage::Path).then(Vec::new);
        } else {
            self.touch(block.start);
        }
        self.returned = block.events[Event::Iret as usize] > 0;
        if block.halts {
            self.end(); // no Linux to go back to
        }
    }

    /// A load or store; `mmio` where it was outside of RAM.
    pub fn access(&mut self, address: u64, mmio: bool) {
        if self.stage == Stage::Outside {
            return;
        }
        if mmio {
            self.here().events[Event::Mmio as usize] += 1;
        }
        self.touch(address);
    }

    fn begin(&mut self, gate: u64) {
        self.began = gate;
        self.costs = Default::default();
        self.tail = Cost::default();
        self.pages = None;
        self.returned = false;
        self.stage = Stage::Entry;
    }

    /// After an IRET: to where it was, or out of the trip.
    fn settle_return(&mut self, to: u64) {
        if !std::mem::take(&mut self.returned) {
            return;
        }
        // A kernel's address is Linux's, also in a module: ours are left by a call's return.
        let kernel = to >> 63 != 0;
        let inside = !kernel && (self.map.is_ours(to) || self.map.cokernel.contains(&to));
        let user = !kernel && !inside;
        if user {
            let cost = self.here();
            cost.events[Event::Iret as usize] -= 1;
            cost.events[Event::IretUser as usize] += 1;
        }
        if !inside {
            self.end();
        }
    }

    fn end(&mut self) {
        if self.stage == Stage::Back {
            self.costs[4] = std::mem::take(&mut self.tail);
            *self.trips.entry(self.costs).or_default() += 1;
            if !self.gates.contains(&self.began) {
                self.gates.push(self.began);
            }
        }
        self.stage = Stage::Outside;
    }

    /// Where what happens is counted at this moment.
    fn here(&mut self) -> &mut Cost {
        match self.stage {
            Stage::Outside | Stage::Entry => &mut self.costs[0],
            Stage::Path => &mut self.costs[1],
            Stage::Cokernel => &mut self.costs[2],
            Stage::Back if self.ours => &mut self.costs[3],
            Stage::Back => &mut self.tail,
        }
    }

    fn place(&mut self, block: &Block) {
        self.ours = self.map.is_ours(block.start);
        let ours = self.ours;
        if self.map.cokernel.contains(&block.start) {
            self.stage = self.stage.max(Stage::Cokernel);
            self.costs[2].add(block);
            return;
        }
        self.stage = match self.stage {
            Stage::Entry if ours => Stage::Path,
            Stage::Cokernel => Stage::Back,
            stage => stage,
        };
        if self.stage == Stage::Back && ours {
            let (costs, tail) = (&mut self.costs, &mut self.tail);
            costs[3].take(tail);
        }
        self.here().add(block);
    }

    fn touch(&mut self, address: u64) {
        if self.stage != Stage::Path {
            return;
        }
        if let Some(pages) = &mut self.pages {
            if !pages.contains(&(address >> PAGE_SHIFT)) {
                pages.push(address >> PAGE_SHIFT);
                self.costs[1].events[Event::Refill as usize] += 1;
            }
        }
    }

    /// One line for each kind of trip: `COUNT entry INSTRUCTIONS EVENT=N ... path ...`.
    pub fn report(&self) -> String {
        let mut text = String::new();
        for (stages, count) in &self.trips {
            let _ = write!(text, "{count}");
            for (name, cost) in STAGES.iter().zip(stages) {
                let _ = write!(text, " {name} {}", cost.instructions);
                for (event, n) in EVENTS.iter().zip(cost.events).filter(|(_, n)| *n > 0) {
                    let _ = write!(text, " {event}={n}");
                }
            }
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINUX: u64 = 0xffff_ffff_8100_0000;
    const MODULE: u64 = 0xffff_ffff_c000_0000;
    const LAYER: u64 = 0x1000_0000;
    const COKERNEL: u64 = 0x2000_0000;

    fn recorder() -> Recorder {
        let ours = vec![MODULE..MODULE + 0x1000, LAYER..COKERNEL];
        Recorder::new(Map { ours, cokernel: COKERNEL..COKERNEL + 0x1000 })
    }

    fn block(start: u64, instructions: u32, transfers: bool) -> Block {
        let end = start + u64::from(instructions);
        Block { start, last: end - 1, end, instructions, transfers, ..Block::default() }
    }

    fn with(mut block: Block, event: Event) -> Block {
        block.events[event as usize] += 1;
        block
    }

    fn trip(r: &mut Recorder, interrupted: u64, back: u64) {
        r.block(&block(interrupted, 5, false));
        trip_from_gate(r, back);
    }

    fn trip_from_gate(r: &mut Recorder, back: u64) {
        r.block(&block(LINUX, 20, true));
        r.block(&block(MODULE, 7, true));
        r.block(&block(LINUX + 0x100, 1, true)); // a thunk
        r.block(&with(block(MODULE + 0x100, 3, true), Event::Cr3Write));
        r.access(LAYER + 8, false);
        r.block(&with(block(LAYER, 4, true), Event::Iret));
        r.block(&block(LAYER + 0x40, 2, true));
        r.block(&block(COKERNEL, 9, true));
        r.block(&block(LAYER + 0x80, 6, true));
        r.block(&block(LINUX + 0x100, 1, true));
        r.block(&block(MODULE + 0x200, 8, true));
        r.access(0, true);
        r.block(&block(LINUX + 0x180, 2, true));
        r.access(0, true);
        r.block(&with(block(LINUX + 0x200, 28, true), Event::Iret));
        r.block(&block(back, 5, true));
    }

    #[test]
    fn a_trip_has_its_stages() {
        let mut r = recorder();
        trip(&mut r, LINUX + 0x1000, LINUX + 0x1005);
        trip(&mut r, LINUX + 0x1000, LINUX + 0x1005);
        assert_eq!(
            r.report(),
            "2 entry 20 path 17 cr3_write=1 iretq_same_ring=1 cr3_tlb_refill=1 cokernel 9 back 15 mmio=1 \
             exit 30 iretq_same_ring=1 mmio=1\n"
        );
    }

    #[test]
    fn behind_a_jump_a_trip_is_known_by_its_gate() {
        let mut r = recorder();
        for transfers in [true, false, true] {
            r.block(&block(LINUX + 0x1000, 5, transfers));
            trip_from_gate(&mut r, LINUX + 0x1005);
        }
        assert!(
            r.report().starts_with("2 entry"),
            "the first one could not be known: {}",
            r.report()
        );
    }

    #[test]
    fn a_return_to_user_mode_is_dearer() {
        let mut r = recorder();
        trip(&mut r, 0x40_1000, 0x40_1005);
        assert!(r.report().contains("exit 30 iretq_user=1 mmio=1"), "{}", r.report());
    }

    #[test]
    fn without_linux_a_trip_ends_where_the_cpu_waits() {
        let mut r = recorder();
        let wait = Block { halts: true, ..block(LAYER, 1, false) };
        r.block(&wait);
        for _ in 0..3 {
            r.block(&block(LAYER + 0x100, 20, true));
            r.block(&block(COKERNEL, 9, true));
            r.block(&with(block(LAYER + 0x200, 6, true), Event::Iret));
            r.block(&wait);
        }
        assert_eq!(r.report(), "3 entry 0 path 20 cokernel 9 back 7 iretq_same_ring=1 exit 0\n");
    }

    #[test]
    fn other_interrupts_are_no_trips() {
        let mut r = recorder();
        for _ in 0..3 {
            r.block(&block(0x40_1000, 5, false));
            r.block(&with(block(LINUX, 20, true), Event::Iret));
            r.block(&block(0x40_1005, 5, true));
        }
        r.block(&block(0x40_1000, 5, false));
        r.block(&block(0x40_1004, 1, false)); // a string instruction, again
        r.block(&block(0x40_1005, 1, false));
        assert_eq!(r.report(), "");
    }
}
