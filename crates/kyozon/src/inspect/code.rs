//! Changed code as instructions, for people.

use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};
use kyozon_monitor::class::Class;
use kyozon_monitor::finding::Finding;
use kyozon_monitor::kernel::Kernel;
use kyozon_monitor::memory::KernelMemory;

/// Maximum number of instructions that are shown, and of bytes of a function before the change.
const SHOWN: usize = 4;
const MAX_BEFORE: u64 = 64 << 10;
/// Maximum length of an instruction (Intel SDM, volume 2, 2.3.11).
const LONGEST: u64 = 15;

/// The instructions in memory from the one that `finding` changed on, up to a return or jump; none if it is no change
/// of the kernel's code. The instructions of a function begin at its symbol: the changed byte may lie within one.
pub fn instructions<M: KernelMemory>(kernel: &Kernel<'_, M>, finding: &Finding) -> Vec<String> {
    let is_code = matches!(finding.class, Class::TextModified | Class::TextModifiedBeforeLoad);
    let offset = kernel.profile.nearest(finding.address).map(|(_, offset)| offset);
    let Some(offset) = offset.filter(|offset| is_code && *offset <= MAX_BEFORE) else {
        return Vec::new();
    };
    let start = finding.address - offset;
    let mut code = vec![0; (offset + SHOWN as u64 * LONGEST) as usize];
    if kernel.bytes(start, &mut code).is_none() {
        return Vec::new();
    }
    let mut decoder = Decoder::with_ip(64, &code, start, DecoderOptions::NONE);
    let mut formatter = GasFormatter::new();
    let mut shown = Vec::new();
    for instruction in &mut decoder {
        if instruction.next_ip() <= finding.address {
            continue;
        }
        let mut text = String::new();
        formatter.format(&instruction, &mut text);
        shown.push(text);
        let flow = instruction.mnemonic();
        if shown.len() == SHOWN || matches!(flow, iced_x86::Mnemonic::Ret | iced_x86::Mnemonic::Jmp)
        {
            break;
        }
    }
    shown
}
