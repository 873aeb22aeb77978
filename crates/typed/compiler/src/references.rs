//! References to functions: numbers, never addresses.
//!
//! A reference is the number of its function's type and the function's index in the call table of that type.

use std::collections::{BTreeMap, HashMap};

use crate::program::{Function, Program};
use crate::wasm::{Constant, FunctionType, Type};
use crate::Error;

/// Bits of a reference that hold the index in the call table.
pub(crate) const INDEX: u32 = 20;
/// Most functions of one type that have references.
const MOST: usize = 1 << 15;

/// All references of a program.
pub(crate) struct References {
    /// Numbers of types of functions, from 1.
    pub types: HashMap<FunctionType, u32>,
    /// Functions with references, by the number of their type.
    functions: BTreeMap<u32, Vec<Function>>,
}

impl References {
    pub fn new(program: &Program<'_>) -> Self {
        References { types: program.types(), functions: BTreeMap::new() }
    }

    /// The value of a reference to a function.
    pub fn value(&mut self, program: &Program<'_>, function: Function) -> Result<u32, Error> {
        let t = self.types[program.function_type(function)];
        let functions = self.functions.entry(t).or_default();
        let known = functions.iter().position(|&known| known == function);
        let index = known.unwrap_or_else(|| {
            functions.push(function);
            functions.len() - 1
        });
        if index >= MOST {
            return Err(Error::new("more than 32768 functions of one type are in tables"));
        }
        if t >= 1 << (32 - INDEX) {
            return Err(Error::new("more than 4095 types of functions"));
        }
        Ok(t << INDEX | index as u32)
    }

    /// The functions of a type that have references.
    pub fn of_type(&self, number: u32) -> &[Function] {
        self.functions.get(&number).map_or(&[], Vec::as_slice)
    }

    /// Types by their numbers.
    pub fn kinds(&self) -> BTreeMap<u32, FunctionType> {
        self.types.iter().map(|(kind, &n)| (n, kind.clone())).collect()
    }

    /// The bytes of a constant; none if it depends on the run.
    pub fn bytes(
        &mut self,
        program: &Program<'_>,
        instance: usize,
        constant: Constant,
    ) -> Result<Option<Vec<u8>>, Error> {
        Ok(Some(match constant {
            Constant::Bits(Type::I32 | Type::F32, bits) => (bits as u32).to_le_bytes().to_vec(),
            Constant::Bits(_, bits) => bits.to_le_bytes().to_vec(),
            Constant::Vector(bits) => bits.to_le_bytes().to_vec(),
            Constant::Null => vec![0; 4],
            Constant::Function(n) => {
                let function = program.instances[instance].functions[n as usize];
                self.value(program, function)?.to_le_bytes().to_vec()
            }
            Constant::Global(_) => return Ok(None),
        }))
    }
}
