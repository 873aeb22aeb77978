//! A program in memory, and its runs.

use std::borrow::Cow;
use std::io;
use std::time::Duration;

use kyozon_typed_checker::decode::decode;
use kyozon_typed_checker::insn::Op;
use kyozon_typed_checker::program::STUB;
use kyozon_typed_checker::range::Range;
use kyozon_typed_checker::Verdict;

use crate::enter::{enter, gate, Calls, Outside, Run};
use crate::signals::{self, Outcome, Signal};
use crate::space::{Mapping, Space};

/// Bytes above the program's first frame that must stay as they are.
const CANARY: usize = 256;
/// Bytes of the jump to [`gate`].
const GATE: usize = 13;

/// A loaded program.
pub struct Image<'a> {
    memory: Mapping,
    verdict: Verdict<'a>,
    faults: Cow<'a, [u32]>,
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
        faults: impl Into<Cow<'a, [u32]>>,
        imports: &[extern "C" fn()],
    ) -> io::Result<Image<'a>> {
        Image::place(verdict, faults, |number, _| {
            let function = imports
                .get(usize::from(number))
                .ok_or_else(|| io::Error::other(format!("import {number} does not exist")))?;
            // movabs $function, %rax; jmp *%rax
            let mut stub = vec![0x48, 0xb8];
            stub.extend((*function as usize).to_le_bytes());
            stub.extend([0xff, 0xe0]);
            Ok(stub)
        })
    }

    /// Loads an accepted program whose imports all lead to what [`Engine::enter`](crate::Engine::enter) is given.
    ///
    /// # Errors
    ///
    /// Memory is short.
    pub fn load_gated(
        verdict: Verdict<'a>,
        faults: impl Into<Cow<'a, [u32]>>,
    ) -> io::Result<Image<'a>> {
        Image::place(verdict, faults, |number, distance| {
            // mov $number, %eax; jmp to the image's end
            let mut stub = vec![0xb8];
            stub.extend(u32::from(number).to_le_bytes());
            stub.push(0xe9);
            stub.extend((distance - 10).to_le_bytes());
            Ok(stub)
        })
    }

    /// Loads a program. `import` makes the stub for an import's number, at this distance from the jump to [`gate`],
    /// which lies at the image's end.
    fn place(
        verdict: Verdict<'a>,
        faults: impl Into<Cow<'a, [u32]>>,
        import: impl Fn(u16, u32) -> io::Result<Vec<u8>>,
    ) -> io::Result<Image<'a>> {
        let program = verdict.program;
        let end = program.image_size() as usize;
        let mut memory = Mapping::new(0, end + GATE, libc::PROT_READ | libc::PROT_WRITE)?;
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
            let code = import(program.import(n).number, (end - stub(n)) as u32)?;
            debug_assert!(code.len() <= STUB as usize);
            memory.write(stub(n), &code);
        }
        for register in 0..16u8 {
            let at = stub(program.import_count() + u32::from(register));
            // jmp *%register
            memory.write(at, &[0x40 | register >> 3, 0xff, 0xe0 | register & 7]);
        }
        memory.write(stub(program.import_count() + 16), &[0xc3]);
        // movabs $gate, %r11; jmp *%r11
        memory.write(end, &[0x49, 0xbb]);
        memory.write(end + 2, &(gate as *const () as usize).to_le_bytes());
        memory.write(end + 10, &[0x41, 0xff, 0xe3]);
        memory.protect(0, memory.bytes(), libc::PROT_READ | libc::PROT_EXEC)?;
        signals::install()?;
        Ok(Image { memory, verdict, faults: faults.into() })
    }

    /// Calls the entry with these arguments, of which bits that its signature excludes are cleared. Ends the program
    /// after `limit`, if that is not zero.
    ///
    /// # Panics
    ///
    /// The program did what the checker excludes.
    pub fn run(&self, space: &mut Space, arguments: [u64; 6], limit: Duration) -> Outcome {
        self.run_with(space, arguments, limit, &mut |_, import, _| {
            panic!("import {import} of an image that is not gated")
        })
    }

    /// As [`Self::run`]; `calls` is what the imports of a gated image lead to.
    pub(crate) fn run_with<'c>(
        &self,
        space: &'c mut Space,
        arguments: [u64; 6],
        limit: Duration,
        calls: &'c mut Calls<'c>,
    ) -> Outcome {
        let program = self.verdict.program;
        let function = program.function(program.entry);
        let entry = self.memory.start().wrapping_add(function.start as usize);
        let types = program.signature(function.signature).arguments;
        let mask = |n: usize| types[n].number().map_or(0, Range::high);
        let arguments: [u64; 6] = std::array::from_fn(|n| arguments[n] & mask(n));
        let top = space.stack_top().wrapping_sub(CANARY);
        // SAFETY: the end of the stack, which is writable and not in use.
        let canary = unsafe { std::slice::from_raw_parts_mut(top, CANARY) };
        canary.fill(0x5a);
        let mut outside = Outside { space, calls, ended: None };
        let pointer = (&raw mut outside).cast();
        let mut run = Run { stack: 0, result: 0, changed: 0, outside: pointer };
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
        if let Some(ended) = outside.ended {
            return ended;
        }
        // SAFETY: the run is over, so that no function of the host uses it.
        self.outcome(unsafe { &*outside.space }, signal)
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
