//! The border between the program and the host: the functions of the seam, and the program's start.
//!
//! The host answers calls on a stack of its own, which each machine has privately. It is empty whenever the program
//! runs, so a call, also one from a signal's handler, begins at its end.

use crate::signals::{self, Delivery, Frame};
use crate::{calls, errno, files, memory, threads};
use core::ffi::{c_int, c_ulong, c_void};
use kyozon_libc::seam::{Thread, AT_KYOZON};
use kyozon_unikernel::{arguments, boot, peer, println, system};

// Preconditions of all: those of the System V ABI, and the rules of `kyozon/seam.h`.
core::arch::global_asm!(
    r#"
    .section .private, "aw", @progbits
    .balign 16
    .zero 16384
kyozon_posix_stack:

    .text
    # long call(long number, long a1, ..., long a6): a Frame on the program's stack.
    .type kyozon_posix_call, @function
kyozon_posix_call:
    push rbp
    mov rbp, rsp
    sub rsp, 80
    mov [rsp], rdi
    mov [rsp + 8], rsi
    mov [rsp + 16], rdx
    mov [rsp + 24], rcx
    mov [rsp + 32], r8
    mov [rsp + 40], r9
    mov rax, [rbp + 16]
    mov [rsp + 48], rax
    mov rdi, rsp
    lea rsp, [rip + kyozon_posix_stack]
    call {call}
2:  test rax, rax
    jnz 3f
    mov rax, [rbp - 80 + 56]
    leave
    ret
    # A signal's handler runs on the program's stack, below the Delivery.
3:  mov rsp, rax
    mov rdi, [rsp]
    mov rsi, [rsp + 8]
    mov rdx, [rsp + 16]
    call [rsp + 24]
    mov rsi, rsp
    lea rdi, [rbp - 80]
    lea rsp, [rip + kyozon_posix_stack]
    call {returned}
    jmp 2b

    # int start_thread(const struct kyozon_thread *thread)
    .type kyozon_posix_start_thread, @function
kyozon_posix_start_thread:
    push rbp
    mov rbp, rsp
    lea rsp, [rip + kyozon_posix_stack]
    call {start_thread}
    leave
    ret

    # void unmap_exit(void *base, unsigned long bytes)
    .type kyozon_posix_unmap_exit, @function
kyozon_posix_unmap_exit:
    lea rsp, [rip + kyozon_posix_stack]
    xor ebp, ebp
    call {unmap_exit}
    ud2

    # A thread's first instructions: rsi is its place. A Begin has the end of its stack, its function, the argument.
    .type kyozon_posix_thread, @function
kyozon_posix_thread:
    lea rsp, [rip + kyozon_posix_stack]
    xor ebp, ebp
    mov rdi, rsi
    call {begin}
    mov rsp, [rax]
    and rsp, -16
    mov rdi, [rax + 16]
    call [rax + 8]
    lea rsp, [rip + kyozon_posix_stack]
    call {end}
    ud2

    # void enter(void *stack, void *entry): the program's first instruction, with nothing to call at its end (rdx).
    .type kyozon_posix_enter, @function
kyozon_posix_enter:
    mov rsp, rdi
    xor ebp, ebp
    xor edx, edx
    jmp rsi
    "#,
    call = sym call,
    returned = sym returned,
    start_thread = sym start_thread,
    unmap_exit = sym unmap_exit,
    begin = sym begin,
    end = sym end,
);

kyozon_libc::seam!(SEAM: kyozon_posix_call, kyozon_posix_start_thread, kyozon_posix_unmap_exit);

extern "C" {
    fn kyozon_posix_thread();
    fn kyozon_posix_enter(stack: *const u64, entry: u64) -> !;
}

/// Answers a call, and says which handler runs after it: a [`Delivery`], or 0.
unsafe extern "C" fn call(frame: *mut Frame) -> usize {
    loop {
        // SAFETY: the assembly's frame, of a valid call.
        unsafe {
            (*frame).answer = calls::call(&*frame);
            let next = signals::deliver(frame);
            // Another thread took the signal that had interrupted the call.
            if next != 0 || (*frame).answer != errno::RESTART {
                return next;
            }
        }
    }
}

/// After a handler: the next one, or the call once more if it begins again.
unsafe extern "C" fn returned(frame: *mut Frame, delivery: *const Delivery) -> usize {
    // SAFETY: the assembly's, both.
    unsafe {
        signals::returned(delivery);
        match signals::deliver(frame) {
            0 if (*frame).answer == errno::RESTART => call(frame),
            next => next,
        }
    }
}

