//! The second back end: Cranelift makes the machine code, so no C compiler and no assembler is needed.
//!
//! Memory, tables, references, the call area and traps are those of the program in C. What Cranelift makes is taken
//! apart again, because the checker wants more of it: see [`code`].

mod code;
mod emit;
mod function;
mod image;
mod operators;
mod runtime;
mod vectors;

use std::collections::{BTreeMap, HashMap};

use cranelift_codegen::control::ControlPlane;
use cranelift_codegen::ir::{AbiParam, ExternalName, Function, Signature, UserFuncName};
use cranelift_codegen::isa::{CallConv, OwnedTargetIsa};
use cranelift_codegen::settings::{self, Configurable};
use cranelift_codegen::{ir, isa, Context, FinalizedRelocTarget};
use cranelift_frontend::{FunctionBuilder, FunctionBuilderContext};
use kyozon_typed_annotate::module::Module;
use kyozon_typed_manifest::{GROW, MODULE};

use crate::clif::code::Code;
use crate::clif::emit::Emit;
use crate::contents::Contents;
use crate::exports::exports;
use crate::program::{passing, Passed, Program};
use crate::references::References;
use crate::wasm::{FunctionType, Type};
use crate::{program, Error};

/// What code refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Symbol {
    /// A function of a module: numbers of the module, and among its own functions.
    Own(usize, usize),
    /// A function of the host.
    Host(usize),
    /// The host's function that makes a memory larger.
    Grow,
    /// A function that makes this memory larger.
    GrowMemory(usize),
    /// A function that copies between memories; the runtime's if there is none.
    Copy(Option<usize>, Option<usize>),
    /// A function that fills this memory.
    Fill(usize),
    /// A function that fills entries of tables.
    FillEntries,
    /// The start of a module.
    Start(usize),
    /// A function that calls this one of the host, for call tables.
    Wrapper(usize),
    /// The program's entry.
    Entry,
    /// The call table of a type.
    Table(u32),
}

/// The Cranelift type of a value.
fn clif_type(t: Type) -> ir::Type {
    match t {
        Type::I32 | Type::Funcref | Type::Externref => ir::types::I32,
        Type::I64 => ir::types::I64,
        Type::F32 => ir::types::F32,
        Type::F64 => ir::types::F64,
        Type::V128 => ir::types::I8X16,
    }
}

/// Arguments in registers, and the first result.
fn signature(kind: &FunctionType) -> Signature {
    let mut signature = Signature::new(CallConv::SystemV);
    let passed = passing(&kind.arguments).into_iter().zip(&kind.arguments);
    for (_, &t) in passed.filter(|(passed, _)| *passed == Passed::Register) {
        signature.params.push(AbiParam::new(clif_type(t)));
    }
    signature.returns.extend(kind.results.first().map(|&t| AbiParam::new(clif_type(t))));
    signature
}

/// A program while it is translated.
pub(crate) struct Unit<'p, 'a> {
    pub program: &'p Program<'a>,
    pub references: References,
    isa: OwnedTargetIsa,
    symbols: Vec<Symbol>,
    numbers: HashMap<Symbol, u32>,
    /// Functions of the runtime that are called, and not yet made.
    wanted: Vec<Symbol>,
    /// Types of indirect calls. How many functions their tables have is known at the end only.
    called: BTreeMap<u32, FunctionType>,
    functions: Vec<Compiled>,
}

/// A function in machine code.
pub(crate) struct Compiled {
    pub symbol: Symbol,
    pub kind: FunctionType,
    pub code: Code,
}

/// The program with its annotations to come, and the names of its functions.
pub(crate) fn compile(program: &Program<'_>) -> Result<(Module, Vec<Symbol>), Error> {
    let mut unit = Unit {
        program,
        references: References::new(program),
        isa: target()?,
        symbols: Vec::new(),
        numbers: HashMap::new(),
        wanted: Vec::new(),
        called: BTreeMap::new(),
        functions: Vec::new(),
    };
    unit.number_references()?;
    let mut contents = Contents::new(program);
    let exports = exports(program);
    let entry = FunctionType { arguments: vec![Type::I64], results: Vec::new() };
    unit.function(Symbol::Entry, &entry, |emit| emit.entry(&exports))?;
    for (n, instance) in program.instances.iter().enumerate() {
        let steps = crate::start::steps(program, n, &mut unit.references, &mut contents)?;
        unit.function(Symbol::Start(n), &FunctionType::default(), |emit| emit.start(&steps))?;
        for (index, &t) in instance.module.functions.iter().enumerate() {
            let kind = &instance.module.types[t as usize];
            unit.function(Symbol::Own(n, index), kind, |emit| function::translate(emit, n, index))
                .map_err(|error| instance.module.in_function(index, error))?;
        }
    }
    while let Some(symbol) = unit.wanted.pop() {
        let kind = unit.runtime_type(symbol);
        unit.function(symbol, &kind, |emit| emit.runtime(symbol))?;
    }
    let mut imports = Vec::new();
    for (n, function) in program.host.iter().enumerate() {
        contents.import(&function.module, &function.name, &function.kind.text());
        imports.push((Symbol::Host(n), function.kind.clone()));
    }
    if unit.numbers.contains_key(&Symbol::Grow) {
        let kind = unit.runtime_type(Symbol::Grow);
        contents.import(MODULE, GROW, &kind.text());
        imports.push((Symbol::Grow, kind));
    }
    let names = unit.functions.iter().map(|function| function.symbol).collect();
    let mut module = image::link(&unit, &imports)?;
    module.rest = contents.finish(&exports);
    Ok((module, names))
}

