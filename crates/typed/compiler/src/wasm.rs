//! A WebAssembly module, validated and taken apart.

use std::collections::HashMap;

use wasmparser::{
    ConstExpr, ElementItems, ElementKind, FunctionBody, HeapType, KnownCustom, Name, Operator,
    Parser, Payload, TypeRef, Validator, WasmFeatures,
};

use crate::Error;

/// Type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Type {
    I32,
    I64,
    F32,
    F64,
    V128,
    Funcref,
    Externref,
}

impl Type {
    fn of(t: wasmparser::ValType) -> Result<Type, Error> {
        use wasmparser::ValType;
        Ok(match t {
            ValType::I32 => Type::I32,
            ValType::I64 => Type::I64,
            ValType::F32 => Type::F32,
            ValType::F64 => Type::F64,
            ValType::V128 => Type::V128,
            ValType::Ref(t) => Type::of_reference(t)?,
        })
    }

    fn of_reference(t: wasmparser::RefType) -> Result<Type, Error> {
        if t.is_func_ref() {
            Ok(Type::Funcref)
        } else if t.is_extern_ref() {
            Ok(Type::Externref)
        } else {
            Err(Error::new(format!("type {t} is not supported")))
        }
    }

    fn of_heap(t: HeapType) -> Result<Type, Error> {
        match t {
            HeapType::FUNC => Ok(Type::Funcref),
            HeapType::EXTERN => Ok(Type::Externref),
            _ => Err(Error::new(format!("references of type {t:?} are not supported"))),
        }
    }

    /// The letter in manifests.
    pub fn letter(self) -> char {
        match self {
            Type::I32 => 'i',
            Type::I64 => 'I',
            Type::F32 => 'f',
            Type::F64 => 'F',
            Type::V128 => 'v',
            Type::Funcref => 'r',
            Type::Externref => 'e',
        }
    }

    /// Passed in a general register.
    pub fn is_general(self) -> bool {
        !matches!(self, Type::F32 | Type::F64 | Type::V128)
    }
}

/// Type of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct FunctionType {
    pub arguments: Vec<Type>,
    pub results: Vec<Type>,
}

impl FunctionType {
    /// As manifests say it.
    pub fn text(&self) -> String {
        let arguments = self.arguments.iter().map(|t| t.letter());
        arguments.chain([':']).chain(self.results.iter().map(|t| t.letter())).collect()
    }
}

/// Type of a memory, in pages, or of a table, in entries.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub initial: u32,
    pub most: Option<u32>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct TableType {
    pub element: Type,
    pub limits: Limits,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GlobalType {
    pub value: Type,
    pub mutable: bool,
}

/// A constant expression.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Constant {
    /// The bits of a number, of at most 64.
    Bits(Type, u64),
    Vector(u128),
    Null,
    Function(u32),
    Global(u32),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ImportType {
    Function(u32),
    Table(TableType),
    Memory(Limits),
    Global(GlobalType),
}

pub(crate) struct Import<'a> {
    pub module: &'a str,
    pub name: &'a str,
    pub kind: ImportType,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Function,
    Table,
    Memory,
    Global,
}

pub(crate) struct Export<'a> {
    pub name: &'a str,
    pub kind: Kind,
    pub index: u32,
}

/// Where a segment goes when the module is started.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Mode {
    /// Nowhere; the program copies from it.
    Passive,
    /// Nowhere, and it is not to be copied from.
    Declared,
    /// Into a memory or table at an offset.
    Active(u32, Constant),
}

pub(crate) struct Elements {
    pub mode: Mode,
    pub items: Vec<Constant>,
}

pub(crate) struct Data<'a> {
    pub mode: Mode,
    pub bytes: &'a [u8],
}

/// A module. Index spaces begin with what is imported.
#[derive(Default)]
pub(crate) struct Module<'a> {
    pub types: Vec<FunctionType>,
    pub imports: Vec<Import<'a>>,
    /// Types of the module's own functions.
    pub functions: Vec<u32>,
    pub tables: Vec<TableType>,
    pub memories: Vec<Limits>,
    pub globals: Vec<(GlobalType, Constant)>,
    pub exports: Vec<Export<'a>>,
    pub start: Option<u32>,
    pub elements: Vec<Elements>,
    pub data: Vec<Data<'a>>,
    pub bodies: Vec<FunctionBody<'a>>,
    /// Names of functions, for messages.
    names: HashMap<u32, &'a str>,
}

