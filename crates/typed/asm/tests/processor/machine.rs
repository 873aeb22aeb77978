//! Runs code of a few instructions on this processor.
//!
//! All memory lies below 2 GiB, so that the code around the program reaches it by 32-bit addresses.

use kyozon_typed_checker::insn::RSP;
use kyozon_typed_checker::program::ARGUMENTS;

use crate::random::Random;

/// Bytes of the frame that a program makes at its start.
pub const FRAME: usize = 64;
/// Bytes of its deepest frame.
pub const DEPTH: usize = 96;
/// Bytes of each of the two stacks, which lie at multiples of it.
const STACK: u64 = 1 << 16;
/// The flags that instructions set: carry, parity, adjust, zero, sign, overflow.
const FLAGS: u32 = 0x8d5;
/// The adjust flag, which no condition tests.
const ADJUST: u64 = 0x10;

/// Registers before and after a run, and the flags that conditions test and the deepest frame after it.
pub struct Run {
    pub before: [u64; 16],
    pub after: [u64; 16],
    pub flags: u64,
    pub frame: [u8; DEPTH],
}

/// A function, and another one in front of it that it may call.
pub struct Code {
    pub callee: Vec<u8>,
    pub function: Vec<u8>,
}

/// Memory for code, for registers, and for two stacks.
pub struct Machine {
    code: u64,
    registers: u64,
    stacks: u64,
}

/// Memory below 2 GiB.
fn map(bytes: usize, protection: i32) -> u64 {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_32BIT;
    // SAFETY: A new mapping, at an address that the kernel chooses.
    let address = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
    assert_ne!(address, libc::MAP_FAILED, "memory below 2 GiB");
    address as u64
}

/// mov to (0x8b) or from (0x89) a register, at a 32-bit address.
fn mov(code: &mut Vec<u8>, opcode: u8, register: usize, address: u64) {
    let register = register as u8;
    code.extend([0x48 | register >> 3 << 2, opcode, 0x04 | (register & 7) << 3, 0x25]);
    code.extend((address as u32).to_le_bytes());
}

impl Machine {
    pub fn new() -> Machine {
        let write = libc::PROT_READ | libc::PROT_WRITE;
        Machine {
            code: map(4096, write | libc::PROT_EXEC),
            registers: map(4096, write),
            stacks: map(3 * STACK as usize, write).next_multiple_of(STACK),
        }
    }

    /// Runs code with the same arguments twice. All else is different, at most times.
    pub fn run_twice(&mut self, code: &Code, random: &mut Random) -> [Run; 2] {
        let arguments = ARGUMENTS.map(|_| random.operand());
        let same = random.below(4) == 0;
        let others: [u64; 16] = std::array::from_fn(|_| random.operand());
        [0, 1].map(|n| {
            let mut before = if same { others } else { std::array::from_fn(|_| random.operand()) };
            for (register, argument) in ARGUMENTS.into_iter().zip(arguments) {
                before[register as usize] = argument;
            }
            before[RSP as usize] = self.stacks + n * STACK + STACK / 2;
            self.run(code, before, random)
        })
    }

    /// Runs code that has no jumps out of it, and touches nothing but [`DEPTH`] bytes below the stack pointer and what
    /// its calls push.
    fn run(&mut self, program: &Code, before: [u64; 16], random: &mut Random) -> Run {
        let (after, stack) = (self.registers + 128, self.registers + 256);
        let flags = self.registers + 264;
        let mut code = vec![0x53, 0x55, 0x41, 0x54, 0x41, 0x55, 0x41, 0x56, 0x41, 0x57];
        mov(&mut code, 0x89, RSP.into(), stack);
        // push flags; popf
        code.push(0x68);
        code.extend((0x202 | random.any() as u32 & FLAGS).to_le_bytes());
        code.push(0x9d);
        (0..16).for_each(|n| mov(&mut code, 0x8b, n, self.registers + 8 * n as u64));
        // jmp
        code.push(0xe9);
        code.extend((program.callee.len() as u32).to_le_bytes());
        code.extend(&program.callee);
        code.extend(&program.function);
        (0..16).for_each(|n| mov(&mut code, 0x89, n, after + 8 * n as u64));
        mov(&mut code, 0x8b, RSP.into(), stack);
        // pushf; pop flags
        code.extend([0x9c, 0x8f, 0x04, 0x25]);
        code.extend((flags as u32).to_le_bytes());
        code.extend([0x41, 0x5f, 0x41, 0x5e, 0x41, 0x5d, 0x41, 0x5c, 0x5d, 0x5b, 0xc3]);
        assert!(code.len() <= 4096, "the code has a page");

        let top = before[RSP as usize];
        let mut run = Run { before, after: [0; 16], flags: 0, frame: [0; DEPTH] };
        // SAFETY: The three mappings are this machine's, and large enough. The code saves and restores what the calling
        // convention asks for; the checker found that the program in it writes
        // general registers, flags and its frame only, and calls nothing but the function in front of it.
        unsafe {
            std::ptr::copy_nonoverlapping(code.as_ptr(), self.code as *mut u8, code.len());
            std::ptr::copy_nonoverlapping(before.as_ptr(), self.registers as *mut u64, 16);
            for n in 0..2 * DEPTH as u64 / 8 {
                ((top - 2 * DEPTH as u64 + 8 * n) as *mut u64).write(random.operand());
            }
            let code: extern "C" fn() = std::mem::transmute(self.code as *const u8);
            code();
            std::ptr::copy_nonoverlapping(after as *const u64, run.after.as_mut_ptr(), 16);
            run.flags = *(flags as *const u64) & u64::from(FLAGS) & !ADJUST;
            let frame = (top - DEPTH as u64) as *const u8;
            std::ptr::copy_nonoverlapping(frame, run.frame.as_mut_ptr(), DEPTH);
        }
        run
    }
}
