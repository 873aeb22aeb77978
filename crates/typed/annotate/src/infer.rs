//! Finds the annotations of a function: the pass of the checker, repeated.
//!
//! 1. Rounds of the pass, each with what the last one found: a head becomes as weak as what jumps back to it. Ranges
//!    that keep growing are widened, to constants of the function and at last to all numbers.
//! 2. The other way: each head gets exactly what came to it in the last round, while the function still passes. This
//!    recovers what widening gave away.
//! 3. Shorter forms where the function still passes with them.

use std::collections::{BTreeMap, BTreeSet};

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::error::{Error, Rule};
use kyozon_typed_checker::flow::{check_function, Judge, Strict, View};
use kyozon_typed_checker::frame::{Frame, Shape, Slot};
use kyozon_typed_checker::heads::Location;
use kyozon_typed_checker::insn::{Op, Operand};
use kyozon_typed_checker::program::Program;
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::value::Value;

use crate::annotation::{encode, Head, Heads};
use crate::memory::Arena;

/// Rounds until ranges are widened, rounds in which they are widened to what something is compared with, and rounds
/// after which they become all numbers.
const EXACT: u32 = 3;
const COMPARED: u32 = 15;
const THRESHOLDS: u32 = 24;
/// Most instructions between a head and one that depends on the flags there.
const MOST_MOVES: u32 = 16;
/// Rounds in which a function's heads must have become stable.
const MOST_ROUNDS: u32 = 400;
/// Rounds after which a step of widening counts once more: loops in loops can take turns.
const PATIENCE: u32 = 100;

/// Types of all places at a head.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Types {
    registers: [Value; 16],
    frame: Vec<Value>,
}

impl Types {
    fn of(view: View<'_>) -> Types {
        Types { registers: *view.registers, frame: view.frame.to_vec() }
    }

    fn join(&mut self, other: &Types) {
        for (mine, theirs) in self.registers.iter_mut().zip(other.registers) {
            *mine = mine.join(theirs);
        }
        let mut shape = Shape::of(self.frame.len(), 0);
        let mut frame = Frame::of(&mut self.frame, &mut shape);
        frame.join((&other.frame, &Shape::of(other.frame.len(), 0)));
        let depth = frame.used().len();
        self.frame.truncate(depth);
    }

    /// The slots of a frame, each with its value.
    fn slots(frame: &[Value]) -> BTreeMap<Slot, Value> {
        let mut slots = BTreeMap::new();
        let mut granule = 0;
        while granule < frame.len() {
            let pair = frame[granule] == Value::Upper && granule + 1 < frame.len();
            granule += usize::from(pair);
            slots.insert(Slot { granule: granule as u32, pair }, frame[granule]);
            granule += 1;
        }
        slots
    }

    fn places(&self) -> BTreeMap<Location, Value> {
        let registers =
            self.registers.iter().enumerate().map(|(n, &v)| (Location::Register(n as u8), v));
        let slots =
            Types::slots(&self.frame).into_iter().map(|(slot, v)| (Location::Slot(slot), v));
        registers.chain(slots).collect()
    }
}

/// One head while its annotation is looked for.
#[derive(Clone, Debug, Default)]
struct Wanted {
    /// What came from above in the last round, or the state before.
    base: Option<Types>,
    flows_in: bool,
    /// What it is to say.
    types: Option<Types>,
    /// What the head says of the stack that was checked, if it has to.
    room: Option<i32>,
    /// A jump back brought less than the head had.
    unchecked: bool,
    /// The head says that the flags stem from data.
    flags: bool,
    /// Flags came that do not.
    tainted: bool,
    /// How often each place became weaker.
    growth: BTreeMap<Location, u32>,
}

impl Wanted {
    /// What the head has to say beside its base. While heads change, bases do too: a head into which nothing flows
    /// then says all.
    fn annotation(&self, stable: bool) -> Head {
        let mut head = Head { checked: self.room, flags: self.flags, ..Head::default() };
        if let Some(types) = &self.types {
            head.types = types.places();
            if let Some(base) = self.base.as_ref().filter(|_| stable || self.flows_in) {
                let before = base.places();
                head.types.retain(|place, value| before.get(place) != Some(value));
            }
        }
        head
    }
}

