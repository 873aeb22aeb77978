//! One pass over a function in the order of its text.
//!
//! A jump forward leaves its state at its target, where it is joined with what else comes there. A jump back must fit
//! the state that was kept at its target, an annotated head. So each instruction is looked at once, and what can
//! reach it is known by then.
//!
//! Text that nothing reaches is not looked at: a jump to it would have been seen before, or leads to a head.

use core::cmp::Ordering;

use crate::decode::decode_into;
use crate::error::{Error, Rule};
use crate::frame::{Frame, Saved, Shape};
use crate::heads::{Heads, Item, Location};
use crate::insn::{Condition, Insn, RAX, RDX, RSP};
use crate::program::{Callee, Function, Program, Signature, ARGUMENTS, MOST_BYTES};
use crate::state::{Flags, Identity, State, Undo, CALLEE_SAVED, SCRATCH};
use crate::value::{Spot, Value};
use crate::WORK;

/// Values that a state counts for, beside its frame.
const STATE: usize = 32;

// Identities have 32 bits. A byte of text makes 6 at most, because an indirect call of 2 bytes makes 12. A join makes
// 16 and counts for 32 values or more.
const _: () = assert!((6 + WORK.0 / 2) * MOST_BYTES as u64 + WORK.1 < u32::MAX as u64);

/// Decides what happens when a rule is broken. Only [`Strict`] gives a verdict that may be believed; a tool that looks
/// for annotations goes on.
pub trait Judge {
    /// A rule is broken. To return `Ok` is to go on as if it were not.
    fn broken(&mut self, error: Error) -> Result<(), Error>;

    /// The instruction at this offset of the text accesses the region, and so may fault.
    fn faults(&mut self, offset: u32) -> Result<(), Error>;

    /// The pass decoded an instruction that can be reached.
    fn instruction(&mut self, _insn: &Insn) {}

    /// Whether to go on. Asked for each instruction, each edge from a jump and each item of an annotation; no other
    /// step takes longer than a join.
    fn go_on(&mut self) -> bool {
        true
    }

    /// The pass came to a head; its annotation was not applied yet. Something flows in from above, or the state is the
    /// one at the last instruction before.
    fn head(&mut self, _head: u32, _flows_in: bool, _state: View<'_>) {}

    /// A jump back, to a head or to where one is missing.
    fn jump_back(&mut self, _head: u32, _state: View<'_>) {}
}

/// What is known at a place, for tools that look for annotations.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The general registers.
    pub registers: &'a [Value; 16],
    /// The granules of the frame, see [`crate::frame`].
    pub frame: &'a [Value],
    /// The stack is checked down to this offset.
    pub room: i32,
    /// The flags stem from data.
    pub flags: bool,
}

impl<'a> View<'a> {
    fn of(state: &'a State, frame: &'a [Value]) -> Self {
        let (registers, room, flags) = (&state.registers, state.room, state.flags_are_data());
        View { registers, frame, room, flags }
    }
}

/// Refuses at the first broken rule.
pub struct Strict<'a, F> {
    /// Offsets of the instructions that may fault.
    pub faults: &'a mut [u32],
    /// How many of these there are.
    pub count: usize,
    /// Whether an instruction that can be reached uses vector registers.
    pub vectors: bool,
    /// Whether to go on.
    pub go_on: F,
}

impl<F: FnMut() -> bool> Judge for Strict<'_, F> {
    fn broken(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn faults(&mut self, offset: u32) -> Result<(), Error> {
        let memory = Error { function: 0, offset, op: None, rule: Rule::Memory };
        *self.faults.get_mut(self.count).ok_or(memory)? = offset;
        self.count += 1;
        Ok(())
    }

    fn instruction(&mut self, insn: &Insn) {
        self.vectors |= insn.uses_vectors();
    }

    fn go_on(&mut self) -> bool {
        (self.go_on)()
    }
}

/// A state that waits for the pass to come to a place, or that was kept at a head.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    state: State,
    shape: Shape,
}

impl Label {
    /// A label that is not in use.
    pub const BLANK: Label = Label { state: State::BLANK, shape: Shape::of(0, 0) };
}

