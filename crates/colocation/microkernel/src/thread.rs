//! Threads.

use crate::queue::{Link, ThreadId, NOBODY};
use kyozon_abi::layer::Frame;
use kyozon_abi::task::TASK_THREADS;

/// Threads of all tasks. Thread `n` of task `t` is number `t * TASK_THREADS + n`.
pub const THREADS: usize = kyozon_abi::layer::MAX_TASKS * TASK_THREADS as usize;

/// What a thread does. It says which queue it is in, if any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There is no such thread.
    None,
    /// Running, or in the queue of the ready.
    Ready,
    /// In the queue of this endpoint, with a message.
    Sending(u8),
    /// In the queue of this endpoint, for a message.
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
    /// Registers, where it does not run. Of a thread that waits in a fast path, those that it may rely on, and no other
    /// task's.
    pub frame: Frame,
    /// What it does.
    pub state: State,
    /// 0 to `PRIORITIES`, exclusive.
    pub priority: u8,
    /// Its task.
    pub task: u8,
    /// Who waits for its reply: true only while that thread is [`State::Replying`] to this one.
    pub caller: ThreadId,
    /// Whether it waits for the reply to a fault: its registers are not a message.
    pub faulted: bool,
    /// Its queue's.
    pub link: Link,
    /// What its message is sent with.
    pub badge: u64,
    /// `ACCEPT` of the interface.
    pub accept: u64,
    /// Number of the last tick that it has seen, 0 for none.
    pub last_tick: u64,
    /// The message of a fault.
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
        caller: NOBODY,
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

    /// Gives it a message, as the answer to its call.
    pub fn receive(&mut self, badge: u64, transfer: u64, words: [u64; 6]) {
        let f = &mut self.frame;
        (f.rax, f.rdi, f.rcx) = (0, badge, transfer);
        [f.rsi, f.rdx, f.r8, f.r9, f.r10, f.r11] = words;
    }
}

/// The registers that a call about messages keeps, and where it goes on.
macro_rules! kept {
    ($from:expr => $to:expr) => {{
        let (from, to) = ($from, $to);
        (to.rip, to.rsp, to.rflags) = (from.rip, from.rsp, from.rflags);
        (to.rbx, to.rbp) = (from.rbx, from.rbp);
        (to.r12, to.r13, to.r14, to.r15) = (from.r12, from.r13, from.r14, from.r15);
    }};
}

/// Saves those of the live registers.
#[inline]
pub fn save_kept(live: &Frame, to: &mut Frame) {
    kept!(live => to);
}

/// Makes those of `from` live.
#[inline]
pub fn load_kept(from: &Frame, live: &mut Frame) {
    kept!(from => live);
}
