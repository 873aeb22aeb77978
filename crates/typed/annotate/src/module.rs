//! A program that is being made, and its file.

use std::collections::BTreeMap;

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::error::{Error, Rule};
use kyozon_typed_checker::program::{Host, Program, ARGUMENTS, HEADER, MAGIC, VERSION};

use crate::annotation::{encode, Heads};
use crate::infer::infer;
use crate::memory::Arena;

/// Type of an argument or a result: its code in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Type {
    /// Any number.
    Any = 1,
    /// Of 32 bits.
    U32 = 2,
    /// Of 16 bits.
    U16 = 3,
    /// Of 8 bits.
    U8 = 4,
    /// Anything, in an argument that the function does not use as data. No result, and not of an import.
    Unknown = 5,
    /// A view with its length, as the result of an import whose number says so.
    View = 6,
    /// The same of a view that may be written.
    WritableView = 7,
}

impl Type {
    /// The type of a code in the file, which must not be 0.
    pub fn of(code: u8) -> Option<Type> {
        use Type::*;
        [Any, U32, U16, U8, Unknown, View, WritableView]
            .into_iter()
            .find(|&known| known as u8 == code)
    }
}

/// Arguments and result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Signature {
    /// Types of the arguments in rdi, rsi, rdx, rcx, r8, r9: at most six.
    pub arguments: Vec<Type>,
    /// Number of 8-byte arguments on the stack.
    pub stack: u8,
    /// Bit n: only the lower four bytes of stack argument n are data.
    pub halves: u32,
    /// Type of rax at the return.
    pub result: Option<Type>,
}

/// One function. It ends where the next one starts.
#[derive(Clone, Debug, Default)]
pub struct Function {
    /// Name, for messages.
    pub name: String,
    /// Start in the text.
    pub start: u32,
    /// Number of its signature.
    pub signature: u16,
    /// Deepest frame in bytes; a multiple of 8.
    pub frame: u32,
    /// Annotations.
    pub heads: Heads,
}

/// A table of functions of one signature.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallTable {
    /// Number of the signature.
    pub signature: u16,
    /// The functions.
    pub functions: Vec<u32>,
}

/// A table of places in one function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JumpTable {
    /// Start in the read-only data.
    pub start: u32,
    /// Number of 4-byte entries.
    pub count: u32,
    /// The function.
    pub function: u32,
}

/// A function of the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Import {
    /// The number that the host knows it by.
    pub number: u16,
    /// Number of its signature.
    pub signature: u16,
}

/// All that a file holds.
#[derive(Clone, Debug, Default)]
pub struct Module {
    /// Start of the region.
    pub region: u64,
    /// The text has indirect branches and returns of its own.
    pub indirect_branches: bool,
    /// Signatures.
    pub signatures: Vec<Signature>,
    /// Functions in the order of the text.
    pub functions: Vec<Function>,
    /// Call tables.
    pub call_tables: Vec<CallTable>,
    /// Jump tables in the order of the read-only data.
    pub jump_tables: Vec<JumpTable>,
    /// Imports.
    pub imports: Vec<Import>,
    /// The function where the program starts.
    pub entry: u32,
    /// Read-only data.
    pub read_only: Vec<u8>,
    /// Machine code.
    pub text: Vec<u8>,
    /// What follows in the file: the runtime's own.
    pub rest: Vec<u8>,
}

impl Module {
    /// Finds the annotations of each function that has none, so that the checker accepts it on this host.
    ///
    /// Compilers leave a register undefined if the function that they call does not use it. Such an argument becomes
    /// [`Type::Unknown`].
    ///
    /// # Errors
    ///
    /// One error for each function for which there are none, in the order of the text: the first rule that it breaks.
    /// The others have their annotations. A malformed module gives one error, and nothing is changed.
    pub fn infer(&mut self, host: Host, arena: &mut Arena) -> Result<(), Vec<Error>> {
        let mut errors = BTreeMap::new();
        let bare = |&n: &u32| self.functions[n as usize].heads.is_empty();
        let mut wanted: Vec<u32> = (0..self.functions.len() as u32).filter(bare).collect();
        while !wanted.is_empty() {
            let file = self.to_bytes();
            let program = Program::parse(&file, host).map_err(|malformed| {
                vec![Error { function: 0, offset: 0, op: None, rule: Rule::File(malformed) }]
            })?;
            for n in wanted.drain(..) {
                match infer(&program, n, arena) {
                    Ok(heads) => self.functions[n as usize].heads = heads,
                    Err(error) => _ = errors.insert(n, error),
                }
            }
            let callers: Vec<u32> = errors.keys().copied().collect();
            for n in callers {
                if self.make_argument_unknown(&errors[&n], host, arena) {
                    errors.remove(&n);
                    wanted.push(n);
                }
            }
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(errors.into_values().collect())
        }
    }

