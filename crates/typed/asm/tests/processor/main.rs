//! What the checker says of random code is compared with what the processor does.
//!
//! The code has no calls, and no memory but its frame. It runs twice: with the same arguments, and with other values in
//! all other registers, in the flags and in the stack. So it shows two things:
//!
//! - a place has a value that its type allows;
//! - a place that the checker takes for data depends on data only.
//!
//! `KYOZON_PROGRAMS` is how many programs are tried, `KYOZON_SEED` where their numbers begin.

mod generate;
mod machine;
mod random;

use std::collections::BTreeMap;

use generate::{instruction, instructions, operation};
use kyozon_typed_annotate::annotation::Head;
use kyozon_typed_annotate::memory::Arena;
use kyozon_typed_annotate::module::{Function, Module, Signature, Type};
use kyozon_typed_checker::error::Error;
use kyozon_typed_checker::flow::{check_function, Judge, View};
use kyozon_typed_checker::insn::RSP;
use kyozon_typed_checker::program::{Host, Program, ARGUMENTS};
use kyozon_typed_checker::value::{Value, REGISTERS};
use machine::{Machine, Run, FRAME};
use random::Random;

/// Programs that are tried if the environment does not say.
const PROGRAMS: u64 = 10_000;
/// Pairs of runs of each program.
const RUNS: usize = 6;
const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };

/// What the checker knows at the end of a program.
struct Known {
    registers: [Value; 16],
    frame: Vec<Value>,
}

/// Keeps what is known at the only head.
struct Watch(Option<Known>);

impl Judge for Watch {
    fn broken(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn faults(&mut self, _offset: u32) -> Result<(), Error> {
        Ok(())
    }

    fn head(&mut self, _head: u32, _flows_in: bool, state: View<'_>) {
        self.0 = Some(Known { registers: *state.registers, frame: state.frame.to_vec() });
    }
}

/// What the checker knows at the end of this code; nothing if it refuses the code.
fn check(code: &[u8], arena: &mut Arena) -> Option<Known> {
    let mut function = Function { name: "f".into(), frame: FRAME as u32, ..Function::default() };
    function.heads.insert(code.len() as u32, Head::default());
    let arguments = vec![Type::Any; ARGUMENTS.len()];
    let module = Module {
        region: HOST.region,
        indirect_branches: true,
        signatures: vec![Signature { arguments, ..Signature::default() }],
        functions: vec![function],
        // Behind the head, ud2.
        text: [code, &[0x0f, 0x0b]].concat(),
        ..Module::default()
    };
    let file = module.to_bytes();
    let program = Program::parse(&file, HOST).expect("the file is well formed");
    let (mut watch, mut work) = (Watch(None), u64::MAX);
    let annotations = program.annotations(0);
    check_function(&program, 0, annotations, &mut arena.memory(), &mut work, &mut watch).ok()?;
    watch.0
}

/// Code that makes a frame and then does something with it and with registers, some of it under a condition.
fn program(random: &mut Random) -> Vec<u8> {
    let mut code = vec![0x48, 0x83, 0xec, FRAME as u8];
    let count = 1 + random.below(7);
    // Where a forward jump's distance is, until it has one.
    let mut open = None;
    for n in 0..count {
        let inside = n > 0 && n + 1 < count;
        if inside && open.is_none() && random.below(5) == 0 {
            code.extend([0x70 | random.below(16) as u8, 0]);
            open = Some(code.len());
            continue;
        }
        code.extend(instruction(random, n + 1 == count));
        if let Some(start) = open.filter(|_| random.below(2) == 0) {
            code[start - 1] = (code.len() - start) as u8;
            open = None;
        }
    }
    if let Some(start) = open {
        code[start - 1] = (code.len() - start) as u8;
    }
    code
}

/// Whether two runs agree with what is known of a place of `size` bytes.
fn agrees(known: Value, found: [u64; 2], size: usize, runs: &[Run; 2]) -> bool {
    let each = |expected: &dyn Fn(&Run) -> u64| {
        runs.iter().zip(found).all(|(run, found)| found == expected(run))
    };
    match known {
        Value::Number(range) => range.contains(found[0]) && found[0] == found[1],
        Value::Bytes(mask) => (0..size)
            .filter(|n| mask >> n & 1 != 0)
            .all(|n| (found[0] ^ found[1]) >> (8 * n) & 0xff == 0),
        Value::Stack(offset) => {
            each(&|run| run.before[RSP as usize].wrapping_add_signed(offset.into()))
        }
        Value::Saved(register) => each(&|run| run.before[register as usize]),
        // The code has no image and no tables.
        _ => true,
    }
}

/// The places of two runs that disagree with what is known.
fn differences(known: &Known, runs: &[Run; 2]) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |place: String, value: Value, found: [u64; 2], size| {
        if !agrees(value, found, size, runs) {
            wrong.push(format!("{place}: {value}, found {:#x} and {:#x}", found[0], found[1]));
        }
    };
    for (n, &value) in known.registers.iter().enumerate() {
        compare(REGISTERS[n].into(), value, [runs[0].after[n], runs[1].after[n]], 8);
    }
    let mut granule = 0;
    while granule < known.frame.len() {
        let pair = known.frame[granule] == Value::Upper;
        let lower = granule + usize::from(pair);
        let size = if pair { 8 } else { 4 };
        let start = FRAME - 4 * (lower + 1);
        let read = |run: &Run| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&run.frame[start..start + size]);
            u64::from_le_bytes(bytes)
        };
        let found = [read(&runs[0]), read(&runs[1])];
        compare(format!("[rsp+{start}], {size} bytes"), known.frame[lower], found, size);
        granule = lower + 1;
    }
    wrong
}

fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap_or_else(|_| panic!("{name}: no number")))
}

#[test]
fn what_is_known_of_random_code_holds_on_the_processor() {
    let mut random = Random::new(number("KYOZON_SEED", 1));
    let mut machine = Machine::new();
    let mut arena = Arena::new(64, 1 << 14);
    let mut operations = BTreeMap::<String, u32>::new();
    for _ in 0..number("KYOZON_PROGRAMS", PROGRAMS) {
        let code = program(&mut random);
        let Some(known) = check(&code, &mut arena) else { continue };
        for (_, insn) in instructions(&code) {
            *operations.entry(operation(insn.op)).or_default() += 1;
        }
        for _ in 0..RUNS {
            let runs = machine.run_twice(&code, &mut random);
            let wrong = differences(&known, &runs);
            let listing: Vec<_> = instructions(&code)
                .map(|(bytes, insn)| format!("{bytes:02x?} {:?}", insn.op))
                .collect();
            assert!(
                wrong.is_empty(),
                "the checker is wrong about {}\nafter {}\nwith arguments {:#x?}",
                wrong.join("; "),
                listing.join("\n      "),
                ARGUMENTS.map(|register| runs[0].before[register as usize]),
            );
        }
    }
    let missing: Vec<_> =
        generate::OPERATIONS.iter().filter(|name| !operations.contains_key(**name)).collect();
    assert!(missing.is_empty(), "no program has {missing:?}");
}
