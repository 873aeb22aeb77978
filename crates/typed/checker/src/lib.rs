//! The trusted part of typed code: shows of machine code that it can only touch what its types name.
//!
//! A program that [`check`] accepts, in an image as [`program`] describes and on a stack of [`STACK`] bytes at a
//! multiple of its size,
//!
//! 1. reads and writes only the region that was reserved for it, its own frames, its read-only data, and the views that
//!    its imports give;
//! 2. continues only at instructions that were checked, and leaves only by a return, a call of an import, or a fault;
//! 3. uses its stack down to [`RESERVE`] bytes above the stack's end and no further;
//! 4. returns with the caller's stack pointer and callee-saved registers;
//! 5. never makes an address, or what another function left in a register, into data;
//! 6. faults only by an access of the region, by a division, by a vector operand that is not aligned, or by ud2.
//!
//! It may loop for ever, and the contents of the region are arbitrary: every byte there may change at any time.
//!
//! | module | contents |
//! |---|---|
//! | [`program`] | the file format and the image |
//! | [`decode`], [`insn`] | an allow-list decoder, and what it says about an instruction |
//! | [`range`], [`value`] | types: sets of numbers, and what a place holds |
//! | [`state`], [`frame`] | what is known before an instruction |
//! | [`heads`] | annotations of loop heads |
//! | `transfer`, `access`, `condition` | what instructions, memory accesses and conditions do to the state |
//! | [`flow`] | the pass over a function |
//! | [`error`] | why a program is refused |
//!
//! Everything that the checker allocates is passed in as slices, so a kernel bounds its memory. Its time is linear in
//! the size of the text, because the work at jumps is counted: see [`WORK`].
#![no_std]
#![forbid(unsafe_code)]

mod access;
mod bytes;
mod condition;
pub mod decode;
pub mod error;
pub mod flow;
pub mod frame;
pub mod heads;
pub mod insn;
pub mod program;
pub mod range;
pub mod state;
mod transfer;
pub mod value;

/// Bytes at the low end of a program's stack that it never uses: interrupts and faults need them.
pub const RESERVE: u32 = 16 << 10;
/// A function is called with at least so many bytes of stack. It proves that by a comparison of the low 16 bits of a
/// stack address with a constant; 0x5000 leaves 256 bytes to push arguments.
pub const FLOOR: u32 = 0x5000 - 256;
/// Bytes that a function may use below what it has checked.
pub const SLACK: u32 = FLOOR - RESERVE;
/// Bytes of a program's stack. It lies at a multiple of its size, so the low 16 bits of rsp are its height.
pub const STACK: u32 = 64 << 10;
/// Values of registers and frames that a check copies, joins and compares at most: so many for each byte of the text,
/// and so many more. Without a limit its time would be that of the text times the depth of its frames.
pub const WORK: (u64, u64) = (192, 1 << 20);

use error::{Error, Rule};
use flow::{check_function, Memory, Strict};
use program::{Host, Program};

/// What a host needs to run an accepted program.
#[derive(Clone, Copy, Debug)]
pub struct Verdict<'a> {
    /// The program.
    pub program: Program<'a>,
    /// How many offsets of instructions that access the region, and so may fault, were written. They are sorted.
    pub faults: usize,
    /// Whether an instruction that can be reached uses vector registers.
    pub vectors: bool,
}

/// Checks a program. `faults` receives the offsets, in the text, of the instructions that access the region.
///
/// Asks `go_on` for each instruction, each edge from a jump, each item of an annotation, and each
/// item of [`Program::parse_with`], so that a kernel can schedule. Ends with [`Rule::Stopped`] at the next one for
/// which it says no, except those of [`Program::parse_with`].
///
/// # Errors
///
/// The first broken rule, and where.
pub fn check<'a>(
    file: &'a [u8],
    host: Host,
    memory: &mut Memory<'_>,
    faults: &mut [u32],
    mut go_on: impl FnMut() -> bool,
) -> Result<Verdict<'a>, Error> {
    let malformed =
        |malformed| Error { function: 0, offset: 0, op: None, rule: Rule::File(malformed) };
    let program = Program::parse_with(file, host, || _ = go_on()).map_err(malformed)?;
    let mut judge = Strict { faults, count: 0, vectors: false, go_on };
    let mut work = WORK.0 * program.text().len() as u64 + WORK.1;
    for function in 0..program.function_count() {
        let annotations = program.annotations(function);
        check_function(&program, function, annotations, memory, &mut work, &mut judge)?;
    }
    Ok(Verdict { program, faults: judge.count, vectors: judge.vectors })
}