/// The memory of the checker. How much of it bounds the functions that can be checked: a function needs one label for
/// each place that waits at one time and for each head, and for each label as many granules as its frame has.
pub struct Memory<'m> {
    /// States.
    pub labels: &'m mut [Label],
    /// Frames.
    pub granules: &'m mut [Value],
    /// Numbers: five for each label.
    pub numbers: &'m mut [u32],
}

/// The labels of one function.
struct Labels<'m> {
    labels: &'m mut [Label],
    granules: &'m mut [Value],
    /// Granules of each label.
    stride: usize,
    /// Labels that are not in use; the first `free_count`.
    free: &'m mut [u32],
    free_count: usize,
    /// Labels up to this one were never in use.
    used: usize,
    /// Places that wait, with their labels: sorted, the first place last.
    waiting: &'m mut [[u32; 2]],
    waiting_count: usize,
    /// Heads with their labels, sorted.
    heads: &'m mut [[u32; 2]],
    head_count: usize,
}

impl<'m> Labels<'m> {
    fn new(memory: &'m mut Memory<'_>, stride: usize) -> (Self, &'m mut [Value]) {
        let (current, granules) = memory.granules.split_at_mut(stride.min(memory.granules.len()));
        let mut count = memory.labels.len().min(memory.numbers.len() / 5);
        if let Some(fit) = granules.len().checked_div(stride) {
            count = count.min(fit);
        }
        let (free, numbers) = memory.numbers.split_at_mut(count);
        let (pairs, _) = numbers.as_chunks_mut::<2>();
        let (waiting, heads) = pairs.split_at_mut(count);
        let labels = Labels {
            labels: &mut memory.labels[..count],
            granules,
            stride,
            free,
            free_count: 0,
            used: 0,
            waiting,
            waiting_count: 0,
            heads,
            head_count: 0,
        };
        (labels, current)
    }

    /// Keeps a state.
    fn keep(&mut self, state: &State, frame: Saved<'_>) -> Option<u32> {
        let label = if self.free_count > 0 {
            self.free_count -= 1;
            self.free[self.free_count]
        } else if self.used < self.labels.len() {
            self.used += 1;
            self.used as u32 - 1
        } else {
            return None;
        };
        self.labels[label as usize].state = *state;
        self.frame_mut(label).restore(frame);
        Some(label)
    }

    /// What was kept.
    fn kept(&self, label: u32) -> (&State, Saved<'_>) {
        let Label { state, shape } = &self.labels[label as usize];
        (state, shape.saved(&self.granules[label as usize * self.stride..]))
    }

    fn frame_mut(&mut self, label: u32) -> Frame<'_> {
        let at = label as usize * self.stride;
        let granules = &mut self.granules[at..at + self.stride];
        Frame::of(granules, &mut self.labels[label as usize].shape)
    }

    /// Leaves a state at a place that the pass has not come to.
    fn leave(
        &mut self,
        place: u32,
        state: &State,
        frame: Saved<'_>,
        fresh: &mut Identity,
    ) -> Option<()> {
        let found = self.waiting[..self.waiting_count].binary_search_by(|w| place.cmp(&w[0]));
        match found {
            Ok(n) => {
                let label = self.waiting[n][1];
                self.labels[label as usize].state.join(state, fresh);
                self.frame_mut(label).join(frame);
            }
            Err(n) => {
                let label = self.keep(state, frame)?;
                self.waiting.copy_within(n..self.waiting_count, n + 1);
                self.waiting[n] = [place, label];
                self.waiting_count += 1;
            }
        }
        Some(())
    }

    /// The first place that waits.
    fn next(&self) -> Option<u32> {
        self.waiting[..self.waiting_count].last().map(|w| w[0])
    }

    /// Takes the label of this place if it is the first that waits; its state stays as it is until another is kept.
    fn take(&mut self, place: u32) -> Option<u32> {
        let &[_, label] = self.waiting[..self.waiting_count].last().filter(|w| w[0] == place)?;
        self.waiting_count -= 1;
        self.free[self.free_count] = label;
        self.free_count += 1;
        Some(label)
    }

    fn keep_head(&mut self, place: u32, state: &State, frame: Saved<'_>) -> Option<()> {
        let label = self.keep(state, frame)?;
        self.heads[self.head_count] = [place, label];
        self.head_count += 1;
        Some(())
    }

    fn head(&self, place: u32) -> Option<u32> {
        let heads = &self.heads[..self.head_count];
        heads.binary_search_by_key(&place, |h| h[0]).ok().map(|n| heads[n][1])
    }
}

