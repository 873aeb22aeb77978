//! Compiles WebAssembly to typed code. Nothing here is trusted: what is wrong in a file, the checker finds.
//!
//! ```text
//! WebAssembly -> C -> clang or gcc -> assembly -> typed assembly -> file, with annotations
//!             -> Cranelift -> machine code -> file, with annotations
//! ```
//!
//! | module | contents |
//! |---|---|
//! | `wasm` | a module, validated and taken apart |
//! | `program` | several modules: what imports stand for, and where everything lies |
//! | `references`, `start`, `exports` | what each back end needs to know of a program |
//! | `function`, `source`, `prelude.c`, `vectors.c` | the program in C |
//! | `cc` | runs the C compiler |
//! | `text` | its assembly as typed assembly |
//! | `clif` | the program by Cranelift, with the feature `cranelift` |
//! | `contents` | the manifest: see [`kyozon_typed_manifest`] |
//!
//! # How WebAssembly becomes machine code
//!
//! - A linear memory lies at a constant address, so an access is an index register and a displacement. An index and an
//!   offset have 32 bits each; what they can reach beyond the memory is reserved and faults.
//! - Globals, tables, segments and the sizes of memories lie before it, in the runtime's memory.
//! - A reference to a function is the number of its type and its index in the call table of that type. An indirect call
//!   compares the number, and masks the index, so that the checker and the processor's speculation see its bounds.
//! - Traps are `ud2` or faults. So is the end of the stack: each function that calls others compares the stack pointer.
//! - A load whose value is not used may be left out by the C compiler, and then does not trap; `drop` keeps it.
#![forbid(unsafe_code)]

mod cc;
#[cfg(feature = "cranelift")]
mod clif;
mod contents;
mod error;
mod exports;
mod function;
mod program;
mod references;
mod source;
mod start;
mod text;
mod wasm;

pub use crate::error::Error;

use kyozon_typed_annotate::memory::Arena;
use kyozon_typed_annotate::module::Module;
use kyozon_typed_checker::program::Host;

use crate::program::Program;
use crate::source::{Functions, Source};

/// Where the region lies, if the host does not have it elsewhere.
pub const REGION: u64 = 0x1000_0000;
/// Bytes that a host reserves for the region: each 32-bit index, scaled by up to 8, plus each 32-bit offset.
pub const RESERVED: u64 = 40 << 30;

/// A module of a program.
#[derive(Clone, Debug)]
pub struct Part<'a> {
    /// WebAssembly's binary format.
    pub wasm: &'a [u8],
    /// Names of modules that it imports from, with the numbers of earlier parts. Functions can come from other modules
    /// too: those are the host's.
    pub from: Vec<(String, usize)>,
}

/// What makes the machine code.
#[derive(Clone, Copy, Debug)]
pub enum BackEnd<'a> {
    /// A C compiler of this name or path: a gcc, or a clang if the name says so.
    C(&'a str),
    /// Cranelift, if this crate was built with its feature: no C compiler and no assembler is needed.
    Cranelift,
}

/// Compiles one module for any host (see [`Linked::assemble`]): returns the file.
///
/// # Errors
///
/// The module is invalid or has what is not supported; no C compiler or assembler; the annotator fails.
pub fn compile(wasm: &[u8], back_end: BackEnd<'_>) -> Result<Vec<u8>, Error> {
    let parts = [Part { wasm, from: Vec::new() }];
    let module = link(&parts)?.assemble(back_end, &mut Arena::default())?;
    Ok(module.to_bytes())
}

/// A linked program, and what it is compiled to.
pub struct Linked<'a> {
    program: Program<'a>,
    vectors: bool,
}

/// Links several modules, which import from each other, to one program.
///
/// # Errors
///
/// A module is invalid or has what is not supported, or an import does not fit.
pub fn link<'a>(parts: &[Part<'a>]) -> Result<Linked<'a>, Error> {
    link_at(parts, REGION)
}

/// As [`link`], for hosts whose region lies at another address below 2 GiB.
///
/// # Errors
///
/// As for [`link`].
pub fn link_at<'a>(parts: &[Part<'a>], region: u64) -> Result<Linked<'a>, Error> {
    Ok(Linked { program: Program::link(parts, region)?, vectors: true })
}