/// What a round finds out.
#[derive(Default)]
struct Round {
    /// Heads that are missing.
    missing: BTreeSet<u32>,
    /// What came to each head: from above, and by jumps back.
    base: BTreeMap<u32, (bool, Types)>,
    back: BTreeMap<u32, Types>,
    /// The least checked stack that comes to each head.
    room: BTreeMap<u32, i32>,
    /// Heads to which flags come that do not stem from data.
    tainted: BTreeSet<u32>,
    /// Heads that claim more.
    unchecked: BTreeSet<u32>,
    /// Broken rules that no annotation mends.
    broken: Vec<Error>,
    /// A head was too strong.
    weaker: bool,
}

impl Round {
    fn comes(&mut self, head: u32, state: View<'_>) {
        let least = self.room.entry(head).or_insert(state.room);
        *least = state.room.max(*least);
        if !state.flags {
            self.tainted.insert(head);
        }
    }
}

impl Judge for Round {
    fn broken(&mut self, error: Error) -> Result<(), Error> {
        match error.rule {
            Rule::NoHead(place) => {
                self.missing.insert(place);
            }
            Rule::Head { .. } | Rule::HeadFlags(_) => self.weaker = true,
            Rule::HeadRoom(head) => {
                self.unchecked.insert(head);
            }
            _ => self.broken.push(error),
        }
        Ok(())
    }

    fn faults(&mut self, _offset: u32) -> Result<(), Error> {
        Ok(())
    }

    fn head(&mut self, head: u32, flows_in: bool, state: View<'_>) {
        self.base.insert(head, (flows_in, Types::of(state)));
        if flows_in {
            self.comes(head, state);
        }
    }

    fn jump_back(&mut self, head: u32, state: View<'_>) {
        self.comes(head, state);
        let types = Types::of(state);
        match self.back.get_mut(&head) {
            Some(before) => before.join(&types),
            None => {
                self.back.insert(head, types);
            }
        }
    }
}

/// Finds the annotations of one function of a program.
///
/// # Errors
///
/// The first rule that the function breaks with any annotation that was tried.
pub fn infer(program: &Program<'_>, function: u32, arena: &mut Arena) -> Result<Heads, Error> {
    Search { program, function, start: program.function(function).start, arena }.run()
}

struct Search<'a, 'p> {
    program: &'a Program<'p>,
    function: u32,
    start: u32,
    arena: &'a mut Arena,
}

impl Search<'_, '_> {
    fn run(&mut self) -> Result<Heads, Error> {
        let thresholds = self.thresholds();
        let mut wanted: BTreeMap<u32, Wanted> = BTreeMap::new();
        let mut rounds = 0;
        let broken = loop {
            let round = self.round(&wanted)?;
            rounds += 1;
            let reads_flags = |at| self.reads_flags(at);
            let pace = 1 + rounds / PATIENCE;
            if !take_in(&mut wanted, &round, &thresholds, pace, &reads_flags) {
                break round.broken;
            }
            if rounds == MOST_ROUNDS {
                return Err(round.broken.first().copied().unwrap_or(self.no_fixpoint()));
            }
        };
        let mut broken = broken;
        for _ in 0..4 {
            let tight = self.tighten(&wanted)?;
            let round = self.round(&tight)?;
            if round.weaker || !round.missing.is_empty() || !round.unchecked.is_empty() {
                break;
            }
            let same = wanted.iter().zip(&tight).all(|(a, b)| a.1.types == b.1.types);
            wanted = tight;
            broken = round.broken;
            if same {
                break;
            }
        }
        if let Some(error) = broken.first() {
            return Err(*error);
        }
        let heads = annotations(&wanted, true);
        self.passes(&heads)?;
        Ok(self.shorten(heads))
    }

