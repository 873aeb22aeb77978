//! Typed code: memory for its check, and the gates of its calls.

use super::layer::Layer;
use super::{Cokernel, COKERNEL, STACK, STACK_BYTES};
use crate::typed::{Gates, RETURNED};
use core::arch::global_asm;
use core::mem::{align_of, size_of};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::{BootBlock, Frame, KERNEL_CODE_SELECTOR, WORK_TICK};
use kyozon_abi::task::SYSTEM_CALL_VECTOR;
use kyozon_typed_checker::flow::{Label, Memory};
use kyozon_typed_checker::value::Value;

/// Most memory for a check.
const MOST_SCRATCH: u64 = 2 << 20;
/// The part of it that lists instructions, and the part for labels; frames get the rest.
const FAULTS_PART: usize = 16;
const LABELS_PART: usize = 4;
/// Numbers for each label.
const NUMBERS: usize = 5;
/// Words that are cleared between two looks at the time.
const CLEARED: usize = 4096;
/// Values that are written between two of them.
const FILLED: usize = 256;

extern "C" {
    fn typed_gate_call();
    fn typed_gate_wait();
    fn typed_gate_returned();
}

/// Address of the word in which the layer says that a tick waits.
#[no_mangle]
static TYPED_WORK: AtomicU64 = AtomicU64::new(0);

// A program calls a stub, which continues here with the number in eax and the arguments in rdi, rsi and rdx. The
// program's stack may have little room, so calls use the kernel's, on which nothing lies while a program runs.
global_asm!(
    ".section .text.typed, \"ax\"",
    ".globl typed_gate_call, typed_gate_wait, typed_gate_returned",
    "typed_gate_call:",
    "push rbx",
    "mov rbx, rsp",
    "lea rsp, [rip + {stack} + {stack_bytes}]",
    "mov ecx, eax",
    "call {call}",
    "mov rsp, rbx",
    "pop rbx",
    "mov rcx, [rip + TYPED_WORK]",
    "test dword ptr [rcx], {work_tick}",
    "jnz 2f",
    "ret",
    // A tick came during the call, and is handled as if it had come right after.
    "2: mov ecx, 2",
    "jmp 3f",
    "typed_gate_returned:",
    "push 0",
    "movabs rax, {returned}",
    "typed_gate_wait:",
    "mov ecx, {system_call}",
    // The program's registers as the layer would save them, at the top of the kernel's stack.
    "3: pop r11",
    "mov r10, rsp",
    "lea rsp, [rip + {stack} + {stack_bytes}]",
    "push 0",
    "push r10",
    "push 2",
    "push {kernel_code}",
    "push r11",
    "push 0",
    "push rcx",
    "push rdi\npush rsi\npush rdx\npush rcx\npush rax",
    "push r8\npush r9\npush r10\npush r11\npush rbx\npush rbp\npush r12\npush r13\npush r14\npush r15",
    "mov rdi, rsp",
    "call {wait}",
    "ud2",
    stack = sym STACK,
    stack_bytes = const STACK_BYTES,
    call = sym on_call,
    wait = sym on_wait,
    work_tick = const WORK_TICK,
    returned = const RETURNED,
    system_call = const SYSTEM_CALL_VECTOR,
    kernel_code = const KERNEL_CODE_SELECTOR,
);

/// The gates. `boot` has the word that says whether a tick waits.
pub fn gates(boot: &BootBlock) -> Gates {
    TYPED_WORK.store(boot.work, Relaxed);
    Gates {
        call: typed_gate_call as *const () as u64,
        wait: typed_gate_wait as *const () as u64,
        returned: typed_gate_returned as *const () as u64,
    }
}

/// The kernel and its machine, for a gate.
///
/// # Safety
///
/// Typed code called the kernel, and no other reference exists: see `Owned`.
unsafe fn cokernel() -> &'static mut Cokernel {
    // SAFETY: the caller's promise.
    unsafe { &mut *COKERNEL.0.get() }
}

extern "C" fn on_call(a: u64, b: u64, c: u64, number: u64) -> u64 {
    // SAFETY: only the gate calls this.
    let cokernel = unsafe { cokernel() };
    cokernel.kernel.typed_call(number, [a, b, c], &mut cokernel.layer)
}

extern "C" fn on_wait(frame: &mut Frame) -> ! {
    // SAFETY: only the gate calls this.
    let cokernel = unsafe { cokernel() };
    cokernel.kernel.trap(frame, &mut cokernel.layer);
    let answer = cokernel.layer.enter_user(frame);
    panic!("user mode refused: {answer}");
}

/// Memory for one check, cut from the cokernel's, of which nothing was handed out yet.
pub struct Scratch {
    words: &'static mut [u64],
}

impl Scratch {
    /// The first part of the cokernel's memory.
    ///
    /// # Safety
    ///
    /// No page of it was handed out, and none is until this is [cleared](Self::clear).
    pub unsafe fn new(boot: &BootBlock) -> Self {
        let count = (boot.memory_bytes.min(MOST_SCRATCH) / 8) as usize;
        // SAFETY: the caller's promise; the layer maps the cokernel's memory there, contiguous and writable.
        Self { words: unsafe { core::slice::from_raw_parts_mut(boot.memory as *mut u64, count) } }
    }

    /// Cuts it: the checker's memory, and the list of instructions that may fault.
    pub fn cut(&mut self, layer: &mut Layer) -> (Memory<'_>, &mut [u32]) {
        let bytes = size_of_val(self.words);
        let faults = bytes / FAULTS_PART / size_of::<u32>();
        let labels = bytes / LABELS_PART / size_of::<Label>();
        let (faults, rest) = take(self.words, faults, 0, layer);
        let (numbers, rest) = take(rest, labels * NUMBERS, 0, layer);
        let (labels, rest) = take(rest, labels, Label::BLANK, layer);
        let count = size_of_val(rest) / size_of::<Value>();
        let (granules, _) = take(rest, count, Value::UNKNOWN, layer);
        (Memory { labels, granules, numbers }, faults)
    }

    /// Makes it zeros again, as memory is before it is handed out.
    pub fn clear(self, layer: &mut Layer) {
        for part in self.words.chunks_mut(CLEARED) {
            part.fill(0);
            layer.yield_cpu();
        }
    }
}

/// Takes room for `count` values, which must fit, from the front of `words`.
fn take<'a, T: Copy>(
    words: &'a mut [u64],
    count: usize,
    value: T,
    layer: &mut Layer,
) -> (&'a mut [T], &'a mut [u64]) {
    const { assert!(align_of::<T>() <= align_of::<u64>()) };
    let (head, rest) = words.split_at_mut((count * size_of::<T>()).div_ceil(size_of::<u64>()));
    let start = head.as_mut_ptr().cast::<T>();
    for n in 0..count {
        // SAFETY: within the head, which is aligned for T and ours alone.
        unsafe { start.add(n).write(value) };
        if n % FILLED == 0 {
            layer.yield_cpu();
        }
    }
    // SAFETY: as above, and each of them was written.
    (unsafe { core::slice::from_raw_parts_mut(start, count) }, rest)
}
