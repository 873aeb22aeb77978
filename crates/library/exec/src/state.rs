//! A program thread, as the gate sees it. The GS base of the host thread is this record's address.

use crate::bridge::Bridge;
use crate::program::Program;
use liblinux::Thread;
use std::arch::asm;
use std::cell::{Cell, OnceCell, UnsafeCell};
use std::sync::atomic::{AtomicU32, AtomicU8};
use std::sync::Arc;

/// [`State::selector`]: the thread runs our code, and its system calls are the host's.
pub const OURS: u8 = 0;
/// [`State::selector`]: the thread runs the program's code, and its system calls are dispatched.
pub const PROGRAM: u8 = 1;

/// Registers of the program at a system call. Those of the vector unit are in [`State::vectors`].
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Registers {
    /// The system call's number, later its result.
    pub rax: u64,
    /// First argument.
    pub rdi: u64,
    /// Second argument.
    pub rsi: u64,
    /// Third argument.
    pub rdx: u64,
    /// Fourth argument.
    pub r10: u64,
    /// Fifth argument.
    pub r8: u64,
    /// Sixth argument.
    pub r9: u64,
    /// The program's stack.
    pub rsp: u64,
    /// Where the program continues: behind the `syscall` instruction.
    pub rip: u64,
    /// Registers that our code preserves; a new thread or process gets copies.
    pub preserved: [u64; 6],
}

impl Registers {
    /// The system call's arguments.
    pub fn arguments(&self) -> [u64; 6] {
        [self.rdi, self.rsi, self.rdx, self.r10, self.r8, self.r9]
    }
}

/// A signal that arrived while our code ran.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Deferred {
    /// Its number.
    pub signal: i32,
    /// The mask to return to.
    pub mask: u64,
    /// Its siginfo_t.
    pub info: libc::siginfo_t,
}

/// A program thread. Assembler reads the members up to `vectors` by their offsets.
#[repr(C)]
pub struct State {
    /// This record's address.
    pub this: Cell<*const State>,
    /// The gate's entry: stubs jump through this word.
    pub entry: u64,
    /// [`OURS`] or [`PROGRAM`]. The host's kernel reads it at every system call.
    pub selector: AtomicU8,
    /// 1 if [`State::deferred`] holds a signal.
    pub pending: AtomicU8,
    /// 1 if the host executes the system call.
    pub native: AtomicU8,
    /// 1 if the system call came by SIGSYS.
    pub trapped: AtomicU8,
    /// 1 during a call of the library.
    pub library: AtomicU8,
    /// 1 from the deferral of a signal until the program continues with its mask.
    pub deferring: AtomicU8,
    /// 1 if the next signal's handler returns to the mask [`State::masked`].
    pub remask: AtomicU8,
    /// The mask from before a call that waits with another one.
    pub masked: Cell<u64>,
    /// FS base of our code.
    pub host_fs: Cell<u64>,
    /// FS base of the program.
    pub program_fs: Cell<u64>,
    /// Our stack.
    pub host_sp: Cell<u64>,
    /// The program's registers.
    pub registers: Cell<Registers>,
    /// The program's vector registers xmm0 to xmm15.
    pub vectors: UnsafeCell<[[u64; 2]; 16]>,
    /// The signal that waits for the end of the call.
    pub deferred: UnsafeCell<Deferred>,
    /// The number of the system call.
    pub number: Cell<u64>,
    /// The thread's id, of the host.
    pub tid: Cell<i32>,
    /// The thread's id in the library, 0 if it has no task there.
    pub library_tid: AtomicU32,
    /// An address that the thread clears when it ends, see set_tid_address(2).
    pub clear_tid: Cell<u64>,
    /// The thread's task in the library: made by its first call.
    pub task: OnceCell<Thread>,
    /// Waits for library descriptors on this thread's behalf.
    pub bridge: OnceCell<Bridge>,
    /// The alternate signal stack that the program asked for.
    pub alternate: Cell<libc::stack_t>,
    /// The program that the thread belongs to.
    pub program: Arc<Program>,
}

impl State {
    /// A thread of `program` that will continue with `registers` and `fs`.
    pub fn new(program: Arc<Program>, registers: Registers, fs: u64) -> Box<Self> {
        // SAFETY: structures of integers and addresses; all zeros are valid.
        let (info, mut alternate): (libc::siginfo_t, libc::stack_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        alternate.ss_flags = libc::SS_DISABLE;
        let state = Box::new(Self {
            this: Cell::new(std::ptr::null()),
            entry: crate::gate::entry(),
            selector: AtomicU8::new(OURS),
            pending: AtomicU8::new(0),
            native: AtomicU8::new(0),
            trapped: AtomicU8::new(0),
            library: AtomicU8::new(0),
            deferring: AtomicU8::new(0),
            remask: AtomicU8::new(0),
            masked: Cell::new(0),
            host_fs: Cell::new(0),
            program_fs: Cell::new(fs),
            host_sp: Cell::new(0),
            registers: Cell::new(registers),
            vectors: UnsafeCell::new([[0; 2]; 16]),
            deferred: UnsafeCell::new(Deferred { signal: 0, mask: 0, info }),
            number: Cell::new(0),
            tid: Cell::new(0),
            library_tid: AtomicU32::new(0),
            clear_tid: Cell::new(0),
            task: OnceCell::new(),
            bridge: OnceCell::new(),
            alternate: Cell::new(alternate),
            program,
        });
        state.this.set(&raw const *state);
        state
    }

    /// The calling thread's record, if it is a program's thread. A signal handler may ask.
    pub fn current<'a>() -> Option<&'a Self> {
        let base: *const Self;
        // SAFETY: reads a register.
        unsafe { asm!("rdgsbase {}", out(reg) base, options(nomem, nostack, preserves_flags)) };
        // SAFETY: only `threads` sets the GS base, to a record that lives as long as the thread runs the program.
        unsafe { base.as_ref() }
    }

    /// Changes one of the program's registers.
    pub fn change(&self, change: impl FnOnce(&mut Registers)) {
        let mut registers = self.registers.get();
        change(&mut registers);
        self.registers.set(registers);
    }
}