    fn no_fixpoint(&self) -> Error {
        Error { function: self.function, offset: self.start, op: None, rule: Rule::Annotation }
    }

    fn round(&mut self, wanted: &BTreeMap<u32, Wanted>) -> Result<Round, Error> {
        let mut round = Round::default();
        let bytes = encode(&annotations(wanted, false), self.start);
        let (program, memory) = (self.program, &mut self.arena.memory());
        check_function(program, self.function, &bytes, memory, &mut { u64::MAX }, &mut round)?;
        Ok(round)
    }

    /// Each head gets exactly what comes to it with the heads as they are.
    fn tighten(&mut self, wanted: &BTreeMap<u32, Wanted>) -> Result<BTreeMap<u32, Wanted>, Error> {
        let round = self.round(wanted)?;
        let mut tight = wanted.clone();
        for (at, head) in &mut tight {
            let base = round.base.get(at);
            let mut types = match (base, round.back.get(at)) {
                (Some((true, base)), Some(back)) => {
                    let mut types = base.clone();
                    types.join(back);
                    types
                }
                (Some((true, base)), None) => base.clone(),
                (_, Some(back)) => back.clone(),
                _ => continue,
            };
            if let Some(old) = &head.types {
                // What joins give in another order must not be weaker than before.
                if old.frame.len() == types.frame.len() {
                    keep_stronger(&mut types, old);
                }
            }
            head.types = Some(types);
            head.base = base.map(|b| b.1.clone());
        }
        Ok(tight)
    }

    /// Whether the checker accepts the function with these heads.
    fn passes(&mut self, heads: &Heads) -> Result<(), Error> {
        let bytes = encode(heads, self.start);
        let length = self.program.function(self.function).end - self.start;
        let mut faults = vec![0; length as usize];
        let mut strict = Strict { faults: &mut faults, count: 0, vectors: false, go_on: || true };
        let (program, memory) = (self.program, &mut self.arena.memory());
        check_function(program, self.function, &bytes, memory, &mut { u64::MAX }, &mut strict)
    }

    /// Tries shorter forms of ranges: all at once, then by head, then one by one.
    fn shorten(&mut self, mut heads: Heads) -> Heads {
        for weaker in [weaken_slots as fn(Location, Value) -> Option<Value>, weaken] {
            let all: Vec<(u32, Location)> = heads
                .iter()
                .flat_map(|(&at, head)| {
                    head.types.iter().map(move |(&place, &value)| (at, place, value))
                })
                .filter_map(|(at, place, value)| weaker(place, value).map(|_| (at, place)))
                .collect();
            self.shorten_part(&mut heads, &all, weaker);
        }
        heads
    }

    fn shorten_part(
        &mut self,
        heads: &mut Heads,
        part: &[(u32, Location)],
        weaker: fn(Location, Value) -> Option<Value>,
    ) {
        if part.is_empty() {
            return;
        }
        let mut tried = heads.clone();
        for (at, place) in part {
            if let Some(value) = tried.get_mut(at).and_then(|head| head.types.get_mut(place)) {
                *value = weaker(*place, *value).unwrap_or(*value);
            }
        }
        if self.passes(&tried).is_ok() {
            *heads = tried;
        } else if part.len() > 1 {
            let (one, other) = part.split_at(part.len() / 2);
            self.shorten_part(heads, one, weaker);
            self.shorten_part(heads, other, weaker);
        }
    }

    /// Whether an instruction depends on the flags as they are at this place.
    fn reads_flags(&self, at: u32) -> bool {
        use Op::*;
        let mut at = i64::from(at);
        // Moves of spilled values can stand between a jump's target and what tests the flags.
        for _ in 0..MOST_MOVES {
            let text = usize::try_from(at).ok().and_then(|at| self.program.text().get(at..));
            let Ok(insn) = decode(text.unwrap_or(&[])) else { return false };
            at += i64::from(insn.length);
            match insn.op {
                JumpIf(_) | Set(_) | MoveIf(_) | AddCarry | SubBorrow => return true,
                Jump => at += insn.immediate,
                Nop | Move | MoveZero | MoveSign | Lea | Push | Pop | Exchange | Not | ByteSwap => {
                }
                SignIntoRdx | SignInRax | Vector | VectorToRegister => {}
                _ => return false,
            }
        }
        false
    }