impl<'a> Module<'a> {
    /// Validates a module of WebAssembly 2.0.
    pub fn parse(wasm: &'a [u8]) -> Result<Self, Error> {
        if !wasm.starts_with(b"\0asm") {
            return Err(Error::new("not WebAssembly: it does not begin with \\0asm"));
        }
        let mut validator = Validator::new_with_features(WasmFeatures::WASM2);
        if let Err(error) = validator.validate_all(wasm) {
            return Err(Self::invalid(wasm, &error));
        }
        let mut module = Module::default();
        for payload in Parser::new(0).parse_all(wasm) {
            module.take(payload?)?;
        }
        Ok(module)
    }

    /// What the validator found, with the function that it was found in.
    fn invalid(wasm: &'a [u8], error: &wasmparser::Error) -> Error {
        let mut module = Module::default();
        for payload in Parser::new(0).parse_all(wasm).map_while(Result::ok) {
            // Only bodies and names are of interest.
            let _ = module.take(payload);
        }
        let offset = error.offset();
        let position = module.bodies.iter().position(|body| body.range().contains(&offset));
        let message = Error::new(format!("{} (at byte {offset:#x})", error.message()));
        position.map_or(message.clone(), |n| module.in_function(n, message))
    }

    /// An error in the n-th of the module's own functions.
    pub fn in_function(&self, n: usize, error: Error) -> Error {
        let imported = self.imports.iter().filter(|i| matches!(i.kind, ImportType::Function(_)));
        let index = (imported.count() + n) as u32;
        let name = self.names.get(&index).map_or(String::new(), |name| format!(" ({name})"));
        Error::new(format!("function {index}{name}: {error}"))
    }

    fn take(&mut self, payload: Payload<'a>) -> Result<(), Error> {
        match payload {
            Payload::TypeSection(section) => {
                for function in section.into_iter_err_on_gc_types() {
                    let function = function?;
                    let types = |types: &[wasmparser::ValType]| {
                        types.iter().map(|&t| Type::of(t)).collect::<Result<Vec<_>, _>>()
                    };
                    let arguments = types(function.params())?;
                    self.types
                        .push(FunctionType { arguments, results: types(function.results())? });
                }
            }
            Payload::ImportSection(section) => {
                for import in section.into_imports() {
                    let import = import?;
                    let kind = match import.ty {
                        TypeRef::Func(n) => ImportType::Function(n),
                        TypeRef::Table(t) => ImportType::Table(table(t)?),
                        TypeRef::Memory(t) => ImportType::Memory(limits(t.initial, t.maximum)?),
                        TypeRef::Global(t) => ImportType::Global(global(t)?),
                        other => {
                            return Err(Error::new(format!("import {other:?} is not supported")))
                        }
                    };
                    self.imports.push(Import { module: import.module, name: import.name, kind });
                }
            }
            Payload::FunctionSection(section) => {
                self.functions = section.into_iter().collect::<Result<_, _>>()?;
            }
            Payload::TableSection(section) => {
                for t in section {
                    self.tables.push(table(t?.ty)?);
                }
            }
            Payload::MemorySection(section) => {
                for memory in section {
                    let memory = memory?;
                    self.memories.push(limits(memory.initial, memory.maximum)?);
                }
            }
            Payload::GlobalSection(section) => {
                for g in section {
                    let g = g?;
                    self.globals.push((global(g.ty)?, constant(&g.init_expr)?));
                }
            }
            Payload::ExportSection(section) => {
                for export in section {
                    let export = export?;
                    let kind = match export.kind {
                        wasmparser::ExternalKind::Func => Kind::Function,
                        wasmparser::ExternalKind::Table => Kind::Table,
                        wasmparser::ExternalKind::Memory => Kind::Memory,
                        wasmparser::ExternalKind::Global => Kind::Global,
                        other => {
                            return Err(Error::new(format!("export {other:?} is not supported")))
                        }
                    };
                    self.exports.push(Export { name: export.name, kind, index: export.index });
                }
            }
            Payload::StartSection { func, .. } => self.start = Some(func),
            Payload::ElementSection(section) => {
                for element in section {
                    let element = element?;
                    let mode = match element.kind {
                        ElementKind::Passive => Mode::Passive,
                        ElementKind::Declared => Mode::Declared,
                        ElementKind::Active { table_index, offset_expr } => {
                            Mode::Active(table_index.unwrap_or(0), constant(&offset_expr)?)
                        }
                    };
                    let items = match element.items {
                        ElementItems::Functions(list) => list
                            .into_iter()
                            .map(|n| Ok(Constant::Function(n?)))
                            .collect::<Result<_, Error>>()?,
                        ElementItems::Expressions(_, list) => list
                            .into_iter()
                            .map(|item| constant(&item?))
                            .collect::<Result<_, Error>>()?,
                    };
                    self.elements.push(Elements { mode, items });
                }
            }
            Payload::DataSection(section) => {
                for data in section {
                    let data = data?;
                    let mode = match data.kind {
                        wasmparser::DataKind::Passive => Mode::Passive,
                        wasmparser::DataKind::Active { memory_index, offset_expr } => {
                            Mode::Active(memory_index, constant(&offset_expr)?)
                        }
                    };
                    self.data.push(Data { mode, bytes: data.data });
                }
            }
            Payload::CodeSectionEntry(body) => self.bodies.push(body),
            Payload::CustomSection(section) => {
                let KnownCustom::Name(parts) = section.as_known() else { return Ok(()) };
                for part in parts.into_iter().map_while(Result::ok) {
                    let Name::Function(names) = part else { continue };
                    let names = names.into_iter().map_while(Result::ok);
                    self.names.extend(names.map(|naming| (naming.index, naming.name)));
                }
            }
            _ => (),
        }
        Ok(())
    }
}

