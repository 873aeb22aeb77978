//! Typed assembly: programs that are proven safe before they run in kernel mode, written by hand or read from files.
//!
//! A source is what the GNU assembler takes, for x86-64 and in AT&T or Intel syntax, plus the directives below. Macros,
//! symbols, `.rodata` and local labels are the GNU assembler's. The result is a file for the checker
//! ([`kyozon_typed_checker`]), which decides whether the program is safe; nothing here is trusted.
//!
//! ```
//! let source = "
//! .import log 1 (any)                     # a function of the host: its number, its signature
//! .func sum (u32, u32) -> any             # a function: arguments in rdi, rsi, ...; result in rax
//!         xor     %eax, %eax
//!         jmp     test
//! .head rax: any, rdi: u32, rsi: u32, rcx: unknown
//! more:   mov     0x10000000(%rdi), %ecx  # the region's start, plus an index of 32 bits
//!         add     %rcx, %rax
//!         add     $4, %edi
//!         dec     %esi
//! test:   test    %esi, %esi
//!         jne     more                    # a jump back needs a head
//!         .return
//!
//! .entry main
//! .func main () frame 8
//!         sub     $8, %rsp
//!         cmp     $0x5000, %sp            # before a call: is there enough stack?
//!         jb      out
//!         xor     %edi, %edi
//!         mov     $100, %esi
//!         call    sum
//!         mov     %rax, %rdi
//!         call    log
//! out:    add     $8, %rsp
//!         .return
//! ";
//! use kyozon_typed_annotate::memory::{verify, Arena};
//! use kyozon_typed_checker::program::Host;
//!
//! let file = kyozon_typed_asm::assemble(source, "sum.s")?.to_bytes();
//! let host =
//!     Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: false, tracking: false };
//! let (_, faults) = verify(&file, host, &mut Arena::default()).map_err(|e| e.to_string())?;
//! assert_eq!(faults.len(), 1, "one instruction accesses the region, and so may fault");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Directives
//!
//! Each has a line of its own, with or without labels before it, and outside of macros.
//!
//! | directive | meaning |
//! |---|---|
//! | `.func NAME SIGNATURE [frame N]` | a function begins; its frame has at most N bytes, a multiple of 8 |
//! | `.sig NAME (...)` | a name for a signature, to be used instead of it |
//! | `.import NAME NUMBER SIGNATURE` | a function of the host |
//! | `.calltable NAME SIGNATURE: F, G, ...` | a table of functions, for indirect calls |
//! | `.jumptable NAME: LABEL, ...` | a table of places in this function, in `.rodata` |
//! | `.jumptable NAME in F: LABEL, ...` | the same for function F; it lies where the directive stands |
//! | `.head PLACE: TYPE, ...` | what holds at a loop head; further lines add to it |
//! | `.return` | returns by the host's thunk, or by `ret` after `.indirect` |
//! | `.entry NAME` | the program starts at this function (first one if not given) |
//! | `.region ADDRESS` | start of the region (0x10000000 if not given) |
//! | `.fact`, `.view` | reserved: types in `.head` say what is known of views |
//! | `.indirect` | the text has returns, indirect calls and jumps of its own; before the first `.return` |
//!
//! The section `.rest` becomes what follows the text in the file. There is no `.data`: what a program changes lies in
//! the region, whose first contents are the runtime's matter.
//!
//! # Signatures
//!
//! `(any, u32; stack 2) -> u8`: two arguments in registers, two of 8 bytes on the stack, a result in rax. After
//! `stack 3 u32 0 2`, only the lower four bytes of the first and the third are data. Types are
//! `any` (64 bits), `u32`, `u16` and `u8` (zero-extended). At most six arguments are in registers: rdi, rsi, rdx, rcx,
//! r8, r9. The first on the stack is at `8(%rsp)` when the function begins. An argument of type `unknown` takes a
//! register that the caller need not set: the function can pass it on as `unknown`, nothing else. Results, and
//! arguments of imports, have another type. The result of an import whose number has bit 15 is `view`, with bit 14 too
//! `writable_view`: an address in rax, and the length in rdx.
//!
//! # Heads
//!
//! The checker looks at each instruction once, in the order of the text. Where a jump leads back to, it needs to know
//! what holds in every round: `.head` before that place lists what is weaker than at the first time. If nothing
//! flows in from above (the instruction before is a jump), it lists what is other than at the instruction before.
//!
//! A place is a 64-bit register, a slot of the frame as `[stack-24]` (8 bytes) or `dword [stack-12]`, counted from the
//! return address. `checked: stack-N` says that the stack is checked down to N bytes below the return address, `flags`
//! that the flags stem from data. Types:
//!
//! | type | the place holds |
//! |---|---|
//! | `any`, `u32`, `u16`, `u8` | a number of so many bits |
//! | `5`, `[0, 64]`, `[0, 64, 8]` | this number; one of these; one of these in steps of 8 |
//! | `unknown` | anything: it is not used before it is written |
//! | `bytes 0x0f` | data in the bytes of this mask, anything in the others |
//! | `stack-16` | the address of this place in the frame |
//! | `saved rbx` | what rbx was when the function began |
//! | `entry of NAME` | an entry of this call table |
//! | `distance of NAME`, `target of NAME` | an entry of this jump table; the table's address plus an entry |
//! | `address of NAME`, `image+[0, 64, 8]` | the address of something in the image |
//! | `view of CALL at 8` | byte 8 of the view that the call at this label gave |
//! | `view of CALL from 8 room 4` | the address of a byte from 8 on, with at least 4 bytes of the view from there on |
//! | `writable_view of ...` | the same in a view that may be written |
//! | `length of CALL` | the view's length |
//! | `index of CALL from 8 room 4` | a number from 8 on that is at most the view's length minus 4 |
//!
//! # Views
//!
//! ```
//! # let source = "
//! .import packet 0x8000 () -> view        # the view in rax, its length in rdx
//! .func last () -> u8                     # the last byte, or 0
//!         cmp     $0x5000, %sp
//!         jb      none
//!         call    packet
//!         lea     -1(%rdx), %rcx          # of an empty view, a large number
//!         cmp     %rdx, %rcx
//!         jae     none
//!         movzbl  (%rax,%rcx), %eax
//!         .return
//! none:   xor     %eax, %eax
//!         .return
//! # ";
//! # use kyozon_typed_annotate::memory::{verify, Arena};
//! # use kyozon_typed_checker::program::Host;
//! # let file = kyozon_typed_asm::assemble(source, "view.s").unwrap().to_bytes();
//! # let host =
//! #     Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: false, tracking: false };
//! # verify(&file, host, &mut Arena::default()).unwrap();
//! ```
//!
//! # Indirect calls and jumps
//!
//! ```
//! # let source = "
//! .func apply (any, any) -> any           # op, x
//!         and     $1, %edi                # the table has 2 entries
//!         lea     operations(%rip), %rax
//!         mov     (%rax,%rdi,8), %rax
//!         mov     %rsi, %rdi
//!         jmp     __x86_indirect_thunk_rax
//! .calltable operations (any) -> any: twice, half
//!
//! .func twice (any) -> any
//!         lea     (%rdi,%rdi), %rax
//!         .return
//! .func half (any) -> any
//!         mov     %rdi, %rax
//!         shr     %rax
//!         .return
//!
//! .func choose (any) -> any
//!         cmp     $2, %rdi
//!         ja      other
//!         lea     cases(%rip), %rcx
//!         movslq  (%rcx,%rdi,4), %rax
//!         add     %rcx, %rax
//!         jmp     __x86_indirect_thunk_rax
//! .jumptable cases: one, two, one
//! one:    mov     $1, %eax
//!         .return
//! two:    mov     $2, %eax
//!         .return
//! other:  xor     %eax, %eax
//!         .return
//! # ";
//! # use kyozon_typed_annotate::memory::{verify, Arena};
//! # use kyozon_typed_checker::program::Host;
//! # let file = kyozon_typed_asm::assemble(source, "table.s").unwrap().to_bytes();
//! # let host =
//! #     Host { region: 0x1000_0000, reserved: 40 << 30, indirect_branches: false, tracking: false };
//! # verify(&file, host, &mut Arena::default()).unwrap();
//! ```
//!
//! A direct call or jump to `__x86_indirect_thunk_REG` continues at the address in the register. After `.indirect`,
//! `call *%rax`, `jmp *%rax` and `ret` do as well, if the host allows them.
//!
//! # The assembler
//!
//! [`assemble`] runs the GNU assembler of the package binutils as `as`; the environment variable `KYOZON_AS` names
//! another. No linker is needed: references are resolved here, and all of them are distances.
#![forbid(unsafe_code)]

