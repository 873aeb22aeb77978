//! Annotations that are found for machine code as a compiler writes it.

use kyozon_typed_annotate::infer::infer;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_annotate::module::{Function, Module, Signature, Type};
use kyozon_typed_checker::error::Rule;
use kyozon_typed_checker::program::{Host, Malformed, Program};

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