/// A rule is broken, and the pass ends. The error is in the pass, so that what returns values does not have to be able
/// to return an error, which is larger.
#[derive(Clone, Copy)]
pub(crate) struct Stop;

pub(crate) type Step<T = ()> = Result<T, Stop>;

/// The pass over one function.
pub(crate) struct Pass<'p, 'm, J> {
    pub program: &'p Program<'p>,
    pub function: Function,
    pub signature: Signature,
    pub judge: &'m mut J,
    pub state: State,
    pub frame: Frame<'m>,
    pub fresh: Identity,
    pub insn: Insn,
    /// Address of its memory operand.
    pub address: Value,
    /// Offset of the instruction.
    pub at: u32,
    /// Offset of the one after it.
    pub next: u32,
    /// The instruction accesses the region.
    pub faults: bool,
    /// The place before the next instruction can be reached.
    live: bool,
    decoded: bool,
    /// Values that may still be copied, joined or compared.
    work: &'m mut u64,
    labels: Labels<'m>,
    /// Why the pass ended with [`Stop`].
    refusal: Error,
}

/// Checks one function of a program. `work` is how many values of registers and frames may be copied, joined and
/// compared, and becomes how many are left: it bounds the time.
pub fn check_function<J: Judge>(
    program: &Program<'_>,
    function: u32,
    annotations: &[u8],
    memory: &mut Memory<'_>,
    work: &mut u64,
    judge: &mut J,
) -> Result<(), Error> {
    let function = program.function(function);
    let signature = program.signature(function.signature);
    let (labels, granules) = Labels::new(memory, function.frame as usize / 4);
    let (index, offset) = (function.index, function.start);
    let refusal = Error { function: index, offset, op: None, rule: Rule::Memory };
    if granules.len() < function.frame as usize / 4 {
        return Err(refusal);
    }
    let mut shape = Shape::of(0, 1);
    let mut pass = Pass {
        program,
        function,
        signature,
        judge,
        state: State::entry(signature),
        frame: Frame::of(granules, &mut shape),
        fresh: 16,
        insn: Insn::BLANK,
        address: Value::UNKNOWN,
        work,
        at: function.start,
        next: function.start,
        faults: false,
        live: true,
        decoded: false,
        labels,
        refusal,
    };
    let heads = Heads::new(annotations, function.start);
    let heads = heads.ok_or_else(|| pass.error(Rule::Annotation))?;
    pass.run(heads).map_err(|Stop| pass.refusal)
}

impl<J: Judge> Pass<'_, '_, J> {
    fn error(&self, rule: Rule) -> Error {
        let op = self.decoded.then_some(self.insn.op);
        Error { function: self.function.index, offset: self.at, op, rule }
    }

    /// Keeps the error with which the pass ends.
    #[cold]
    fn refuse(&mut self, error: Error) -> Stop {
        self.refusal = error;
        Stop
    }

    #[cold]
    fn stop(&mut self, rule: Rule) -> Stop {
        self.refuse(self.error(rule))
    }

    /// A rule is broken here.
    pub(crate) fn broken(&mut self, rule: Rule) -> Step {
        let error = self.error(rule);
        self.judge.broken(error).map_err(|error| self.refuse(error))
    }

    /// Counts values that are about to be copied, joined or compared.
    pub(crate) fn work(&mut self, values: usize) -> Step {
        let left = self.work.checked_sub(values as u64);
        *self.work = left.ok_or_else(|| self.stop(Rule::Work))?;
        Ok(())
    }

    fn run(&mut self, mut heads: Heads<'_>) -> Step {
        loop {
            self.decoded = false;
            self.arrive(&mut heads)?;
            if !self.live {
                return Ok(());
            }
            if self.at >= self.function.end {
                return Err(self.stop(Rule::End));
            }
            self.go_on()?;
            let text = &self.program.text()[self.at as usize..self.function.end as usize];
            let decoded = decode_into(text, &mut self.insn);
            decoded.map_err(|refusal| self.stop(Rule::Decode(refusal)))?;
            self.decoded = true;
            self.judge.instruction(&self.insn);
            self.next = self.at + self.insn.length as u32;
            self.faults = false;
            self.live = self.step()?;
            if self.faults {
                self.judge.faults(self.at).map_err(|error| self.refuse(error))?;
            }
            self.at = self.next;
        }
    }

