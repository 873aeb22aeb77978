//! A program in memory, and its runs.

use std::io;
use std::time::Duration;

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::insn::Op;
use kyozon_typed_checker::program::STUB;
use kyozon_typed_checker::Verdict;

use crate::enter::{enter, Run};
use crate::signals::{self, Outcome, Signal};
use crate::space::{Mapping, Space};

/// Bytes above the program's first frame that must stay as they are.
const CANARY: usize = 256;

/// A loaded program.
pub struct Image<'a> {
    memory: Mapping,
    verdict: Verdict<'a>,
    faults: &'a [u32],
}

impl<'a> Image<'a> {
    /// Loads an accepted program. `faults` is what the checker wrote. An import calls the function of its number in
    /// `imports`, with the System V ABI, on the program's stack.
    ///
    /// # Errors
    ///
    /// Memory is short, or an import has no function.
    pub fn load(
        verdict: Verdict<'a>,
        faults: &'a [u32],
        imports: &[extern "C" fn()],
    ) -> io::Result<Image<'a>> {
        let program = verdict.program;
        let mut memory =
            Mapping::new(0, program.image_size() as usize, libc::PROT_READ | libc::PROT_WRITE)?;
        memory.write(0, program.text());
        memory.write(program.read_only_start() as usize, program.read_only());
        let start = memory.start() as u64;
        let tables = program.call_tables_start() as usize;
        for (n, function) in program.entries().enumerate() {
            let address = start + u64::from(program.function(function).start);
            memory.write(tables + 8 * n, &address.to_le_bytes());
        }
        let stub = |n: u32| (program.stubs_start() + n * STUB) as usize;
        for n in 0..program.import_count() {
            let number = program.import(n).number;
            let Some(function) = imports.get(usize::from(number)) else {
                return Err(io::Error::other(format!("import {number} does not exist")));
            };
            // movabs $function, %rax; jmp *%rax
            memory.write(stub(n), &[0x48, 0xb8]);
            memory.write(stub(n) + 2, &(*function as usize).to_le_bytes());
            memory.write(stub(n) + 10, &[0xff, 0xe0]);
        }
        for register in 0..16u8 {
            let at = stub(program.import_count() + u32::from(register));
            // jmp *%register
            memory.write(at, &[0x40 | register >> 3, 0xff, 0xe0 | register & 7]);
        }
        memory.write(stub(program.import_count() + 16), &[0xc3]);
        memory.protect(0, memory.bytes(), libc::PROT_READ | libc::PROT_EXEC)?;
        signals::install()?;
        Ok(Image { memory, verdict, faults })
    }

    /// Calls the entry with these arguments; further register arguments are 0. Ends the program after `limit`.
    ///
    /// # Panics
    ///
    /// The program did what the checker excludes.
    pub fn run(&self, space: &mut Space, arguments: [u64; 6], limit: Duration) -> Outcome {
        let program = self.verdict.program;
        let entry =
            self.memory.start().wrapping_add(program.function(program.entry).start as usize);
        let top = space.stack_top().wrapping_sub(CANARY);
        // SAFETY: the end of the stack, which is writable and not in use.
        let canary = unsafe { std::slice::from_raw_parts_mut(top, CANARY) };
        canary.fill(0x5a);
        let mut run = Run { stack: 0, result: 0, changed: 0 };
        signals::begin(&mut run, self.memory.start(), program.text().len());
        signals::set_timer(limit.as_micros() as i64);
        // SAFETY: the checker accepted the program, the image is as it described, and the stack is a program's.
        let left = unsafe { enter(entry, top, arguments.as_ptr(), &mut run) };
        signals::set_timer(0);
        let signal = signals::end();
        // SAFETY: as above; the program may have written there, which is what is to be found out.
        let canary = unsafe { std::slice::from_raw_parts(top, CANARY) };
        assert!(canary.iter().all(|&byte| byte == 0x5a), "the caller's frame changed");
        if left == 0 {
            assert_eq!(run.changed, 0, "callee-saved registers changed");
            return Outcome::Returned(run.result);
        }
        self.outcome(space, signal)
    }

    fn outcome(&self, space: &Space, signal: Signal) -> Outcome {
        let offset = (signal.instruction - self.memory.start() as u64) as u32;
        if signal.number == libc::SIGALRM {
            return Outcome::TimeOut;
        }
        let insn = decode(&self.verdict.program.text()[offset as usize..]);
        let Ok(insn) = insn else { panic!("{signal:x?} at no instruction, offset {offset:#x}") };
        let host = space.host();
        let in_region = (host.region..host.region + host.reserved).contains(&signal.address);
        let vector = matches!(insn.op, Op::Vector | Op::VectorToRegister | Op::VectorCompare);
        let listed = self.faults.binary_search(&offset).is_ok();
        match (signal.number, insn.op) {
            (libc::SIGILL, Op::Trap) => Outcome::Trap(offset),
            (libc::SIGFPE, Op::Divide) => Outcome::Division(offset),
            // A general protection fault: no address.
            (libc::SIGSEGV, _) if signal.code == 128 && vector && insn.width == 16 => {
                Outcome::Alignment(offset)
            }
            (libc::SIGSEGV | libc::SIGBUS, _) if signal.code != 128 && in_region && listed => {
                Outcome::Fault(offset)
            }
            _ => panic!("{signal:x?} at offset {offset:#x}, {:?}", insn.op),
        }
    }
}
