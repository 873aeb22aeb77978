//! Annotations that are found for machine code as a compiler writes it.

use kyozon_typed_annotate::annotation::Head;
use kyozon_typed_annotate::infer::infer;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_annotate::module::{CallTable, Function, Module, Signature, Type};
use kyozon_typed_checker::error::{Error, Rule};
use kyozon_typed_checker::flow::{check_function, Strict};
use kyozon_typed_checker::program::{Host, Malformed, Program, MOST_FRAME};

const HOST: Host =
    Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: true, tracking: false };

fn module(text: &[u8]) -> Module {
    Module {
        region: HOST.region,
        indirect_branches: true,
        signatures: vec![Signature {
            arguments: vec![Type::Any; 2],
            stack: 0,
            halves: 0,
            result: Some(Type::Any),
        }],
        functions: vec![Function { frame: 64, ..Function::default() }],
        text: text.to_vec(),
        ..Module::default()
    }
}

/// The module with the annotations that were found.
fn annotated(mut module: Module) -> Module {
    let bytes = module.to_bytes();
    let program = Program::parse(&bytes, HOST).expect("well-formed");
    let heads = infer(&program, 0, &mut Arena::default()).expect("safe code");
    module.functions[0].heads = heads;
    module
}

#[test]
fn a_bounded_loop_gets_a_range() {
    // mov $0x10000000, %eax; 1: movb $1, (%rax); add $16, %rax; cmp $0x10001000, %rax; jne 1b; ret
    let text = [
        0xb8, 0, 0, 0, 0x10, 0xc6, 0x00, 0x01, 0x48, 0x83, 0xc0, 0x10, 0x48, 0x3d, 0, 0x10, 0,
        0x10, 0x75, 0xf1, 0xc3,
    ];
    let module = annotated(module(&text));
    assert_eq!(module.functions[0].heads.keys().collect::<Vec<_>>(), [&5]);
    let (_, faults) = verify(&module.to_bytes(), HOST, &mut Arena::default()).expect("accepted");
    assert_eq!(faults, [5]);
}

#[test]
fn a_rotated_loop_gets_its_whole_state() {
    // xor %eax, %eax; jmp 2f; 1: mov %edi, %ecx; movzbl 0x10000000(%rcx), %ecx; add %rcx, %rax; inc %edi
    // 2: dec %esi; jns 1b; ret
    let text = [
        0x31, 0xc0, 0xeb, 0x0e, 0x89, 0xf9, 0x0f, 0xb6, 0x89, 0, 0, 0, 0x10, 0x48, 0x01, 0xc8,
        0xff, 0xc7, 0xff, 0xce, 0x79, 0xee, 0xc3,
    ];
    let module = annotated(module(&text));
    let (_, faults) = verify(&module.to_bytes(), HOST, &mut Arena::default()).expect("accepted");
    assert_eq!(faults, [6]);
}

#[test]
fn a_loop_that_walks_out_is_refused_with_its_reason() {
    // mov $0x10000000, %eax; 1: movb $1, (%rax); add $16, %rax; dec %esi; jne 1b; ret
    let text = [
        0xb8, 0, 0, 0, 0x10, 0xc6, 0x00, 0x01, 0x48, 0x83, 0xc0, 0x10, 0xff, 0xce, 0x75, 0xf5, 0xc3,
    ];
    let bytes = module(&text).to_bytes();
    let program = Program::parse(&bytes, HOST).expect("well-formed");
    let error = infer(&program, 0, &mut Arena::default()).expect_err("the address has no bound");
    assert!(matches!(error.rule, Rule::Address { write: true, .. }), "{error}");
    assert_eq!(error.offset, 5);
}

#[test]
fn without_annotations_a_loop_is_refused() {
    let text = [0x90, 0xeb, 0xfe];
    let error =
        verify(&module(&text).to_bytes(), HOST, &mut Arena::default()).expect_err("no head");
    assert_eq!(error.rule, Rule::NoHead(1));
    assert_eq!(
        error.to_string(),
        "function 0, text offset 0x1, Jump: jump back to 0x1, which has no annotation"
    );
}

