//! Assembles trips from the blocks that ran.

use crate::code::{Event, EVENTS};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::ops::Range;

/// A block of code, which runs from its start to its end.
#[derive(Clone, Debug, Default)]
pub struct Block {
    /// Address of the first instruction.
    pub start: u64,
    /// Address of the last instruction.
    pub last: u64,
    /// Address after the last instruction.
    pub end: u64,
    /// Number of instructions.
    pub instructions: u32,
    /// Number of events of each kind.
    pub events: [u8; EVENTS.len()],
    /// Whether the last instruction may transfer control.
    pub transfers: bool,
    /// Whether the last instruction is a HLT.
    pub halts: bool,
}

/// The cost of one stage of a trip, or of a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cost {
    /// Number of instructions.
    pub instructions: u32,
    /// Number of events of each kind.
    pub events: [u32; EVENTS.len()],
}

impl Cost {
    /// Adds the cost of a block.
    pub fn add(&mut self, block: &Block) {
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

/// ` NAME INSTRUCTIONS EVENT=N ...`.
pub fn describe(name: &str, cost: &Cost) -> String {
    let mut text = format!(" {name} {}", cost.instructions);
    for (event, n) in EVENTS.iter().zip(cost.events).filter(|(_, n)| *n > 0) {
        let _ = write!(text, " {event}={n}");
    }
    text
}

/// Names of the stages, in the order of time.
const STAGES: [&str; 5] = ["entry", "path", "cokernel", "back", "exit"];

/// The stage of the trip that the last block was in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Stage {
    /// Not in a trip.
    #[default]
    Outside,
    Entry,
    Path,
    Cokernel,
    Back,
}

/// The owners of addresses.
#[derive(Clone, Debug, Default)]
pub struct Map {
    /// The module, the trampoline, the layer.
    pub ours: Vec<Range<u64>>,
    /// The cokernel.
    pub cokernel: Range<u64>,
}

impl Map {
    /// Whether code at `address` may belong to a trip: it is in `ours`, or a kernel's.
    pub fn is_watched(&self, address: u64) -> bool {
        address >> 63 != 0 || self.is_ours(address) || self.cokernel.contains(&address)
    }

    /// Whether an IRET to `address` stays in the trip. A kernel's address belongs to Linux, also in a module: Kyozon's
    /// module returns to Linux from a call.
    fn is_inside(&self, address: u64) -> bool {
        address >> 63 == 0 && (self.is_ours(address) || self.cokernel.contains(&address))
    }

    fn is_ours(&self, address: u64) -> bool {
        self.ours.iter().any(|range| range.contains(&address))
    }
}

/// Assembles trips.
#[derive(Debug, Default)]
pub struct Recorder {
    map: Map,
    stage: Stage,
    /// Costs of the current trip, in the order of [`STAGES`].
    costs: [Cost; STAGES.len()],
    /// Whether the last block was in `ours`.
    ours: bool,
    /// The cost since the last block in `ours`: part of `back` if another one follows, or else `exit`.
    tail: Cost,
    /// The last block, without its counts.
    before: Before,
    /// Whether a device was accessed since that block began.
    device: bool,
    /// Whether the last block ended with an IRET.
    returned: bool,
    /// Pages accessed since CR3 was written in stage `path`.
    pages: Option<Vec<u64>>,
    /// Address where the current trip began.
    began: u64,
    /// Addresses after VMRUNs, where control arrives when a guest exits.
    exits: Vec<u64>,
    /// Whether the last block ended with a VMRUN.
    entered: bool,
    /// Whether the guest entered last is the cokernel's.
    inside: bool,
    /// Addresses where trips began. After a jump, only these reveal an interrupt: the jump may have led elsewhere.
    gates: Vec<u64>,
    /// Number of trips of each kind.
    trips: BTreeMap<[Cost; STAGES.len()], u64>,
}

/// The place of a block, and whether it could transfer control.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    start: u64,
    last: u64,
    end: u64,
    transfers: bool,
}

const PAGE_SHIFT: u32 = 12;

impl Recorder {
    /// A recorder without trips.
    pub fn new(map: Map) -> Self {
        Self { map, ..Self::default() }
    }

