//! Runs the C compiler.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};

use crate::source::Compiled;
use crate::Error;

/// For both compilers.
const FLAGS: [&str; 24] = [
    "-S",
    "-O2",
    "-xc",
    "-",
    "-o-",
    "-std=gnu11",
    "-w",
    "-ffreestanding",
    "-march=x86-64-v2",
    "-mno-red-zone",
    // References are distances, without tables of addresses.
    "-fPIE",
    "-fvisibility=hidden",
    // The checker follows direct branches best.
    "-fno-jump-tables",
    "-fno-stack-protector",
    "-fcf-protection=none",
    "-fomit-frame-pointer",
    // Says how deep the frame is.
    "-fasynchronous-unwind-tables",
    // C leaves undefined what WebAssembly defines.
    "-fwrapv",
    "-fno-strict-aliasing",
    "-fno-delete-null-pointer-checks",
    "-fno-math-errno",
    "-ffp-contract=off",
    "-fno-ident",
    "-fno-builtin",
];

/// For gcc.
const GCC: [&str; 18] = [
    // It takes stores to overlapping constant addresses for stores to different places.
    "-fno-dse",
    "-mindirect-branch=thunk-extern",
    "-mindirect-branch-register",
    "-fno-tree-switch-conversion",
    // Functions keep their types and their calls the ABI.
    "-fno-ipa-ra",
    "-fno-ipa-sra",
    "-fno-ipa-cp",
    "-fno-ipa-icf",
    "-fno-partial-inlining",
    // It finds functions that do not return, and then puts anything after their calls.
    "-fno-ipa-pure-const",
    "-fno-reorder-functions",
    "-fno-reorder-blocks-and-partition",
    // A block behind the function jumps back, and each place that a jump back leads to has an annotation.
    "-fno-reorder-blocks",
    // No calls of memcpy and memset.
    "-fno-tree-loop-distribute-patterns",
    // Counters stay indices, so that what was compared is what is used.
    "-fno-ivopts",
    // With the ranges of indices it adds the memory's address in 32 bits, and addresses by the registers' lower halves.
    "-fno-tree-vrp",
    "-fsignaling-nans",
    "-fno-split-loops",
];

/// For gcc, if there are operators on vectors: clang takes one vector in an iteration for WebAssembly and two for x86,
/// where gcc takes what it finds.
const UNROLL: [&str; 2] = ["-funroll-loops", "--param=max-unroll-times=2"];

/// For clang.
const CLANG: [&str; 7] = [
    "-mretpoline-external-thunk",
    "-fno-finite-loops",
    "-fno-addrsig",
    "-mllvm",
    "-disable-lsr",
    "-mllvm",
    "-indvars-widen-indvars=false",
];

/// The assembly of a program in C, by the compiler of this name or path: a gcc, or a clang if the name says so. Without
/// `vectors`, the program uses general registers only.
pub(crate) fn run(cc: &str, program: &Compiled, vectors: bool) -> Result<String, Error> {
    let clang = cc.contains("clang");
    let own: &[&str] = if clang { &CLANG } else { &GCC };
    let mut command = Command::new(cc);
    command.args(FLAGS).args(own).env("LC_ALL", "C");
    if program.vectors && !clang {
        command.args(UNROLL);
    }
    if !vectors {
        command.arg("-mgeneral-regs-only");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().map_err(|error| {
        Error::new(match error.kind() {
            ErrorKind::NotFound => {
                format!("C compiler {cc} not found: install gcc, or name another one")
            }
            _ => format!("C compiler {cc} does not start: {error}"),
        })
    })?;
    let stdin = child.stdin.take();
    let (output, written) = std::thread::scope(|scope| {
        // The compiler may write before it has read everything.
        let writer =
            scope.spawn(|| stdin.map_or(Ok(()), |mut to| to.write_all(program.c.as_bytes())));
        (child.wait_with_output(), writer.join())
    });
    let output = output.map_err(|error| Error::new(format!("C compiler {cc}: {error}")))?;
    if !output.status.success() || !matches!(written, Ok(Ok(()))) {
        let text = String::from_utf8_lossy(&output.stderr);
        let line = text.lines().find(|line| line.contains("error")).unwrap_or("no message");
        return Err(Error::new(format!("C compiler {cc} failed ({}): {line}", output.status)));
    }
    String::from_utf8(output.stdout)
        .map_err(|_| Error::new(format!("C compiler {cc} wrote assembly that is not text")))
}
