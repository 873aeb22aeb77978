//! Files of typed code, and functions with annotations, from untrusted bytes: the checker returns, whatever they are.
#![no_main]

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_annotate::module::{Function, Module, Signature, Type};
use kyozon_typed_checker::flow::{check_function, Strict};
use kyozon_typed_checker::program::{Host, Program};
use kyozon_typed_checker::WORK;
use libfuzzer_sys::fuzz_target;

const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };

fuzz_target!(|input: &[u8]| {
    let mut arena = Arena::new(64, 1 << 16);
    let [kind, annotations, rest @ ..] = input else { return };
    if kind & 1 == 0 {
        let _ = verify(&input[1..], HOST, &mut arena);
        return;
    }
    let (heads, text) = rest.split_at((*annotations as usize).min(rest.len()));
    let signature = Signature {
        arguments: vec![Type::Any, Type::U32, Type::Unknown],
        stack: 2,
        halves: 2,
        result: (kind & 2 != 0).then_some(Type::Any),
    };
    let file = Module {
        region: HOST.region,
        indirect_branches: true,
        signatures: vec![signature],
        functions: vec![Function { frame: 64, ..Function::default() }],
        text: text.to_vec(),
        ..Module::default()
    }
    .to_bytes();
    let Ok(program) = Program::parse(&file, HOST) else { return };
    let mut faults = vec![0; text.len()];
    let mut judge = Strict { faults: &mut faults, count: 0, vectors: false, go_on: || true };
    let mut work = WORK.0 * text.len() as u64 + WORK.1;
    let _ = check_function(&program, 0, heads, &mut arena.memory(), &mut work, &mut judge);
});