    /// Records that `block` begins.
    pub fn block(&mut self, block: &Block) {
        let Block { start, last, end, transfers, .. } = *block;
        let before = std::mem::replace(&mut self.before, Before { start, last, end, transfers });
        // Under the instruction clock, QEMU leaves a block at an access to a device and runs the rest as another block.
        let rest = std::mem::take(&mut self.device)
            && (before.start + 1..before.end).contains(&start)
            && end == before.end;
        if rest {
            return;
        }
        // A string instruction is a block that repeats.
        let interrupted = !before.transfers && start != before.end && start != before.last
            || self.gates.contains(&block.start);
        let exit = self.exits.contains(&block.start);
        self.settle_return(block.start);
        self.settle_entry(block.start, exit);
        self.entered = block.events[Event::Vmrun as usize] > 0;
        if self.entered && !self.exits.contains(&block.end) {
            self.exits.push(block.end);
        }
        let begins = match exit {
            true => !self.inside,
            false => interrupted && matches!(self.stage, Stage::Outside | Stage::Entry),
        };
        if begins {
            self.begin(block.start);
        }
        if self.stage == Stage::Outside {
            return;
        }
        let arrival = match exit {
            true => Some(Event::Vmexit),
            false => interrupted.then_some(Event::Delivery),
        };
        self.place(block);
        if let Some(event) = arrival {
            self.current().events[event as usize] += 1;
        }
        if block.events[Event::Cr3Write as usize] > 0 {
            self.pages = (self.stage == Stage::Path).then(Vec::new);
        } else {
            self.touch(block.start);
        }
        self.returned = block.events[Event::Iret as usize] > 0;
        if block.halts {
            self.end(); // there is no Linux to return to
        }
    }