    /// Takes in what waits at this place, and the annotation of a head. If nothing comes here, goes on to the next
    /// place where something does; if there is none, the pass is at its end.
    fn arrive(&mut self, heads: &mut Heads<'_>) -> Step {
        let waits = self.labels.next().map_or(u64::MAX, u64::from);
        let head = heads.next.unwrap_or(u64::MAX);
        let next = waits.min(head);
        if next == u64::MAX || self.live && next > self.at as u64 {
            return Ok(());
        }
        if !self.live {
            if next < self.at as u64 || next >= self.function.end as u64 {
                return Err(self.stop(Rule::Annotation));
            }
            self.at = next as u32;
        }
        if waits < self.at as u64 {
            return Err(self.stop(Rule::Middle(waits as u32)));
        }
        if let Some(label) = self.labels.take(self.at) {
            let (_, (used, _)) = self.labels.kept(label);
            self.work(STATE + used.len())?;
            let (state, frame) = self.labels.kept(label);
            if self.live {
                self.frame.join(frame);
                self.state.join(state, &mut self.fresh);
            } else {
                self.frame.restore(frame);
                self.state = *state;
            }
            self.live = true;
        }
        match head.cmp(&(self.at as u64)) {
            Ordering::Less => Err(self.stop(Rule::Annotation)),
            Ordering::Equal => self.head(heads),
            Ordering::Greater => Ok(()),
        }
    }

    /// Applies the annotation of a head, and keeps the state for the jumps back to it.
    fn head(&mut self, heads: &mut Heads<'_>) -> Step {
        let flows_in = self.live;
        self.live = true;
        self.work(STATE + self.frame.used().len())?;
        self.judge.head(self.at, flows_in, View::of(&self.state, self.frame.used()));
        let flags = self.state.flags_are_data();
        self.state.flags = Flags::new(false);
        for identity in &mut self.state.identities {
            self.fresh += 1;
            *identity = self.fresh;
        }
        let bad = self.stop(Rule::Annotation);
        heads.read(bad, |item| self.annotate(item, flows_in, flags))?;
        if !matches!(self.state.get(RSP), Value::Stack(_)) {
            // A jump back could come with another frame.
            let found = self.state.get(RSP);
            return Err(self.stop(Rule::StackPointer { found }));
        }
        let kept = self.labels.keep_head(self.at, &self.state, self.frame.saved());
        kept.ok_or_else(|| self.stop(Rule::Memory))
    }

    /// One item of a head's annotation. `flags` says whether the flags stem from data that flow in.
    fn annotate(&mut self, item: Item, flows_in: bool, flags: bool) -> Step {
        self.go_on()?;
        let (location, mut value) = match item {
            Item::Type(location, value) => (location, value),
            Item::Flags => {
                self.state.flags = Flags::new(true);
                return if flows_in && !flags { self.broken(Rule::Flags) } else { Ok(()) };
            }
            Item::Checked(offset) => {
                if flows_in && self.state.room > offset {
                    self.broken(Rule::HeadRoom(self.at))?;
                }
                self.state.room = offset;
                return Ok(());
            }
        };
        let exists = match value {
            Value::Entry(table) => table < self.program.call_table_count(),
            Value::Distance(table) | Value::Target(table) => {
                table < self.program.jump_table_count()
            }
            _ => true,
        };
        let current = match location {
            Location::Register(register) => Some(self.state.get(register)),
            Location::Slot(slot) => self.frame.slot(slot),
        };
        let Some(found) = current.filter(|_| exists) else {
            return Err(self.stop(Rule::Annotation));
        };
        if flows_in && !found.within(value) {
            self.broken(Rule::Head { head: self.at, location, expected: value, found })?;
            value = found.join(value);
        }
        match location {
            Location::Register(RSP) if !flows_in => return self.set(RSP, value),
            Location::Register(register) => self.state.registers[register as usize & 15] = value,
            Location::Slot(slot) => self.frame.set_slot(slot, value),
        }
        Ok(())
    }

    fn go_on(&mut self) -> Step {
        if self.judge.go_on() {
            return Ok(());
        }
        Err(self.stop(Rule::Stopped))
    }

