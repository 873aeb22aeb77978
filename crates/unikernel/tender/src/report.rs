//! The report of a guest's crash: one line, registers, and a backtrace with names.
//!
//! The content comes from the guest, so it is bounded, and every character except printable ASCII is replaced.

use crate::backend::Registers;
use crate::elf::{self, Program};
use crate::memory::Memory;
use kyozon_abi::unikernel::{GUEST_IMAGE_BASE, GUEST_SYSTEM_BASE};
use std::fmt::Write;

/// Maximum count of frames in a backtrace.
const MAX_FRAMES: usize = 32;

/// Where the names of functions are.
#[derive(Clone, Copy, Debug)]
pub struct Names<'f> {
    /// The image's file, with the program's behind it if there is one.
    pub file: &'f [u8],
    /// The program.
    pub program: Program,
}

impl Names<'_> {
    fn symbol(&self, address: u64) -> Option<elf::Symbol> {
        let Program { base, bytes, file, .. } = self.program;
        if (base..base + bytes).contains(&address) {
            return elf::symbol(self.file.get(file..)?, address - base);
        }
        elf::symbol(self.file, address)
    }
}

/// Describes an address: `function+0x12`, or the number if the image has no symbol for it.
pub fn place(names: &Names<'_>, address: u64) -> String {
    if (GUEST_SYSTEM_BASE..GUEST_IMAGE_BASE).contains(&address) {
        return "(the tender's pages)".to_owned();
    }
    match names.symbol(address) {
        Some(symbol) => {
            let name = format!("{:#}", rustc_demangle::demangle(&symbol.name));
            format!("{}+{:#x}", printable(&name), symbol.offset)
        }
        None => format!("{address:#x}"),
    }
}

/// Replaces each character that is not printable ASCII by `?`, so that a terminal cannot interpret it.
pub fn printable(text: &str) -> String {
    text.chars().map(|c| if c == ' ' || c.is_ascii_graphic() { c } else { '?' }).collect()
}

/// The crashed instruction and the return addresses, innermost first. Follows the chain of frame pointers as long as it
/// goes up the stack.
pub fn backtrace(memory: &Memory, registers: &Registers) -> Vec<u64> {
    let mut frames = vec![registers.rip];
    let (mut frame, mut low) = (registers.rbp, memory.layout.stack.base);
    while frames.len() < MAX_FRAMES
        && frame % 8 == 0
        && (low..memory.layout.stack_top()).contains(&frame)
    {
        let Ok(back) = memory.word(frame.saturating_add(8)) else { break };
        if back == 0 {
            break;
        }
        frames.push(back);
        // A valid chain only goes up.
        low = frame + 8;
        let Ok(next) = memory.word(frame) else { break };
        frame = next;
    }
    frames
}

/// The functions of a backtrace, one per line.
pub fn calls(names: &Names<'_>, frames: &[u64]) -> String {
    let mut text = String::new();
    for (i, address) in frames.iter().enumerate() {
        // A return address follows its call instruction, and may be in the next function.
        let instruction = if i == 0 { *address } else { address.saturating_sub(1) };
        let _ = writeln!(text, "  {i:2}: {address:#014x} {}", place(names, instruction));
    }
    text
}

/// All registers, four per line.
pub fn registers(r: &Registers) -> String {
    let all = [
        ("rax", r.rax),
        ("rbx", r.rbx),
        ("rcx", r.rcx),
        ("rdx", r.rdx),
        ("rsi", r.rsi),
        ("rdi", r.rdi),
        ("rbp", r.rbp),
        ("rsp", r.rsp),
        ("r8", r.r8),
        ("r9", r.r9),
        ("r10", r.r10),
        ("r11", r.r11),
        ("r12", r.r12),
        ("r13", r.r13),
        ("r14", r.r14),
        ("r15", r.r15),
        ("rip", r.rip),
        ("flags", r.rflags),
        ("fs", r.fs_base),
        ("gs", r.gs_base),
    ];
    let line = |four: &[(&str, u64)]| {
        let words: Vec<_> =
            four.iter().map(|(name, value)| format!("{name:>5} {value:016x}")).collect();
        words.join(" ") + "\n"
    };
    all.chunks(4).map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Layout;
    use kyozon_abi::unikernel::GUEST_STACK_TOP;

    #[test]
    fn invalid_frame_chains_end_the_backtrace() {
        let file = elf::tests::image();
        let image = elf::parse(&file).unwrap();
        let layout = Layout::new(&image, 1 << 20).unwrap();
        let memory = Memory::new(&image, &file, layout, false).unwrap();
        let top = GUEST_STACK_TOP;
        let trace = |rbp| backtrace(&memory, &Registers { rip: 1, rbp, ..Registers::default() });
        for rbp in [0, 3, top, top - 8, u64::MAX - 7, memory.layout.stack.base] {
            assert_eq!(trace(rbp), [1], "{rbp:#x}");
        }
        let put = |at: u64, word: u64| memory.write(at, &word.to_le_bytes()).unwrap();
        put(top - 64, top - 32);
        put(top - 56, 0x11);
        put(top - 32, 0);
        put(top - 24, 0x22);
        assert_eq!(trace(top - 64), [1, 0x11, 0x22]);
        // The chain goes down, and in a circle.
        put(top - 32, top - 64);
        assert_eq!(trace(top - 64), [1, 0x11, 0x22]);
        put(top - 64, top - 64);
        assert_eq!(trace(top - 64), [1, 0x11]);
        for i in 0..200 {
            put(top - 8000 + i * 16, top - 8000 + i * 16 + 16);
            put(top - 8000 + i * 16 + 8, 0x33);
        }
        assert_eq!(trace(top - 8000).len(), MAX_FRAMES);
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(printable("a b\x1b[1m\n\u{202e}"), "a b?[1m??");
        let names = Names { file: &elf::tests::image(), program: Program::default() };
        assert_eq!(place(&names, 0x1234), "0x1234");
        let lines = registers(&Registers { rax: 1, gs_base: 2, ..Registers::default() });
        assert_eq!(lines.lines().count(), 5);
        assert!(lines.starts_with("  rax 0000000000000001   rbx"));
    }
}