    /// Numbers that ranges of this function are likely to end at: those that something is compared with, and all.
    fn thresholds(&self) -> [BTreeSet<u64>; 2] {
        let mut compared = BTreeSet::from([
            0,
            0x7f,
            0xff,
            0x7fff,
            0xffff,
            0x7fff_ffff,
            0xffff_ffff,
            i64::MAX as u64,
            u64::MAX,
        ]);
        let mut others = BTreeSet::new();
        let function = self.program.function(self.function);
        let mut at = function.start as usize;
        while at < function.end as usize {
            let Ok(insn) = decode(&self.program.text()[at..function.end as usize]) else {
                at += 1;
                continue;
            };
            at += usize::from(insn.length);
            let number = matches!(
                insn.op,
                Op::Compare | Op::Move | Op::And | Op::Add | Op::Sub | Op::MoveZero
            );
            if number && insn.source == Operand::Immediate {
                let mine = if insn.op == Op::Compare { &mut compared } else { &mut others };
                for value in [insn.immediate as u64, insn.immediate as u32 as u64] {
                    mine.extend([value.wrapping_sub(1), value, value.wrapping_add(1)]);
                }
            }
        }
        others.extend(&compared);
        [compared, others]
    }
}

/// Takes what a round found into the heads. False if nothing changed.
fn take_in(
    wanted: &mut BTreeMap<u32, Wanted>,
    round: &Round,
    thresholds: &[BTreeSet<u64>; 2],
    pace: u32,
    reads_flags: &dyn Fn(u32) -> bool,
) -> bool {
    let mut changed = false;
    for &place in &round.missing {
        changed |= wanted.insert(place, Wanted::default()).is_none();
    }
    // An annotation is relative to what flows in. If nothing does any more, because what is known of a head before has
    // closed the way there, the state was one of no run: it must not weaken other heads.
    let flows = |at: &u32| round.base.get(at).map(|&(flows_in, _)| flows_in);
    let stale = wanted.iter().any(|(at, head)| head.flows_in && flows(at) == Some(false));
    for (at, head) in wanted {
        let mut incoming = Vec::new();
        if let Some((flows_in, base)) = round.base.get(at) {
            changed |= head.base.as_ref() != Some(base) || head.flows_in != *flows_in;
            head.base = Some(base.clone());
            head.flows_in = *flows_in;
            incoming.extend(flows_in.then_some(base));
        }
        if stale {
            continue;
        }
        // What was checked has to be said if nothing flows in, or if what jumps back brings less.
        head.unchecked |= round.unchecked.contains(at);
        if head.flows_in && !head.unchecked {
            changed |= head.room.take().is_some();
        } else if let Some(&room) = round.room.get(at) {
            if head.room.is_none_or(|old| old < room) {
                head.room = Some(room);
                changed = true;
            }
        }
        incoming.extend(round.back.get(at));
        if !incoming.is_empty() {
            head.tainted |= round.tainted.contains(at);
            let flags = !head.tainted && reads_flags(*at);
            changed |= head.flags != flags;
            head.flags = flags;
        }
        for other in incoming {
            let Some(types) = &mut head.types else {
                head.types = Some(other.clone());
                changed = true;
                continue;
            };
            let mut joined = types.clone();
            joined.join(other);
            if joined != *types {
                widen(&mut joined, types, &mut head.growth, thresholds, pace);
                *types = joined;
                changed = true;
            }
        }
    }
    changed
}