#[test]
fn each_function_without_annotations_is_named() {
    // Twice: nop; 1: movb $1, (%rdi); dec %esi; jne 1b; ret. Between them: nop; 1: dec %esi; jne 1b; ret.
    let bad = [0x90, 0xc6, 0x07, 0x01, 0xff, 0xce, 0x75, 0xf9, 0xc3];
    let good = [0x90, 0xff, 0xce, 0x75, 0xfc, 0xc3];
    let mut module = module(&[&bad[..], &good, &bad].concat());
    module.signatures[0].result = None;
    let function = |start| Function { start, ..Function::default() };
    module.functions = vec![function(0), function(9), function(15)];
    let errors = module.infer(HOST, &mut Arena::default()).expect_err("two stores go anywhere");
    let places: Vec<_> = errors.iter().map(|error| (error.function, error.offset)).collect();
    assert_eq!(places, [(0, 1), (2, 16)]);
    assert_eq!(module.functions[1].heads.keys().collect::<Vec<_>>(), [&10]);
}

#[test]
fn a_malformed_module_stays_as_it_is() {
    let mut module = module(&[0xc3]);
    module.entry = 1;
    let errors = module.infer(HOST, &mut Arena::default()).expect_err("no such function");
    assert_eq!(errors.len(), 1);
    assert_eq!(errors[0].rule, Rule::File(Malformed::Field("entry", 1)));
}

/// `f` calls `g` with the stack pointer as first argument: mov %rsp, %rdi; cmp $0x5000, %sp; jb 1f; call g; 1: ret.
const CALL: [u8; 16] =
    [0x48, 0x89, 0xe7, 0x66, 0x81, 0xfc, 0, 0x50, 0x72, 5, 0xe8, 1, 0, 0, 0, 0xc3];

fn caller(callee: &[u8]) -> Module {
    let mut module = module(&[&CALL[..], callee].concat());
    module.signatures[0].result = None;
    let function = |start| Function { start, ..Function::default() };
    module.functions = vec![function(0), function(16)];
    module
}

#[test]
fn an_argument_that_is_not_used_becomes_unknown() {
    // mov %rsi, 0x10000000; ret
    let mut module = caller(&[0x48, 0x89, 0x34, 0x25, 0, 0, 0, 0x10, 0xc3]);
    module.infer(HOST, &mut Arena::default()).expect("annotations");
    let signature = &module.signatures[usize::from(module.functions[1].signature)];
    assert_eq!(signature.arguments, [Type::Unknown, Type::Any]);
    assert_eq!(module.signatures[0].arguments, [Type::Any; 2]);
    assert_eq!(module.functions[0].signature, 0);
    verify(&module.to_bytes(), HOST, &mut Arena::default()).expect("accepted");
}

#[test]
fn an_argument_that_is_used_stays_as_it_is() {
    // mov %rdi, 0x10000000; ret
    let mut module = caller(&[0x48, 0x89, 0x3c, 0x25, 0, 0, 0, 0x10, 0xc3]);
    let errors = module.infer(HOST, &mut Arena::default()).expect_err("an address is stored");
    assert!(matches!(errors[..], [Error { function: 0, rule: Rule::Argument { .. }, .. }]));
    assert_eq!(module.signatures.len(), 1);
}

#[test]
fn an_argument_of_a_function_in_a_call_table_stays_as_it_is() {
    let mut module = caller(&[0x48, 0x89, 0x34, 0x25, 0, 0, 0, 0x10, 0xc3]);
    module.call_tables = vec![CallTable { signature: 0, functions: vec![1] }];
    let errors = module.infer(HOST, &mut Arena::default()).expect_err("the table has a signature");
    assert_eq!(errors.len(), 1);
    assert_eq!(module.signatures.len(), 1);
}

#[test]
fn a_counter_ends_at_the_number_that_it_is_compared_with() {
    // xor %ecx, %ecx; 1: movl $n, 0x10000000 for each n, so that the function has many numbers
    let mut text = vec![0x31, 0xc9];
    for n in 4..20u8 {
        text.extend([0xc7, 0x04, 0x25, 0, 0, 0, 0x10, n, 0, 0, 0]);
    }
    // mov %ecx, %eax; imul $0x1000000, %rax, %rax; movb $1, 0x10000000(%rax); inc %ecx; cmp $40, %ecx; jne; ret
    text.extend([0x89, 0xc8, 0x48, 0x69, 0xc0, 0, 0, 0, 0x01]);
    text.extend([0xc6, 0x80, 0, 0, 0, 0x10, 1, 0xff, 0xc1, 0x83, 0xf9, 40, 0x0f, 0x85]);
    let back = -(text.len() as i32 + 4 - 2);
    text.extend(back.to_le_bytes());
    text.push(0xc3);
    let mut module = module(&text);
    module.signatures[0].result = None;
    module.infer(HOST, &mut Arena::default()).expect("annotations");
}

