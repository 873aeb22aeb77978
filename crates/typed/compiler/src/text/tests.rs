//! Assembly as C compilers write it, and the typed assembly that becomes of it.

use std::collections::HashMap;

use super::*;
use crate::wasm::Type;

fn compiled() -> Compiled {
    let kind = |arguments: &[Type], results: &[Type]| FunctionType {
        arguments: arguments.to_vec(),
        results: results.to_vec(),
    };
    let leaf = kind(&[Type::I32, Type::F64, Type::Funcref], &[Type::I64]);
    let mut functions = HashMap::new();
    let mut declare = |name: &str, kind: &FunctionType, landing| {
        functions.insert(name.to_string(), Declared { kind: kind.clone(), landing });
    };
    declare("f0_0", &leaf, false);
    declare("f0_1", &kind(&[], &[Type::F32]), true);
    Compiled {
        c: String::new(),
        vectors: false,
        functions,
        imports: vec![("i0".into(), kind(&[Type::I64; 7], &[]))],
        tables: vec![("t1".into(), leaf, vec!["f0_0".into(), "f0_0".into()])],
        manifest: Vec::new(),
    }
}

fn typed(assembly: &str) -> Vec<String> {
    let typed = rewrite(assembly, &compiled(), 0x1000_0000);
    typed.text.lines().map(|line| line.trim().replace('\t', " ")).collect()
}

const HEAD: [&str; 4] = [
    ".region 0x10000000",
    ".entry entry",
    ".import i0 0 (any, any, any, any, any, any)",
    ".calltable t1 (any, any) -> any: f0_0, f0_0",
];

#[test]
fn functions_get_signatures_and_lose_what_only_a_linker_wants() {
    let assembly = "\t.file\t\"<stdin>\"\n\t.text\n\t.p2align 4\n\t.globl\tf0_0\n\t.hidden\tf0_0\n\
        \t.type\tf0_0, @function\nf0_0:\n.LFB0:\n\t.cfi_startproc\n\tmovq\t%rdi, %rax\n\tret\n\
        \t.cfi_endproc\n.LFE0:\n\t.size\tf0_0, .-f0_0\n\
        \t.section\t.rodata.cst4,\"aM\",@progbits,4\n.LC0:\n\t.long\t1065353216\n\
        \t.section\t.note.GNU-stack,\"\",@progbits\n";
    let lines = typed(assembly);
    assert_eq!(lines[..4], HEAD);
    assert_eq!(
        lines[4..],
        [
            ".text",
            ".p2align 4",
            ".func f0_0 (any, any) -> any frame 0",
            ".LFB0:",
            "movq %rdi, %rax",
            ".return",
            ".LFE0:",
            ".section .rodata.cst4,\"aM\",@progbits,4",
            ".LC0:",
            ".long 1065353216",
            ".section .note.GNU-stack,\"\",@progbits",
        ]
    );
}

#[test]
fn functions_that_call_others_check_the_stack_for_their_deepest_frame() {
    let assembly = "f0_1:\n\tpushq\t%rbx\n\t.cfi_def_cfa_offset 16\n\tsubq\t$32, %rsp\n\
        \t.cfi_def_cfa_offset 48\n\tcall\tf0_0\n\taddq\t$32, %rsp\n\t.cfi_def_cfa_offset 16\n\
        \tpopq\t%rbx\n\t.cfi_def_cfa_offset 8\n\tret\n";
    let lines = typed(assembly);
    let check = format!("cmp ${:#x}, %sp", CHECK + 40);
    assert_eq!(lines[4..8], [".func f0_1 () frame 40", "endbr64", check.as_str(), "jb .Lstack0"],);
    assert_eq!(lines.last().map(String::as_str), Some(".Lstack0: ud2"));
}

#[test]
fn a_large_frame_is_checked_though_nothing_is_called() {
    let frame = |bytes: u32| {
        let offset = bytes + 8;
        typed(&format!("f0_0:\n\tsubq\t${bytes}, %rsp\n\t.cfi_def_cfa_offset {offset}\n\tret\n"))
    };
    assert!(!frame(SLACK - 8).iter().any(|line| line.contains("%sp")));
    assert!(frame(SLACK).contains(&format!("cmp ${:#x}, %sp", CHECK + SLACK)));
}

#[test]
fn functions_that_address_by_32_bit_registers_are_found() {
    for (operand, narrow) in [
        ("16(%rax)", false),
        ("16(%eax)", true),
        ("268500992(,%r8d,4)", true),
        ("268500992(%rcx,%r8,4)", false),
        ("%eax", false),
    ] {
        let assembly = format!("f0_1:\n\tmovl\t{operand}, %ecx\n\tret\nf0_0:\n\tret\n");
        let typed = rewrite(&assembly, &compiled(), 0x1000_0000);
        assert_eq!(typed.narrow, if narrow { vec!["f0_1"] } else { vec![] }, "{operand}");
        assert_eq!(typed.functions, ["f0_1", "f0_0"]);
    }
}