    /// If a call was refused for an argument that the callee does not use, makes it unknown. False if it is used, or
    /// if the callee is in a call table, whose functions have one signature.
    fn make_argument_unknown(&mut self, error: &Error, host: Host, arena: &mut Arena) -> bool {
        let Rule::Argument { register, .. } = error.rule else { return false };
        let Some(argument) = ARGUMENTS.iter().position(|&r| r == register) else { return false };
        let at = error.offset as usize;
        let Ok(call) = decode(&self.text[at..]) else { return false };
        let target = at as i64 + i64::from(call.length) + call.immediate;
        let Some(callee) = self.functions.iter().position(|f| i64::from(f.start) == target) else {
            return false;
        };
        if self.call_tables.iter().any(|table| table.functions.contains(&(callee as u32))) {
            return false;
        }
        let mut tried = self.clone();
        let function = &mut tried.functions[callee];
        let mut signature = self.signatures[usize::from(function.signature)].clone();
        signature.arguments[argument] = Type::Unknown;
        let known = self.signatures.iter().position(|s| *s == signature);
        let Ok(number) = u16::try_from(known.unwrap_or(self.signatures.len())) else {
            return false;
        };
        function.signature = number;
        if known.is_none() {
            tried.signatures.push(signature);
        }
        let file = tried.to_bytes();
        let heads =
            Program::parse(&file, host).ok().and_then(|p| infer(&p, callee as u32, arena).ok());
        let Some(heads) = heads else { return false };
        tried.functions[callee].heads = heads;
        *self = tried;
        true
    }

    /// The file. What is out of range in the module is out of range in the file, and the checker says so.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut annotations = Vec::new();
        let mut starts = Vec::new();
        for function in &self.functions {
            starts.push(annotations.len() as u32);
            annotations.extend(encode(&function.heads, function.start));
        }
        let entries: Vec<u32> =
            self.call_tables.iter().flat_map(|t| t.functions.iter().copied()).collect();
        let numbers = [
            self.text.len(),
            self.read_only.len(),
            self.signatures.len(),
            self.functions.len(),
            self.call_tables.len(),
            self.jump_tables.len(),
            self.imports.len(),
            entries.len(),
            annotations.len(),
            self.entry as usize,
        ];
        out.extend(MAGIC);
        out.extend(VERSION.to_le_bytes());
        out.extend(u32::from(self.indirect_branches).to_le_bytes());
        out.extend(self.region.to_le_bytes());
        for number in numbers {
            out.extend((number as u32).to_le_bytes());
        }
        debug_assert_eq!(out.len(), HEADER);
        for signature in &self.signatures {
            out.push(signature.result.map_or(0, |t| t as u8));
            out.push(signature.arguments.len() as u8);
            let mut types = [0; 6];
            for (code, argument) in types.iter_mut().zip(&signature.arguments) {
                *code = *argument as u8;
            }
            out.extend(types);
            out.push(signature.stack);
            out.extend(&signature.halves.to_le_bytes()[..3]);
        }
        for (function, annotations) in self.functions.iter().zip(starts) {
            out.extend(function.start.to_le_bytes());
            out.extend(annotations.to_le_bytes());
            out.extend(function.signature.to_le_bytes());
            out.extend(((function.frame / 8) as u16).to_le_bytes());
        }
        let mut first = 0u32;
        for table in &self.call_tables {
            out.extend(first.to_le_bytes());
            out.extend((table.functions.len() as u16).to_le_bytes());
            out.extend(table.signature.to_le_bytes());
            first += table.functions.len() as u32;
        }
        for entry in entries {
            out.extend(entry.to_le_bytes());
        }
        for table in &self.jump_tables {
            for field in [table.start, table.count, table.function] {
                out.extend(field.to_le_bytes());
            }
        }
        for import in &self.imports {
            out.extend(import.number.to_le_bytes());
            out.extend(import.signature.to_le_bytes());
        }
        out.extend(annotations);
        out.extend(&self.read_only);
        out.extend(&self.text);
        out.extend(&self.rest);
        out
    }
}
