//! `kyozon typed compile`.

use std::path::Path;

use anyhow::{bail, Context, Result};
use clap::{Args, ValueEnum};
use kyozon_abi::task::TASK_REGION;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_compiler::{link, link_at, BackEnd, Linked, Part};

use super::{accepted, accepted_line, read, small_arena, write};

/// How a program in WebAssembly is compiled.
#[derive(Clone, Debug, Args)]
pub struct Compiler {
    /// What makes machine code: a C compiler, or Cranelift, which needs neither one nor an assembler. Cranelift is in
    /// this command if it was built with --features cranelift
    #[arg(long, value_name = "NAME", default_value = "c")]
    pub backend: Kind,
    /// The C compiler: a gcc
    #[arg(long, value_name = "PROGRAM", default_value = "gcc")]
    pub cc: String,
}

/// A back end of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A C compiler
    C,
    /// Cranelift
    Cranelift,
}

impl Compiler {
    /// The back end.
    pub(super) fn back_end(&self) -> BackEnd<'_> {
        match self.backend {
            Kind::C => BackEnd::C(&self.cc),
            Kind::Cranelift => BackEnd::Cranelift,
        }
    }
}

/// Compiles a program: the file, which the checker accepts.
pub(super) fn compile(wasm: &[u8], back_end: BackEnd<'_>) -> Result<Vec<u8>> {
    finish(link(&[Part { wasm, from: Vec::new() }])?, back_end)
}

/// As [`compile`], for a task of the microkernel, which leaves vector registers to Linux.
fn compile_task(wasm: &[u8], back_end: BackEnd<'_>) -> Result<Vec<u8>> {
    if matches!(back_end, BackEnd::Cranelift) {
        bail!("Cranelift uses vector registers: for the microkernel, compile with --backend c");
    }
    finish(link_at(&[Part { wasm, from: Vec::new() }], TASK_REGION)?.without_vectors(), back_end)
}

fn finish(linked: Linked<'_>, back_end: BackEnd<'_>) -> Result<Vec<u8>> {
    let mut arena = Arena::default();
    let file = linked.assemble(back_end, &mut arena)?.to_bytes();
    verify(&file, linked.host(), &mut arena)?;
    Ok(file)
}

pub(super) fn run(
    program: &Path,
    output: Option<&Path>,
    compiler: &Compiler,
    microkernel: bool,
) -> Result<String> {
    let wasm = read(program)?;
    let output = match output {
        Some(path) => path.to_owned(),
        None => program.with_extension("typed"),
    };
    if output == program {
        bail!("{} would be replaced by its own code: use --output", program.display());
    }
    let compile = if microkernel { compile_task } else { compile };
    let file =
        compile(&wasm, compiler.back_end()).with_context(|| program.display().to_string())?;
    write(&output, &file)?;
    let host = super::host(&file);
    let contents = accepted(&file, host, &mut small_arena())?;
    Ok(format!("{}: {}", output.display(), accepted_line(contents)))
}
