//! Threads.

use crate::queue::{Link, ThreadId, NO_THREAD};
use kyozon_abi::layer::Frame;
use kyozon_abi::task::TASK_THREADS;

/// Threads of all tasks. Thread `n` of task `t` is number `t * TASK_THREADS + n`.
pub const THREADS: usize = kyozon_abi::layer::MAX_TASKS * TASK_THREADS as usize;

/// A thread's state, which also names the queue that it is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// The slot is free.
    None,
    /// Running or in a ready queue.
    Ready,
    /// In the queue of this endpoint, with a message to send.
    Sending(u8),
    /// In the queue of this endpoint, to receive a message.
    Receiving(u8),
    /// Waits for this thread's reply.
    Replying(ThreadId),
    /// Waits for a bit of this notification.
    Waiting(u8),
    /// Waits for a tick.
    Tick,
}

/// One thread.
#[derive(Clone, Copy)]
pub struct Thread {
    /// Saved registers while it does not run. After a fast path these are only the registers that the call preserves;
    /// none holds another task's data.
    pub frame: Frame,
    /// Its state.
    pub state: State,
    /// 0 to `PRIORITIES`, exclusive.
    pub priority: u8,
    /// Its task.
    pub task: u8,
    /// The thread that waits for its reply, which is in [`State::Replying`] with this thread's number.
    pub caller: ThreadId,
    /// Whether it waits for its fault handler: its registers are not a message.
    pub faulted: bool,
    /// Links of its queue.
    pub link: Link,
    /// Badge of its message.
    pub badge: u64,
    /// The argument of its last `ACCEPT`.
    pub accept: u64,
    /// Number of the last tick that it waited for, 0 for none.
    pub last_tick: u64,
    /// Message of its fault.
    pub fault: [u64; 6],
}

impl Thread {
    /// No thread.
    pub const NONE: Self = Self {
        frame: Frame {
            r15: 0,
            r14: 0,
            r13: 0,
            r12: 0,
            rbp: 0,
            rbx: 0,
            r11: 0,
            r10: 0,
            r9: 0,
            r8: 0,
            rax: 0,
            rcx: 0,
            rdx: 0,
            rsi: 0,
            rdi: 0,
            vector: 0,
            error: 0,
            rip: 0,
            cs: 0,
            rflags: 0,
            rsp: 0,
            ss: 0,
        },
        state: State::None,
        priority: 0,
        task: 0,
        caller: NO_THREAD,
        faulted: false,
        link: Link::NONE,
        badge: 0,
        accept: 0,
        last_tick: 0,
        fault: [0; 6],
    };

    /// The words of its message.
    pub fn words(&self) -> [u64; 6] {
        let f = &self.frame;
        if self.faulted {
            self.fault
        } else {
            [f.rsi, f.rdx, f.r8, f.r9, f.r10, f.r11]
        }
    }

    /// Stores a message as the answer to its system call.
    pub fn receive(&mut self, badge: u64, transfer: u64, words: [u64; 6]) {
        let f = &mut self.frame;
        (f.rax, f.rdi, f.rcx) = (0, badge, transfer);
        [f.rsi, f.rdx, f.r8, f.r9, f.r10, f.r11] = words;
    }
}

/// Copies the registers that a message call preserves, and the resume address.
macro_rules! kept {
    ($from:expr => $to:expr) => {{
        let (from, to) = ($from, $to);
        (to.rip, to.rsp, to.rflags) = (from.rip, from.rsp, from.rflags);
        (to.rbx, to.rbp) = (from.rbx, from.rbp);
        (to.r12, to.r13, to.r14, to.r15) = (from.r12, from.r13, from.r14, from.r15);
    }};
}

/// Saves the preserved registers from the live frame.
#[inline]
pub fn save_kept(live: &Frame, to: &mut Frame) {
    kept!(live => to);
}

/// Loads the preserved registers of `from` into the live frame.
#[inline]
pub fn load_kept(from: &Frame, live: &mut Frame) {
    kept!(from => live);
}