/// Widens what grew from `old` to `new`. Each growth counts `pace` times.
fn widen(
    new: &mut Types,
    old: &Types,
    growth: &mut BTreeMap<Location, u32>,
    thresholds: &[BTreeSet<u64>; 2],
    pace: u32,
) {
    let mut wide = |place, value: &mut Value, before: Value| {
        let (Value::Number(range), Value::Number(was)) = (*value, before) else {
            if matches!(value, Value::View { .. } | Value::Index(_)) && *value != before {
                let count = growth.entry(place).or_default();
                *count += 1;
                if *count > EXACT {
                    *value = value.number().map_or(Value::UNKNOWN, Value::Number);
                }
            }
            return;
        };
        if range == was {
            return;
        }
        let count = growth.entry(place).or_default();
        // All numbers of 32 bits are tried before all numbers.
        *count += if *count > THRESHOLDS { 1 } else { pace.min(THRESHOLDS + 1 - *count) };
        if *count <= EXACT {
            return;
        }
        let thresholds = &thresholds[usize::from(*count > COMPARED)];
        let known = |x: u64| thresholds.iter().copied().find(|&t| t >= x);
        let low = if range.low() < was.low() {
            thresholds.range(..=range.low()).next_back().copied().unwrap_or(0)
        } else {
            range.low()
        };
        let high = if range.high() > was.high() {
            known(range.high()).unwrap_or(u64::MAX)
        } else {
            range.high()
        };
        let step = (1u64 << range.stride().min(62)) - 1;
        // The ends must be members.
        let low = range.low() - (range.low().saturating_sub(low) & !step);
        *value = Value::Number(match *count {
            n if n <= THRESHOLDS => Range::new(low, high, range.stride()),
            n if n <= THRESHOLDS + 2 && high <= u64::from(u32::MAX) => Range::U32,
            _ => Range::ANY,
        });
    };
    for n in 0..16 {
        wide(Location::Register(n as u8), &mut new.registers[n], old.registers[n]);
    }
    if new.frame.len() == old.frame.len() {
        for (granule, (value, before)) in new.frame.iter_mut().zip(&old.frame).enumerate() {
            wide(Location::Slot(Slot { granule: granule as u32, pair: false }), value, *before);
        }
    }
}

/// Keeps, place by place, the stronger of two types.
fn keep_stronger(types: &mut Types, old: &Types) {
    for (value, before) in types.registers.iter_mut().zip(old.registers) {
        if before.within(*value) {
            *value = before;
        }
    }
    for granule in 0..types.frame.len() {
        let same_shape = |n: usize| types.frame[n] == Value::Upper && old.frame[n] == Value::Upper;
        let single = |frame: &[Value], n: usize| {
            frame[n] != Value::Upper && (n == 0 || frame[n - 1] != Value::Upper)
        };
        let comparable = granule > 0 && same_shape(granule - 1)
            || single(&types.frame, granule) && single(&old.frame, granule);
        if comparable && old.frame[granule].within(types.frame[granule]) {
            types.frame[granule] = old.frame[granule];
        }
    }
}

fn annotations(wanted: &BTreeMap<u32, Wanted>, stable: bool) -> Heads {
    wanted.iter().map(|(&at, head)| (at, head.annotation(stable))).collect()
}

/// A weaker type with a shorter form.
fn weaken(place: Location, value: Value) -> Option<Value> {
    match value {
        Value::Number(Range::ANY | Range::U32) => None,
        Value::Number(range)
            if range.high() <= u64::from(u32::MAX) && matches!(place, Location::Register(_)) =>
        {
            Some(Value::data(4))
        }
        _ => weaken_slots(place, value),
    }
}

fn weaken_slots(place: Location, value: Value) -> Option<Value> {
    match (value, place) {
        (Value::Number(Range::ANY | Range::U32), _) => None,
        (Value::Number(_), Location::Slot(Slot { pair: false, .. })) => Some(Value::data(4)),
        (Value::Number(_), _) => Some(Value::ANY),
        (Value::Bytes(known), _) if known != 0 => Some(Value::UNKNOWN),
        _ => None,
    }
}
