//! Links the functions to a module: layout of the image, references, tables.

use std::collections::{HashMap, HashSet};

use kyozon_typed_annotate::layout::Layout;
use kyozon_typed_annotate::module::{self, Module, Signature};

use super::code::{Field, Target, ALIGN};
use super::{symbol, Symbol, Unit};
use crate::program::{passing, Function, Passed};
use crate::wasm::FunctionType;
use crate::Error;

/// Between functions; nothing comes there.
const PADDING: u8 = 0x90;

/// The number of a signature.
fn signature(module: &mut Module, kind: &FunctionType) -> u16 {
    let passed = passing(&kind.arguments).into_iter().zip(&kind.arguments);
    let general = passed.filter(|(passed, t)| *passed == Passed::Register && t.is_general());
    let signature = Signature {
        arguments: vec![module::Type::Any; general.count()],
        result: kind.results.first().filter(|t| t.is_general()).map(|_| module::Type::Any),
        ..Signature::default()
    };
    let known = module.signatures.iter().position(|known| *known == signature);
    let number = known.unwrap_or(module.signatures.len());
    if known.is_none() {
        module.signatures.push(signature);
    }
    number as u16
}

/// Makes the module.
pub(super) fn link(
    unit: &Unit<'_, '_>,
    imports: &[(Symbol, FunctionType)],
) -> Result<Module, Error> {
    let mut module = Module { region: unit.program.region, ..Module::default() };
    // Names of the functions of each call table.
    let mut tables: Vec<(Symbol, FunctionType, Vec<Symbol>)> = Vec::new();
    for (&number, kind) in &unit.called {
        let functions = unit.references.of_type(number).iter();
        let mut names: Vec<Symbol> = functions
            .map(|&function| match function {
                Function::Own(..) => symbol(function),
                Function::Host(n) => Symbol::Wrapper(n),
            })
            .collect();
        if let Some(&first) = names.first() {
            names.resize(names.len().next_power_of_two(), first);
            tables.push((Symbol::Table(number), kind.clone(), names));
        }
    }
    let mut landings: HashSet<Symbol> =
        tables.iter().flat_map(|(_, _, names)| names.iter().copied()).collect();
    landings.insert(Symbol::Entry);

    let mut numbers = HashMap::new();
    let mut places = HashMap::new();
    let mut fields: Vec<(u64, Field, u64)> = Vec::new();
    for (n, function) in unit.functions.iter().enumerate() {
        let start = module.text.len();
        let signature = signature(&mut module, &function.kind);
        module.functions.push(module::Function {
            name: format!("{:?}", function.symbol),
            start: start as u32,
            signature,
            frame: function.code.frame.next_multiple_of(8),
            ..module::Function::default()
        });
        numbers.insert(function.symbol, n as u32);
        places.insert(function.symbol, start as u64);
        let constants = module.read_only.len() as u64;
        module.read_only.extend(&function.code.constants);
        module.read_only.resize(module.read_only.len().next_multiple_of(ALIGN), 0);
        let (bytes, own) = function.code.assemble(landings.contains(&function.symbol))?;
        module.text.extend(bytes);
        module.text.resize(module.text.len().next_multiple_of(ALIGN), PADDING);
        fields.extend(own.into_iter().map(|field| (start as u64, field, constants)));
    }
    let missing = |symbol: &Symbol| Error::new(format!("{symbol:?} is missing"));
    let entries = tables.iter().map(|(_, _, names)| names.len()).sum();
    let layout = Layout::new(module.text.len(), module.read_only.len(), entries, imports.len());
    let mut next = layout.call_tables;
    for (symbol, kind, names) in &tables {
        places.insert(*symbol, next);
        next += 8 * names.len() as u64;
        let signature = signature(&mut module, kind);
        let functions: Result<Vec<_>, _> = names
            .iter()
            .map(|name| numbers.get(name).copied().ok_or_else(|| missing(name)))
            .collect();
        module.call_tables.push(module::CallTable { signature, functions: functions? });
    }
    for (n, (symbol, kind)) in imports.iter().enumerate() {
        places.insert(*symbol, layout.import(n));
        let signature = signature(&mut module, kind);
        module.imports.push(module::Import { number: n as u16, signature });
    }
    module.entry = *numbers.get(&Symbol::Entry).ok_or_else(|| missing(&Symbol::Entry))?;
    for (start, field, constants) in fields {
        let target = match field.target {
            Target::Symbol(symbol) => *places.get(&symbol).ok_or_else(|| missing(&symbol))?,
            Target::Thunk(register) => layout.thunk(register),
            Target::Return => layout.return_thunk(),
            Target::Constant(n) => layout.read_only + constants + u64::from(n),
        };
        let at = start + u64::from(field.offset);
        let distance = target as i64 - (at as i64 + 4) + field.addend;
        let distance = i32::try_from(distance)
            .map_err(|_| Error::new("the program is larger than 2 GiB: split it"))?;
        module.text[at as usize..at as usize + 4].copy_from_slice(&distance.to_le_bytes());
    }
    Ok(module)
}