#[test]
fn flags_live_over_moves_at_a_head() {
    // test %edi, %edi; nop; 1: mov %rsi, %rax; je 2f; sub $1, %edi; jmp 1b; 2: ret
    let text = [0x85, 0xff, 0x90, 0x48, 0x89, 0xf0, 0x74, 0x05, 0x83, 0xef, 0x01, 0xeb, 0xf6, 0xc3];
    let module = annotated(module(&text));
    assert!(module.functions[0].heads[&3].flags);
}

/// A function with the deepest frame: cmp $0xa000, %sp; jb 1f; sub $0x4000, %rsp; then `body`; 1: ud2.
fn deepest(body: &[u8]) -> Module {
    let start = [0x66, 0x81, 0xfc, 0, 0xa0, 0x0f, 0x82];
    let sub = [0x48, 0x81, 0xec, 0, 0x40, 0, 0];
    let distance = ((sub.len() + body.len()) as u32).to_le_bytes();
    let mut module = module(&[&start[..], &distance, &sub[..], body, &[0x0f, 0x0b]].concat());
    module.functions[0].frame = MOST_FRAME;
    module
}

/// How many values the check of a function counts.
fn work(module: &Module) -> u64 {
    let bytes = module.to_bytes();
    let program = Program::parse(&bytes, HOST).expect("well-formed");
    let (mut arena, mut left, mut faults) = (Arena::default(), u64::MAX, [0; 1]);
    let mut strict = Strict { faults: &mut faults, count: 0, vectors: false, go_on: || true };
    let annotations = program.annotations(0);
    check_function(&program, 0, annotations, &mut arena.memory(), &mut left, &mut strict)
        .expect("accepted");
    u64::MAX - left
}

#[test]
fn heads_on_all_instructions_of_a_deep_frame_are_refused() {
    let with_heads = |count: u32| {
        let mut module = deepest(&vec![0x90; count as usize]);
        module.functions[0].heads = (18..18 + count).map(|at| (at, Head::default())).collect();
        module
    };
    let few = with_heads(100).to_bytes();
    verify(&few, HOST, &mut Arena::default()).expect("accepted");
    let many = with_heads(400).to_bytes();
    let error = verify(&many, HOST, &mut Arena::default()).expect_err("too much is kept");
    assert_eq!(error.rule, Rule::Work);
}

#[test]
fn copies_and_joins_are_counted() {
    let granules = u64::from(MOST_FRAME) / 4;
    let [one, two] = [1, 2].map(|jumps| {
        // ucomiss %xmm0, %xmm0; then jz +0, each of which is kept and joined.
        let jumps = [0x74, 0].repeat(jumps);
        work(&deepest(&[&[0x0f, 0x2e, 0xc0][..], &jumps].concat()))
    });
    assert!(two - one >= 2 * granules && two - one < 3 * granules);
    // lea 0x4000(%rsp), %rsp; lea -0x4000(%rsp), %rsp
    let down = [0x48, 0x8d, 0xa4, 0x24, 0, 0xc0, 0xff, 0xff];
    let up = [0x48, 0x8d, 0xa4, 0x24, 0, 0x40, 0, 0];
    let [one, two] = [1, 2].map(|moves| work(&deepest(&[up, down].concat().repeat(moves))));
    assert!(two - one >= granules && two - one < 2 * granules);
}

#[test]
fn places_that_wait_are_counted() {
    let [one, two] = [1000u32, 2000].map(|jumps| {
        // ucomiss %xmm0, %xmm0; then jz to each of as many nops, and ud2.
        let mut text = vec![0x0f, 0x2e, 0xc0];
        for jump in 0..jumps {
            let distance = 6 * (jumps - jump - 1) + jump;
            text.extend([&[0x0f, 0x84][..], &distance.to_le_bytes()].concat());
        }
        text.extend(vec![0x90; jumps as usize]);
        text.extend([0x0f, 0x0b]);
        work(&module(&text))
    });
    assert!(two - 2 * one > 1000 * 1000 / 16, "{one} {two}");
}