impl Linked<'_> {
    /// The same program for hosts that leave vector registers to others. It must not have floating-point numbers.
    #[must_use]
    pub fn without_vectors(self) -> Self {
        Linked { vectors: false, ..self }
    }

    /// The program in C.
    ///
    /// # Errors
    ///
    /// A function has what is not supported.
    pub fn c(&self) -> Result<String, Error> {
        Ok(self.compile(&Functions::new())?.c)
    }

    fn compile(&self, opaque: &Functions) -> Result<source::Compiled, Error> {
        Source::new(&self.program, opaque).compile()
    }

    /// The strictest host that the program is for: every host that reserves as much accepts it.
    pub fn host(&self) -> Host {
        Host {
            region: self.program.region,
            reserved: self.program.reserved().max(RESERVED),
            indirect_branches: false,
            tracking: true,
        }
    }

    /// The program with its annotations. The memory is for the annotator; many programs can take turns with it.
    ///
    /// # Errors
    ///
    /// A function has what is not supported; no C compiler or assembler, or no Cranelift; the annotator fails.
    pub fn assemble(&self, back_end: BackEnd<'_>, arena: &mut Arena) -> Result<Module, Error> {
        match back_end {
            BackEnd::C(cc) => self.by_c(cc, arena),
            #[cfg(feature = "cranelift")]
            BackEnd::Cranelift => self.by_cranelift(arena),
            #[cfg(not(feature = "cranelift"))]
            BackEnd::Cranelift => {
                Err(Error::new("no Cranelift in this build: build it with --features cranelift"))
            }
        }
    }

    #[cfg(feature = "cranelift")]
    fn by_cranelift(&self, arena: &mut Arena) -> Result<Module, Error> {
        let (mut module, symbols) = clif::compile(&self.program)?;
        let Err(errors) = module.infer(self.host(), arena) else { return Ok(module) };
        let Some(first) = errors.first() else {
            return Err(Error::new("the checker refuses the program"));
        };
        let error = Error::new(format!("the checker refuses what Cranelift makes: {first}"));
        Err(match symbols.get(first.function as usize) {
            Some(&clif::Symbol::Own(module, n)) => {
                self.program.instances[module].module.in_function(n, error)
            }
            _ => error,
        })
    }

    /// A function that the checker refuses is compiled a second time, so that the C compiler knows less of its
    /// indices; a third time with all others, because it may be part of them.
    fn by_c(&self, cc: &str, arena: &mut Arena) -> Result<Module, Error> {
        let mut opaque = Functions::new();
        let mut attempts = 0;
        loop {
            attempts += 1;
            let compiled = self.compile(&opaque)?;
            let typed = text::rewrite(
                &cc::run(cc, &compiled, self.vectors)?,
                &compiled,
                self.program.region,
            );
            let mut refused: Vec<&str> = typed.narrow.iter().map(String::as_str).collect();
            let mut message = "it addresses by registers of 32 bits".to_string();
            if refused.is_empty() {
                let (mut module, lines) =
                    kyozon_typed_asm::assemble_with_lines(&typed.text, "assembly")
                        .map_err(|error| Error::new(error.to_string()))?;
                let Err(errors) = module.infer(self.host(), arena) else {
                    module.rest = compiled.manifest;
                    return Ok(module);
                };
                let numbers = errors.iter().map(|error| error.function as usize);
                let names = numbers.filter_map(|n| typed.functions.get(n));
                refused.extend(names.map(String::as_str));
                if let Some(first) = errors.first() {
                    message = lines.explain(first).to_string();
                }
            }
            let before = opaque.len();
            opaque.extend(refused.iter().filter_map(|name| source::function_of(name)));
            if opaque.len() == before {
                opaque.extend(self.functions());
            }
            if attempts == 3 || opaque.len() == before {
                let error = Error::new(format!("the checker refuses what {cc} makes: {message}"));
                return Err(self.in_function(refused.first().copied(), error));
            }
        }
    }

    /// All functions of the modules.
    fn functions(&self) -> impl Iterator<Item = (usize, usize)> + use<'_> {
        let modules = self.program.instances.iter().enumerate();
        modules.flat_map(|(n, instance)| (0..instance.module.functions.len()).map(move |f| (n, f)))
    }

    /// An error in what a C function stands for.
    fn in_function(&self, name: Option<&str>, error: Error) -> Error {
        match name.and_then(source::function_of) {
            Some((module, n)) => self.program.instances[module].module.in_function(n, error),
            None => error,
        }
    }
}
