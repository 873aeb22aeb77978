//! The commands on typed code: assembler, checker, disassembler, compiler, and a host in a process.

mod cache;
mod cc;
mod compile;
mod engine;
mod execute;
mod filter;
mod kernel;
mod packets;
mod ps;

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{bail, ensure, Context, Result};
use clap::Subcommand;
use kyozon_abi::typed::{TypedContents, TYPED_RESERVED};
use kyozon_tender::console;
use kyozon_typed_annotate::memory::{verify, Arena};
use kyozon_typed_asm::{assemble_with_lines, disassemble};
use kyozon_typed_checker::error::Rule;
use kyozon_typed_checker::program::{Host, HEADER};

pub use cc::run as cc;
pub use compile::{Compiler, Kind};
pub use execute::{run as execute, Options as RunOptions};

/// A command on typed code.
#[derive(Debug, Subcommand)]
pub enum Typed {
    /// Assemble a source, check the program, and write its file
    Asm {
        /// The source: GNU assembler with typed directives
        source: PathBuf,
        /// The file to write; by default the source's name with .typed instead of .s
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// Find the annotations of functions that have none
        #[arg(long)]
        infer: bool,
    },
    /// Compile or link a C program for WASI to typed code: clang's arguments
    #[command(disable_help_flag = true)]
    Cc {
        /// Arguments of clang. Without -c and the like, the output (-o, or a.out) is typed code that kyozon typed run
        /// takes
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<OsString>,
    },
    /// Check files: exit status 0 if the checker accepts them, 1 with the reason if not
    Check {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
        /// Accept only what a kernel with thunks against speculation accepts
        #[arg(long)]
        thunks: bool,
        /// Accept only what a kernel with indirect branch tracking accepts
        #[arg(long)]
        tracking: bool,
        /// Let this machine's kernel check them, with the module kyozon-typed
        #[arg(long, conflicts_with_all = ["thunks", "tracking"])]
        kernel: bool,
    },
    /// Compile a program in WebAssembly, check the result, and write its file
    Compile {
        /// The program, in WebAssembly's binary format
        program: PathBuf,
        /// The file to write; by default the program's name with .typed instead of .wasm
        #[arg(long, short, value_name = "FILE")]
        output: Option<PathBuf>,
        /// How it is compiled
        #[command(flatten)]
        compiler: Compiler,
        /// For a task of the microkernel, whose programs have their memory at another address and no vector registers
        #[arg(long)]
        microkernel: bool,
    },
    /// Print the source of a file; its text is not checked
    Disasm {
        /// The file
        file: PathBuf,
    },
    /// List the processes whose programs run in kernel mode: CPU time and resident memory
    ///
    /// Processes that this user may not look at are omitted.
    Ps {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run a program of WASI in this process: WebAssembly, or a file that was compiled
    ///
    /// WebAssembly is compiled and kept in $XDG_CACHE_HOME/kyozon-typed (~/.cache/kyozon-typed). Each run is checked.
    ///
    /// The program reaches the files below the directories that --dir and --dir-ro give it, the standard input, output
    /// and error, and clocks. The exit status is the program's own; 120 if it trapped.
    Run(RunOptions),
}

/// Runs a command: what it prints. [`Typed::Run`] and [`Typed::Cc`] are for [`execute()`] and [`cc()`].
///
/// # Errors
///
/// The source or file is wrong, unsafe, or cannot be read or written.
pub fn run(command: &Typed) -> Result<String> {
    match command {
        Typed::Asm { source, output, infer } => assemble(source, output.as_deref(), *infer),
        Typed::Check { files, kernel: true, .. } => {
            let device = kernel::device()?;
            check(files, |file| kernel::check(&device, file))
        }
        Typed::Check { files, thunks, tracking, kernel: false } => {
            let mut arena = small_arena();
            check(files, |file| {
                let host = Host { indirect_branches: !thunks, tracking: *tracking, ..host(file) };
                accepted(file, host, &mut arena)
            })
        }
        Typed::Compile { program, output, compiler, microkernel } => {
            compile::run(program, output.as_deref(), compiler, *microkernel)
        }
        Typed::Ps { json } => ps::run(*json),
        Typed::Run(_) | Typed::Cc { .. } => bail!("another program's output is not collected"),
        Typed::Disasm { file } => disassemble(&read(file)?)
            .map_err(|error| anyhow::anyhow!("{}: {error}", file.display())),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}

/// A host with the region that the file was made for.
fn host(file: &[u8]) -> Host {
    let region = file.get(16..24).filter(|_| file.len() >= HEADER);
    let region =
        region.map_or(0, |bytes| bytes.iter().rev().fold(0, |n, &byte| n << 8 | u64::from(byte)));
    Host { region, reserved: TYPED_RESERVED, indirect_branches: true, tracking: false }
}

/// Checks files: a line about one; about several, prints a line for each that names it.
fn check(
    files: &[PathBuf],
    mut accepted: impl FnMut(&[u8]) -> Result<TypedContents>,
) -> Result<String> {
    let mut check = |file: &Path| -> Result<String> {
        let contents = accepted(&read(file)?).with_context(|| file.display().to_string())?;
        Ok(accepted_line(contents))
    };
    if let [file] = files {
        return check(file);
    }
    let mut refused = 0;
    for file in files {
        match check(file) {
            Ok(line) => print(&format!("{}: {line}", file.display()))?,
            Err(error) => {
                refused += 1;
                console::message(&format!("kyozon: {error:#}"));
            }
        }
    }
    ensure!(refused == 0, "{refused} of {} files were not accepted", files.len());
    Ok(String::new())
}

fn print(line: &str) -> Result<()> {
    std::io::stdout().write_all(line.as_bytes()).context("write to standard output")
}

/// Memory that suffices for most programs, and is ready sooner than the default.
fn small_arena() -> Arena {
    Arena::new(1 << 9, 1 << 18)
}

/// What an accepted file has. If the memory does not suffice, it is replaced by more.
fn accepted(file: &[u8], host: Host, arena: &mut Arena) -> Result<TypedContents> {
    let mut result = verify(file, host, arena);
    if result.as_ref().is_err_and(|error| error.rule == Rule::Memory) {
        *arena = Arena::default();
        result = verify(file, host, arena);
    }
    let (verdict, faults) = result?;
    let program = verdict.program;
    let annotations = (0..program.function_count()).map(|n| program.annotations(n).len());
    Ok(TypedContents {
        functions: program.function_count(),
        text_bytes: program.text().len() as u32,
        annotation_bytes: annotations.sum::<usize>() as u32,
        faults: faults.len() as u32,
    })
}

fn accepted_line(contents: TypedContents) -> String {
    let TypedContents { functions, text_bytes, annotation_bytes, faults } = contents;
    format!(
        "accepted: {functions} functions, {text_bytes} bytes of text, {annotation_bytes} of annotations; {faults} \
         instructions may fault\n"
    )
}

fn assemble(source: &Path, output: Option<&Path>, find: bool) -> Result<String> {
    let text = fs::read_to_string(source).with_context(|| source.display().to_string())?;
    let (mut module, lines) = assemble_with_lines(&text, &source.display().to_string())?;
    let explain = |error: &_| anyhow::anyhow!("{}", lines.explain(error));
    let host = Host { region: module.region, ..host(&[]) };
    let mut arena = Arena::default();
    if find {
        module.infer(host, &mut arena).map_err(|errors| explain(&errors[0]))?;
    }
    let file = module.to_bytes();
    verify(&file, host, &mut arena).map_err(|error| explain(&error))?;
    let output = match output {
        Some(path) => path.to_owned(),
        None => source.with_extension("typed"),
    };
    if output == source {
        bail!("{} would be replaced by the program: use --output", source.display());
    }
    write(&output, &file)?;
    let contents = accepted(&file, host, &mut arena)?;
    Ok(format!("{}: {}", output.display(), accepted_line(contents)))
}

/// Replaces a file in one step.
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(OsString::from(format!(".{}", std::process::id())));
    let temporary = path.with_file_name(name);
    let result = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if result.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    result.with_context(|| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder =
            std::env::temp_dir().join(format!("kyozon-typed-{name}-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    const LOOP: &str = "
.indirect
.func fill (any)
        mov     $0x10000000, %eax
again:  movb    $1, (%rax)
        add     $16, %rax
        cmp     $0x10001000, %rax
        jne     again
        ret
";

    #[test]
    fn a_source_becomes_a_file_that_is_accepted_and_disassembled() {
        let folder = folder("good");
        let source = folder.join("fill.s");
        fs::write(&source, LOOP).unwrap();
        let asm = Typed::Asm { source: source.clone(), output: None, infer: true };
        let line = run(&asm).unwrap();
        assert!(
            line.contains("accepted: 1 functions") && line.contains("1 instructions may fault"),
            "{line}"
        );
        let file = folder.join("fill.typed");
        let check = |thunks| {
            let files = vec![file.clone()];
            run(&Typed::Check { files, thunks, tracking: false, kernel: false })
        };
        assert!(check(false).is_ok());
        let refused = format!("{:#}", check(true).unwrap_err());
        assert!(refused.contains("thunks"), "{refused}");
        let several = vec![file.clone(), folder.join("none"), file.clone()];
        let check = Typed::Check { files: several, thunks: false, tracking: false, kernel: false };
        assert_eq!(format!("{:#}", run(&check).unwrap_err()), "1 of 3 files were not accepted");
        let text = run(&Typed::Disasm { file: file.clone() }).unwrap();
        assert!(text.contains(".head"), "{text}");
        fs::write(&source, text).unwrap();
        let before = fs::read(&file).unwrap();
        run(&Typed::Asm { source, output: Some(file.clone()), infer: false }).unwrap();
        assert_eq!(fs::read(&file).unwrap(), before);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_wrong_source_leaves_nothing() {
        let folder = folder("bad");
        let source = folder.join("fill.s");
        for (text, infer, message) in [
            (LOOP.to_owned(), false, "fill.s:8: "),
            (LOOP.replace("cmp     $0x10001000, %rax", "dec %edi"), true, "fill.s:5: "),
            (".func f (".to_owned(), false, "fill.s:1: "),
        ] {
            fs::write(&source, text).unwrap();
            let error = run(&Typed::Asm { source: source.clone(), output: None, infer });
            let error = format!("{:#}", error.unwrap_err());
            assert!(error.contains(message), "{error}");
            assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn only_webassembly_is_compiled() {
        let folder = folder("compile");
        let program = folder.join("program.wasm");
        let compile = |program: &Path, output: Option<&Path>| {
            let output = output.map(Path::to_owned);
            let compiler = Compiler { backend: Kind::C, cc: "gcc".into() };
            let program = program.to_owned();
            let command = Typed::Compile { program, output, compiler, microkernel: false };
            format!("{:#}", run(&command).unwrap_err())
        };
        fs::write(&program, LOOP).unwrap();
        let error = compile(&program, None);
        assert!(error.contains("program.wasm: not WebAssembly"), "{error}");
        fs::write(&program, b"\0asm\x01\0\0\0").unwrap();
        let error = compile(&program, Some(&program));
        assert!(error.contains("would be replaced by its own code"), "{error}");
        let error = compile(&folder.join("none.wasm"), None);
        assert!(error.contains("none.wasm: No such file"), "{error}");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1);
        fs::remove_dir_all(folder).unwrap();
    }
}