    /// Records a load or store; `mmio` if it was outside RAM.
    pub fn access(&mut self, address: u64, mmio: bool) {
        if self.stage == Stage::Outside {
            return;
        }
        if mmio {
            self.device = true;
            self.current().events[Event::Mmio as usize] += 1;
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

    /// After a VMRUN to `to`: the cokernel's guest runs, or the trip ends. A guest that exits at once shows no address.
    fn settle_entry(&mut self, to: u64, exit: bool) {
        if !std::mem::take(&mut self.entered) || exit {
            return;
        }
        self.inside = self.map.is_inside(to);
        if !self.inside {
            self.end();
        }
    }

    /// After an IRET to `to`: counts it by its target, and ends the trip if that is outside.
    fn settle_return(&mut self, to: u64) {
        if !std::mem::take(&mut self.returned) {
            return;
        }
        let inside = self.map.is_inside(to);
        let user = to >> 63 == 0 && !inside;
        if user {
            let cost = self.current();
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

    /// The cost that the next event belongs to.
    fn current(&mut self) -> &mut Cost {
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
        self.current().add(block);
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
                text += &describe(name, cost);
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
    fn trips_have_stages() {
        let mut r = recorder();
        trip(&mut r, LINUX + 0x1000, LINUX + 0x1005);
        trip(&mut r, LINUX + 0x1000, LINUX + 0x1005);
        assert_eq!(
            r.report(),
            "2 entry 20 nmi_delivery=1 path 17 cr3_write=1 iretq_same_ring=1 cr3_tlb_refill=1 cokernel 9 back 15 mmio=1 \
             exit 30 iretq_same_ring=1 mmio=1\n"
        );
    }

    #[test]
    fn code_after_device_accesses_is_counted_once() {
        for device in [true, false] {
            let mut r = recorder();
            r.block(&block(LINUX + 0x1000, 5, false));
            r.block(&block(LINUX, 20, true));
            r.block(&block(MODULE, 7, true));
            r.block(&block(COKERNEL, 9, true));
            r.block(&block(MODULE + 0x200, 8, true));
            r.access(0, device);
            r.block(&block(MODULE + 0x203, 5, true)); // the rest, or a loop
            r.block(&with(block(LINUX + 0x200, 28, true), Event::Iret));
            r.block(&block(LINUX + 0x1005, 5, true));
            let back = if device { "back 8 mmio=1 exit" } else { "back 13 exit" };
            assert!(r.report().contains(back), "{}", r.report());
        }
    }

    #[test]
    fn after_jumps_trips_are_known_by_their_gates() {
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
    fn without_linux_a_trip_ends_at_the_halt() {
        let mut r = recorder();
        let wait = Block { halts: true, ..block(LAYER, 1, false) };
        r.block(&wait);
        for _ in 0..3 {
            r.block(&block(LAYER + 0x100, 20, true));
            r.block(&block(COKERNEL, 9, true));
            r.block(&with(block(LAYER + 0x200, 6, true), Event::Iret));
            r.block(&wait);
        }
        assert_eq!(
            r.report(),
            "3 entry 0 path 20 nmi_delivery=1 cokernel 9 back 7 iretq_same_ring=1 exit 0\n"
        );
    }

    const HOST: u64 = 0x800_0000;

    /// Linux and the cokernel are guests; the cokernel's calls its host at the end.
    fn guest_trip(r: &mut Recorder, interrupted: u64, back: u64) {
        r.block(&block(interrupted, 5, false));
        guest_trip_from_exit(r);
        r.block(&block(back, 5, true));
    }

    fn guest_trip_from_exit(r: &mut Recorder) {
        r.block(&with(block(HOST + 0x8a, 30, false), Event::Stgi));
        r.block(&with(block(HOST + 0x40, 1, true), Event::Iret)); // an NMI's gate
        r.block(&with(block(HOST + 0xa8, 2, true), Event::Vmsave));
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        r.block(&block(LAYER, 4, true));
        r.block(&block(COKERNEL, 9, true));
        r.block(&block(MODULE + 0x100, 2, true)); // VMMCALL
        r.block(&block(HOST + 0x8a, 40, true));
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
    }

    fn host() -> Recorder {
        let ours = vec![HOST..LAYER, LAYER..COKERNEL];
        let mut r = Recorder::new(Map { ours, cokernel: COKERNEL..COKERNEL + 0x1000 });
        // The launch.
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        r
    }

    #[test]
    fn guest_trips_begin_at_exit_and_end_at_entry() {
        let mut r = host();
        // In a kernel, in a module that was called from an interrupt, in user mode.
        guest_trip(&mut r, LINUX + 0x1000, LINUX + 0x1005);
        r.block(&block(LINUX + 0x2000, 20, true));
        guest_trip(&mut r, MODULE, MODULE + 5);
        guest_trip(&mut r, 0x40_1000, 0x40_1005);
        // Exits behind anything that jumps are known at once.
        r.block(&block(0x40_1000, 5, true));
        guest_trip_from_exit(&mut r);
        r.block(&block(0x40_1005, 5, true));
        assert_eq!(
            r.report(),
            "4 entry 0 path 47 iretq_same_ring=1 nmi_delivery=1 vmrun=1 vmexit=1 vmsave=1 stgi=1 cokernel 9 \
             back 52 vmrun=1 vmexit=1 exit 0\n"
        );
    }

    #[test]
    fn other_exits_are_no_trips() {
        let mut r = host();
        for at in [LINUX, MODULE, 0x40_1000] {
            r.block(&block(at, 5, false));
            r.block(&block(HOST + 0x8a, 40, true));
            r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
            r.block(&block(at + 5, 5, true));
        }
        assert_eq!(r.report(), "");
    }

    #[test]
    fn the_cokernels_own_exits_belong_to_its_trip() {
        let mut r = host();
        r.block(&block(LINUX, 5, false));
        r.block(&block(HOST + 0x8a, 40, true));
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        for _ in 0..2 {
            r.block(&block(LAYER, 4, true));
            r.block(&block(HOST + 0x8a, 20, true));
            r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        }
        r.block(&block(COKERNEL, 9, true));
        r.block(&block(HOST + 0x8a, 20, true));
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        // Left before it ran an instruction.
        r.block(&block(HOST + 0x8a, 20, true));
        r.block(&with(block(HOST + 0x80, 10, true), Event::Vmrun));
        r.block(&block(LINUX + 5, 5, true));
        assert_eq!(
            r.report(),
            "1 entry 0 path 118 vmrun=3 vmexit=3 cokernel 9 back 60 vmrun=2 vmexit=2 exit 0\n"
        );
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