fn limits(initial: u64, most: Option<u64>) -> Result<Limits, Error> {
    let number = |n: u64| {
        u32::try_from(n).map_err(|_| Error::new("memories and tables of 64 bits are not supported"))
    };
    Ok(Limits { initial: number(initial)?, most: most.map(number).transpose()? })
}

fn table(t: wasmparser::TableType) -> Result<TableType, Error> {
    let element = Type::of_reference(t.element_type)?;
    Ok(TableType { element, limits: limits(t.initial, t.maximum)? })
}

fn global(t: wasmparser::GlobalType) -> Result<GlobalType, Error> {
    Ok(GlobalType { value: Type::of(t.content_type)?, mutable: t.mutable })
}

fn constant(expression: &ConstExpr<'_>) -> Result<Constant, Error> {
    let unsupported = || Error::new("a constant expression of several operators is not supported");
    let mut operators = expression.get_operators_reader();
    let value = match operators.read()? {
        Operator::I32Const { value } => Constant::Bits(Type::I32, u64::from(value as u32)),
        Operator::I64Const { value } => Constant::Bits(Type::I64, value as u64),
        Operator::F32Const { value } => Constant::Bits(Type::F32, u64::from(value.bits())),
        Operator::F64Const { value } => Constant::Bits(Type::F64, value.bits()),
        Operator::V128Const { value } => Constant::Vector(value.i128() as u128),
        Operator::RefNull { hty } => Type::of_heap(hty).map(|_| Constant::Null)?,
        Operator::RefFunc { function_index } => Constant::Function(function_index),
        Operator::GlobalGet { global_index } => Constant::Global(global_index),
        _ => return Err(unsupported()),
    };
    match operators.read()? {
        Operator::End => Ok(value),
        _ => Err(unsupported()),
    }
}

/// Type of a `ref.null`.
pub(crate) fn null_type(t: HeapType) -> Result<Type, Error> {
    Type::of_heap(t)
}

/// Type of a `select` that names it.
pub(crate) fn named_type(t: wasmparser::ValType) -> Result<Type, Error> {
    Type::of(t)
}