unsafe extern "C" fn start_thread(thread: *const Thread) -> c_int {
    // SAFETY: valid during the call, by the seam's rules.
    unsafe { threads::start(&*thread, kyozon_posix_thread, signals::mask()) }
}

unsafe extern "C" fn unmap_exit(base: *mut c_void, bytes: c_ulong) -> ! {
    memory::unmap(base as u64, bytes);
    threads::exit()
}

unsafe extern "C" fn begin(place: usize) -> *const threads::Begin {
    // SAFETY: called once, with the thread's argument.
    unsafe { threads::begin(place) }
}

extern "C" fn end() -> ! {
    threads::exit()
}

/// Memory that the host keeps of the heap, for what its libraries allocate.
const KEPT: u64 = 256 << 10;
/// Distance from this function's frame to the program's stack.
const DISTANCE: usize = 16 << 10;

/// Starts the program.
pub fn run() -> u8 {
    let boot = boot();
    if boot.program.bytes == 0 {
        println!("this image is the host of programs that kyozon cc links: give one of them to kyozon run");
        return 1;
    }
    if !peer::has_fsgsbase() {
        println!("programs need a processor with FSGSBASE, and a kernel that allows it: Linux 5.9 or later");
        return 1;
    }
    let Ok(layout) = core::alloc::Layout::from_size_align(
        (boot.heap.bytes - KEPT.min(boot.heap.bytes)) as usize,
        4096,
    ) else {
        return 1;
    };
    // SAFETY: the size is not 0, and the new piece is nobody else's. The heap is zero at the start.
    unsafe {
        let arena = alloc::alloc::alloc(layout);
        if arena.is_null() {
            println!("there is too little memory for a program: raise --memory");
            return 1;
        }
        memory::set_up(arena as u64, layout.size() as u64);
    }
    files::set_up();
    threads::set_up();
    start(&boot)
}

/// Puts arguments, environment and auxiliary vector on the stack (System V ABI, x86-64 supplement, section 3.4.1), and
/// enters the program.
fn start(boot: &kyozon_unikernel::GuestBoot) -> ! {
    const PHDR: u64 = 3;
    const PHENT: u64 = 4;
    const PHNUM: u64 = 5;
    const PAGESZ: u64 = 6;
    const ENTRY: u64 = 9;
    const SECURE: u64 = 23;
    const RANDOM: u64 = 25;
    const EXECFN: u64 = 31;
    let mut random = [0_u64; 2];
    // SAFETY: 16 bytes of this frame.
    let bytes = unsafe { core::slice::from_raw_parts_mut(random.as_mut_ptr().cast::<u8>(), 16) };
    let _ = system::random(bytes);
    let head = boot.program.base as *const u8;
    // SAFETY: the tender mapped the file's header there: Elf64_Ehdr, e_phoff, e_phentsize, e_phnum.
    let (headers, bytes, count) = unsafe {
        (
            head.add(32).cast::<u64>().read_unaligned(),
            head.add(54).cast::<u16>().read_unaligned(),
            head.add(56).cast::<u16>().read_unaligned(),
        )
    };
    let name = arguments::arguments().next().map_or(0, |name| name.as_ptr() as u64);
    // What the program reads later lies in this frame, which stays.
    let seam = SEAM;
    let vector = [
        [PHDR, boot.program.base + headers],
        [PHENT, bytes.into()],
        [PHNUM, count.into()],
        [PAGESZ, 4096],
        [ENTRY, boot.program_entry],
        [SECURE, 0],
        [RANDOM, random.as_ptr() as u64],
        [EXECFN, name],
        [AT_KYOZON, &raw const seam as u64],
        [0, 0],
    ];
    let words = arguments::arguments().map(|word| word.as_ptr() as u64);
    let count = boot.argument_count as usize;
    let environment = arguments::environment().map(|word| word.as_ptr() as u64);
    let all = 1 + count + 1 + boot.environment_count as usize + 1 + 2 * vector.len();
    let here = random.as_ptr() as usize - DISTANCE - 8 * all;
    let stack = (here & !15) as *mut u64;
    let nothing = core::iter::once(0);
    let content = core::iter::once(count as u64)
        .chain(words)
        .chain(nothing.clone())
        .chain(environment)
        .chain(nothing)
        .chain(vector.into_iter().flatten());
    for (n, word) in content.enumerate() {
        // SAFETY: the stack far below this frame, on which nothing else lies.
        unsafe { stack.add(n).write(word) };
    }
    // SAFETY: the program's entry, as the tender checked, with what it expects there.
    unsafe { kyozon_posix_enter(stack, boot.program_entry) }
}