    /// The state flows to a place of the text, by a jump from here.
    pub(crate) fn flow(&mut self, target: i64) -> Step {
        self.go_on()?;
        let inside = (self.function.start as i64..self.function.end as i64).contains(&target);
        if inside {
            let place = target as u32;
            self.work(STATE + self.frame.used().len() + self.labels.waiting_count / 8)?;
            if place >= self.next {
                let left =
                    self.labels.leave(place, &self.state, self.frame.saved(), &mut self.fresh);
                return left.ok_or_else(|| self.stop(Rule::Memory));
            }
            self.judge.jump_back(place, View::of(&self.state, self.frame.used()));
            if let Some(head) = self.labels.head(place) {
                return self.flow_back(place, head);
            }
            if place != self.function.start {
                return self.broken(Rule::NoHead(place));
            }
        }
        match self.program.callee(target) {
            Some(callee) => self.tail_call(callee),
            None => self.broken(Rule::Target(target)),
        }
    }

    /// A jump back: nothing may be weaker than at the head.
    fn flow_back(&mut self, head: u32, label: u32) -> Step {
        for register in 0..16 {
            let expected = self.labels.kept(label).0.get(register);
            let found = self.state.get(register);
            if !found.same(expected) && !found.within(expected) {
                let location = Location::Register(register);
                self.broken(Rule::Head { head, location, expected, found })?;
            }
        }
        let mut next = 0;
        while let Some((slot, found, expected)) = self.frame.weaker(self.labels.kept(label).1, next)
        {
            let location = Location::Slot(slot);
            self.broken(Rule::Head { head, location, expected, found })?;
            next = slot.granule as usize + 1;
        }
        if self.labels.kept(label).0.flags_are_data() && !self.state.flags_are_data() {
            self.broken(Rule::HeadFlags(head))?;
        }
        if self.state.room > self.labels.kept(label).0.room {
            return self.broken(Rule::HeadRoom(head));
        }
        Ok(())
    }

    /// A call: arguments are checked, and what the callee may change is forgotten.
    pub(crate) fn call(&mut self, callee: Callee) -> Step {
        let signature = self.callee_signature(callee)?;
        self.call_to(signature)
    }

    /// A call of a function with this signature.
    pub(crate) fn call_to(&mut self, signature: Signature) -> Step {
        self.check_arguments(signature)?;
        let Value::Stack(top) = self.state.get(RSP) else {
            return self.broken(Rule::StackPointer { found: self.state.get(RSP) });
        };
        if top < self.state.room {
            self.broken(Rule::NoStackCheck { checked: self.state.room, needed: top })?;
        }
        for index in 0..signature.stack {
            let offset = top + 8 * index as i32;
            let size = if signature.halves >> index & 1 != 0 { 4 } else { 8 };
            let inside = self.frame.contains(offset, 8);
            let found = if inside { self.frame.read(offset, size) } else { Value::UNKNOWN };
            if !found.is_data(size) {
                self.broken(Rule::StackArgument { index, size, found })?;
            }
            if inside {
                self.frame.write(offset, size, Value::data(size));
                if size == 4 {
                    // The callee may write data there: what is data stays data, but not the same.
                    let upper = self.frame.read(offset + 4, 4).data_bytes();
                    self.frame.write(offset + 4, 4, Value::known(upper).truncate(4));
                }
            }
        }
        for register in SCRATCH {
            self.set(register, Value::UNKNOWN)?;
        }
        self.set(RAX, signature.result)?;
        if let Value::View { spot, write, exact } = signature.result {
            // No place has anything of an earlier run: when the call runs first, nothing can, and each instruction has
            // one state for all its runs.
            let origin = self.at;
            self.set(RAX, Value::View { spot: Spot { origin, ..spot }, write, exact })?;
            self.set(RDX, Value::Length(origin))?;
        }
        self.state.flags = Flags::new(false);
        Ok(())
    }

    /// A jump that leaves the function for another one.
    pub(crate) fn tail_call(&mut self, callee: Callee) -> Step {
        if let Callee::Thunk(register) = callee {
            if let Value::Target(table) = self.state.get(register) {
                self.check_thunk_room()?;
                return self.jump_table(table);
            }
        }
        if callee == Callee::Return {
            return self.leave();
        }
        let signature = self.callee_signature(callee)?;
        self.tail_call_to(signature)
    }