/// A processor of the level x86-64-v2, and what the checker wants.
fn target() -> Result<OwnedTargetIsa, Error> {
    let wrong = |error: &dyn std::fmt::Display| Error::new(format!("Cranelift: {error}"));
    let mut shared = settings::builder();
    for (name, value) in [
        ("opt_level", "speed"),
        ("is_pic", "false"),
        ("enable_probestack", "false"),
        ("unwind_info", "false"),
        ("enable_verifier", if cfg!(debug_assertions) { "true" } else { "false" }),
    ] {
        shared.set(name, value).map_err(|error| wrong(&error))?;
    }
    let mut isa = isa::lookup_by_name("x86_64").map_err(|error| wrong(&error))?;
    for name in ["has_sse3", "has_ssse3", "has_sse41", "has_sse42", "has_popcnt"] {
        isa.enable(name).map_err(|error| wrong(&error))?;
    }
    isa.finish(settings::Flags::new(shared)).map_err(|error| wrong(&error))
}

impl<'p, 'a> Unit<'p, 'a> {
    /// The number of a symbol in names of Cranelift.
    fn number(&mut self, symbol: Symbol) -> u32 {
        if let Some(&number) = self.numbers.get(&symbol) {
            return number;
        }
        let number = self.symbols.len() as u32;
        self.symbols.push(symbol);
        self.numbers.insert(symbol, number);
        if matches!(
            symbol,
            Symbol::GrowMemory(_) | Symbol::Copy(..) | Symbol::Fill(_) | Symbol::FillEntries
        ) {
            self.wanted.push(symbol);
        }
        number
    }

    /// Gives all functions with references their numbers, so that the sizes of call tables are known.
    fn number_references(&mut self) -> Result<(), Error> {
        for instance in &self.program.instances {
            for elements in &instance.module.elements {
                for &item in &elements.items {
                    if let crate::wasm::Constant::Function(n) = item {
                        self.references.value(self.program, instance.functions[n as usize])?;
                    }
                }
            }
            for body in &instance.module.bodies {
                for operator in body.get_operators_reader()? {
                    if let wasmparser::Operator::RefFunc { function_index } = operator? {
                        let function = instance.functions[function_index as usize];
                        self.references.value(self.program, function)?;
                    }
                }
            }
        }
        for global in &self.program.globals {
            let (owner, value) = global.value;
            self.references.bytes(self.program, owner, value)?;
        }
        Ok(())
    }

    /// Makes a function.
    fn function(
        &mut self,
        symbol: Symbol,
        kind: &FunctionType,
        body: impl FnOnce(&mut Emit<'_, '_, 'p, 'a>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let name = UserFuncName::user(0, self.number(symbol));
        let mut function = Function::with_name_signature(name, signature(kind));
        let mut context = FunctionBuilderContext::new();
        let builder = FunctionBuilder::new(&mut function, &mut context);
        let config = self.isa.frontend_config();
        let mut emit = Emit::new(builder, self);
        body(&mut emit)?;
        emit.b.finalize(config);
        let mut context = Context::for_function(function);
        context
            .compile(&*self.isa, &mut ControlPlane::default())
            .map_err(|error| Error::new(format!("Cranelift: {}", error.inner)))?;
        let mut references = Vec::new();
        for relocation in context.compiled_code().map_or(&[][..], |code| code.buffer.relocs()) {
            let FinalizedRelocTarget::ExternalName(ExternalName::User(name)) = &relocation.target
            else {
                return Err(Error::new("Cranelift: a reference to a function of its own"));
            };
            let name = &context.func.params.user_named_funcs()[*name];
            let symbol = self.symbols[name.index as usize];
            references.push(code::Reference {
                offset: relocation.offset,
                kind: relocation.kind,
                symbol,
                addend: relocation.addend,
            });
        }
        let bytes = context.compiled_code().map_or(&[][..], |code| code.code_buffer());
        let code = Code::parse(bytes, &references)?;
        self.functions.push(Compiled { symbol, kind: kind.clone(), code });
        Ok(())
    }

    /// The type of a function of the runtime.
    fn runtime_type(&self, symbol: Symbol) -> FunctionType {
        let (arguments, results) = match symbol {
            Symbol::Grow => (2, 1),
            Symbol::GrowMemory(_) => (1, 1),
            Symbol::Wrapper(n) => return self.program.host[n].kind.clone(),
            _ => (3, 0),
        };
        FunctionType { arguments: vec![Type::I32; arguments], results: vec![Type::I32; results] }
    }

    /// Notes an indirect call of a type: its number, and how many functions its table has.
    fn table(&mut self, kind: &FunctionType) -> (u32, usize) {
        let number = self.references.types[kind];
        let functions = self.references.of_type(number);
        let count = functions.len();
        let hosts: Vec<usize> = functions
            .iter()
            .filter_map(|function| match function {
                program::Function::Host(n) => Some(*n),
                program::Function::Own(..) => None,
            })
            .collect();
        if self.called.insert(number, kind.clone()).is_none() {
            for n in hosts {
                self.number(Symbol::Wrapper(n));
                self.wanted.push(Symbol::Wrapper(n));
            }
        }
        (number, count)
    }
}

/// The symbol of a function.
pub(crate) fn symbol(function: program::Function) -> Symbol {
    match function {
        program::Function::Own(instance, n) => Symbol::Own(instance, n),
        program::Function::Host(n) => Symbol::Host(n),
    }
}