pub use crate::error::Error;
pub use crate::lines::Lines;

mod cursor;
mod disassemble;
mod error;
mod gnu;
mod head;
mod lines;
mod link;
mod object_file;
mod read;
mod signature;
mod source;
mod spelling;

use kyozon_typed_annotate::module::Module;

/// Assembles a source; `name` is what errors call it.
///
/// # Errors
///
/// The first line that is wrong, and what to do.
pub fn assemble(source: &str, name: &str) -> Result<Module, Error> {
    assemble_with_lines(source, name).map(|(module, _)| module)
}

/// The same, and which line each instruction comes from.
///
/// # Errors
///
/// The first line that is wrong, and what to do.
pub fn assemble_with_lines(source: &str, name: &str) -> Result<(Module, Lines), Error> {
    let error = |line, message| Error { name: name.into(), line, message };
    let (declarations, gnu) =
        source::read(source).map_err(|(line, message)| error(Some(line), message))?;
    let object = gnu::run(&gnu).map_err(|refused| {
        let mut errors = refused.errors.into_iter();
        let (line, message) = errors.next().unwrap_or_default();
        error(line, message)
    })?;
    let object = object_file::ObjectFile::parse(&object).map_err(|message| error(None, message))?;
    let lines = Lines::new(name, &object);
    let module = link::link(&declarations, &object, &lines)
        .map_err(|(line, message)| error(line, message))?;
    Ok((module, lines))
}

/// Disassembles a file: the source assembles to the same file again.
///
/// Names are not in the file; functions are called f0, f1 and so on. What an assembler would encode otherwise is
/// written as bytes. The file's text is not checked.
///
/// # Errors
///
/// A malformed file; a GNU assembler that is missing.
pub fn disassemble(file: &[u8]) -> Result<String, Error> {
    read::read(file).and_then(|module| disassemble::disassemble(&module)).map_err(|message| Error {
        name: String::new(),
        line: None,
        message,
    })
}