    fn tail_call_to(&mut self, signature: Signature) -> Step {
        self.check_arguments(signature)?;
        let mut words = 0..signature.stack;
        let half = |signature: Signature, n: u8| signature.halves >> n & 1 != 0;
        if signature.stack > self.signature.stack
            || words.any(|n| half(self.signature, n) && !half(signature, n))
        {
            self.broken(Rule::TailArguments)?;
        }
        if !signature.result.within(self.signature.result) {
            self.broken(Rule::TailResult)?;
        }
        self.check_saved()
    }

    /// A return.
    pub(crate) fn leave(&mut self) -> Step {
        let (expected, found) = (self.signature.result, self.state.get(RAX));
        if !found.within(expected) {
            self.broken(Rule::Result { expected, found })?;
        }
        self.check_saved()
    }

    /// The stack pointer and the callee-saved registers are as at the entry.
    fn check_saved(&mut self) -> Step {
        let found = self.state.get(RSP);
        if found != Value::Stack(0) {
            self.broken(Rule::StackPointer { found })?;
        }
        for register in CALLEE_SAVED {
            let found = self.state.get(register);
            if found != Value::Saved(register) {
                self.broken(Rule::NotSaved { register, found })?;
            }
        }
        Ok(())
    }

    fn callee_signature(&mut self, callee: Callee) -> Step<Signature> {
        match callee {
            Callee::Function(function) => Ok(self.program.signature(function.signature)),
            Callee::Import(n) => Ok(self.program.signature(self.program.import(n).signature)),
            Callee::Thunk(register) => self.entry_signature(self.state.get(register)),
            Callee::Return => self.broken(Rule::Form).map(|()| Signature::NONE),
        }
    }

    /// The signature of an entry of a call table.
    pub(crate) fn entry_signature(&mut self, value: Value) -> Step<Signature> {
        match value {
            Value::Entry(n) => Ok(self.program.signature(self.program.call_table(n).signature)),
            found => self.broken(Rule::Indirect { found }).map(|()| Signature::NONE),
        }
    }

    fn check_arguments(&mut self, signature: Signature) -> Step {
        for (register, expected) in ARGUMENTS.into_iter().zip(signature.arguments) {
            let found = self.state.get(register);
            if !found.within(expected) {
                self.broken(Rule::Argument { register, expected, found })?;
            }
        }
        Ok(())
    }

    /// The address of a call table's entry, or of a place in this function: leads there.
    pub(crate) fn jump_indirect(&mut self, value: Value) -> Step {
        self.need_indirect()?;
        if let Value::Target(table) = value {
            return self.jump_table(table);
        }
        let signature = self.entry_signature(value)?;
        self.tail_call_to(signature)
    }

    /// An indirect branch of the text's own.
    pub(crate) fn need_indirect(&mut self) -> Step {
        if self.program.indirect_branches() {
            return Ok(());
        }
        self.broken(Rule::Thunk)
    }

    /// A thunk may push the address that it jumps to.
    fn check_thunk_room(&mut self) -> Step {
        let Value::Stack(top) = self.state.get(RSP) else {
            return self.broken(Rule::StackPointer { found: self.state.get(RSP) });
        };
        self.check_room(top - 8)
    }

    /// All places that a jump table leads to.
    fn jump_table(&mut self, table: u16) -> Step {
        let table = self.program.jump_table(table);
        for target in self.program.targets(table) {
            let inside = (self.function.start as i64..self.function.end as i64).contains(&target);
            if !inside {
                return self.broken(Rule::Target(target));
            }
            if !self.program.is_landing(target as u32) {
                self.broken(Rule::Landing(target as u32))?;
            }
            self.flow(target)?;
        }
        Ok(())
    }

    /// A conditional jump: whether the next instruction can be reached.
    pub(crate) fn branch(&mut self, condition: Condition, target: i64) -> Step<bool> {
        if !self.state.may_test(condition) {
            self.broken(Rule::Flags)?;
        }
        let room = self.state.room;
        let mut undo = Undo::default();
        if self.state.assume(&mut self.frame, condition, &mut undo) {
            self.flow(target)?;
        }
        self.state.undo(&mut self.frame, undo);
        self.state.room = room;
        Ok(self.state.assume(&mut self.frame, condition.inverse(), &mut Undo::default()))
    }
}
