//! What manifests say of exports.

use kyozon_typed_manifest::{self as manifest};

use crate::program::{Function, Program};
use crate::wasm::Kind;

/// What a manifest says of an export.
pub(crate) struct Exported {
    pub kind: manifest::Kind,
    pub number: u32,
    pub name: String,
    pub signature: String,
}

/// Exports; functions with their numbers for the dispatcher.
pub(crate) fn exports(program: &Program<'_>) -> Vec<(Option<Function>, Exported)> {
    let mut list = Vec::new();
    let mut functions = 0;
    for (n, instance) in program.instances.iter().enumerate() {
        for export in &instance.module.exports {
            let index = export.index as usize;
            let name = if program.instances.len() > 1 {
                format!("{n}.{}", export.name)
            } else {
                export.name.to_string()
            };
            let distance = |address: u64| (address - program.region) as u32;
            let (function, kind, number, signature) = match export.kind {
                Kind::Function => {
                    let function = instance.functions[index];
                    let signature = program.function_type(function).text();
                    functions += 1;
                    (Some(function), manifest::Kind::Function, functions - 1, signature)
                }
                Kind::Memory => {
                    (None, manifest::Kind::Memory, instance.memories[index] as u32, String::new())
                }
                Kind::Global => {
                    let global = &program.globals[instance.globals[index]];
                    let letter = global.kind.value.letter().to_string();
                    (None, manifest::Kind::Global, distance(global.address), letter)
                }
                Kind::Table => {
                    let table = &program.tables[instance.tables[index]];
                    (None, manifest::Kind::Table, distance(table.size), String::new())
                }
            };
            list.push((function, Exported { kind, number, name, signature }));
        }
    }
    list
}
