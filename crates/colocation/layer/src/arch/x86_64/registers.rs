//! Register sequences that several pieces of machine code share, as text for `global_asm!`.
//!
//! `push_first!` and `push_rest!` together store the registers of `abi::layer::Frame` behind a vector and an error
//! code; `pop_frame!` undoes them.
#![allow(unused_macros, unused_imports)] // each image uses some of them

/// `Frame::rdi` to `Frame::rax`, in the order of the pushes.
macro_rules! push_first {
    () => {
        "push rdi\npush rsi\npush rdx\npush rcx\npush rax"
    };
}

/// `Frame::r8` to `Frame::r15`. The flags of the interrupted code end here: direction, alignment check, nested task.
macro_rules! push_rest {
    () => {
        concat!(
            "push r8\npush r9\npush r10\npush r11\npush rbx\npush rbp\npush r12\npush r13\npush r14\npush r15\n",
            "push 2\npopfq"
        )
    };
}

/// Loads what `push_first!` and `push_rest!` have stored, and drops the vector and the error code: `iretq` may follow.
macro_rules! pop_frame {
    () => {
        concat!(
            "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx\npop r11\npop r10\npop r9\npop r8\n",
            "pop rax\npop rcx\npop rdx\npop rsi\npop rdi\nadd rsp, 16"
        )
    };
}

/// The registers that a function must keep. System V ABI 3.2.1.
macro_rules! push_kept {
    () => {
        "push rbx\npush rbp\npush r12\npush r13\npush r14\npush r15"
    };
}

/// Undoes `push_kept!`.
macro_rules! pop_kept {
    () => {
        "pop r15\npop r14\npop r13\npop r12\npop rbp\npop rbx"
    };
}

/// Continues at `$label` in kernel mode on the stack at RAX, by IRET: the CPU accepts NMIs from then on. Changes RDX.
macro_rules! open_nmis_at {
    ($label:literal) => {
        concat!(
            "mov edx, ss\npush rdx\npush rax\npush 2\nmov edx, cs\npush rdx\nlea rdx, [rip + ",
            $label,
            "]\npush rdx\niretq"
        )
    };
}

pub(super) use {open_nmis_at, pop_frame, pop_kept, push_first, push_kept, push_rest};
