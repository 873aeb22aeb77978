//! What the checker says of random code is compared with what the processor does.
//!
//! The code has no memory but its frame; it may call one function, and have one loop. It runs twice: with the same
//! arguments, and with other values in all other registers, in the flags and in the stack. So it shows two things:
//!
//! - a place has a value that its type allows;
//! - a place, or the flags, that the checker takes for data depends on data only.
//!
//! `KYOZON_PROGRAMS` is how many programs are tried, or `KYOZON_SECONDS` for how long; `KYOZON_SEED` is where their
//! numbers begin.

mod generate;
mod machine;
mod random;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use generate::{instructions, operation, program};
use kyozon_typed_annotate::annotation::Head;
use kyozon_typed_annotate::infer::infer;
use kyozon_typed_annotate::memory::Arena;
use kyozon_typed_annotate::module::{Function, Module, Signature, Type};
use kyozon_typed_checker::error::Error;
use kyozon_typed_checker::flow::{check_function, Judge, View};
use kyozon_typed_checker::insn::{Op, RSP};
use kyozon_typed_checker::program::{Host, Program, ARGUMENTS};
use kyozon_typed_checker::value::{Value, REGISTERS};
use machine::{Code, Machine, Run, DEPTH};
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
    flags: bool,
}

/// Keeps what is known at the last head.
struct Watch(Option<Known>);

impl Judge for Watch {
    fn broken(&mut self, error: Error) -> Result<(), Error> {
        Err(error)
    }

    fn faults(&mut self, _offset: u32) -> Result<(), Error> {
        Ok(())
    }

    fn head(&mut self, _head: u32, flows_in: bool, state: View<'_>) {
        let (registers, frame) = (*state.registers, state.frame.to_vec());
        self.0 = flows_in.then_some(Known { registers, frame, flags: state.flags });
    }
}

/// What the checker knows at the end of this code; nothing if it refuses the code.
fn check(code: &Code, arena: &mut Arena) -> Option<Known> {
    let arguments = |count| vec![Type::Any; count];
    let signatures = vec![
        Signature { arguments: arguments(2), result: Some(Type::Any), ..Signature::default() },
        Signature { arguments: arguments(ARGUMENTS.len()), ..Signature::default() },
    ];
    let start = code.callee.len() as u32;
    let frame = DEPTH as u32;
    let mut functions = vec![Function { name: "callee".into(), ..Function::default() }];
    functions.push(Function {
        name: "f".into(),
        start,
        signature: 1,
        frame,
        ..Function::default()
    });
    if code.callee.is_empty() {
        functions.remove(0);
    }
    let last = functions.len() - 1;
    let mut module = Module {
        region: HOST.region,
        indirect_branches: true,
        signatures,
        functions,
        // At the end, ud2.
        text: [&code.callee[..], &code.function, &[0x0f, 0x0b]].concat(),
        ..Module::default()
    };
    let file = module.to_bytes();
    let program = Program::parse(&file, HOST).expect("the file is well formed");
    let mut heads = infer(&program, last as u32, arena).ok()?;
    heads.insert(start + code.function.len() as u32, Head::default());
    module.functions[last].heads = heads;
    let file = module.to_bytes();
    let program = Program::parse(&file, HOST).expect("the file is well formed");
    let (mut watch, mut work) = (Watch(None), u64::MAX);
    for function in 0..program.function_count() {
        let annotations = program.annotations(function);
        let memory = &mut arena.memory();
        check_function(&program, function, annotations, memory, &mut work, &mut watch).ok()?;
    }
    watch.0
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
        let start = DEPTH - 4 * (lower + 1);
        let read = |run: &Run| {
            let mut bytes = [0; 8];
            bytes[..size].copy_from_slice(&run.frame[start..start + size]);
            u64::from_le_bytes(bytes)
        };
        let found = [read(&runs[0]), read(&runs[1])];
        let place = format!("[stack-{}], {size} bytes", DEPTH - start);
        compare(place, known.frame[lower], found, size);
        granule = lower + 1;
    }
    if known.flags && runs[0].flags != runs[1].flags {
        wrong.push(format!("flags: data, found {:#x} and {:#x}", runs[0].flags, runs[1].flags));
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
    let seconds = number("KYOZON_SECONDS", 0);
    let programs = if seconds > 0 { u64::MAX } else { number("KYOZON_PROGRAMS", PROGRAMS) };
    let (start, limit) = (Instant::now(), Duration::from_secs(seconds));
    let (mut tried, mut accepted, mut loops) = (0u64, 0u64, 0u64);
    while tried < programs && (seconds == 0 || start.elapsed() < limit) {
        tried += 1;
        let code = program(&mut random);
        let Some(known) = check(&code, &mut arena) else { continue };
        accepted += 1;
        for (_, insn) in instructions(&code.function) {
            *operations.entry(operation(insn.op)).or_default() += 1;
            loops += u64::from(matches!(insn.op, Op::JumpIf(_)) && insn.immediate < 0);
        }
        for _ in 0..RUNS {
            let runs = machine.run_twice(&code, &mut random);
            let wrong = differences(&known, &runs);
            let listing: Vec<_> = instructions(&code.callee)
                .chain(instructions(&code.function))
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
    assert!(loops > 0, "no program has a loop");
    println!("{tried} programs, {accepted} accepted and run, {loops} of them with a loop");
}
