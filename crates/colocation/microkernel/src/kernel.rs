//! The kernel's state, and what happens when user mode is left: a system call, a tick, a fault.
//!
//! The registers of the thread that runs are in the live frame, which the layer puts back. A call about messages that
//! finds its other side waiting exchanges the live frame's registers and is done; everything else saves the frame,
//! works on saved threads, and chooses who runs.

use crate::machine::Machine;
use crate::queue::{Link, Links, Queue, ThreadId, NOBODY};
use crate::ready::Ready;
use crate::task::*;
use crate::thread::{State, Thread, THREADS};
use kyozon_abi::layer::{Frame, TickEvent, MAX_TASKS};
use kyozon_abi::task::*;

const TICK_VECTOR: u64 = 2;

/// Every thread.
pub struct Threads(pub [Thread; THREADS]);

impl Links for Threads {
    #[inline]
    fn link(&mut self, thread: ThreadId) -> &mut Link {
        &mut self.0[usize::from(thread)].link
    }
}

impl core::ops::Index<ThreadId> for Threads {
    type Output = Thread;
    #[inline]
    fn index(&self, thread: ThreadId) -> &Thread {
        &self.0[usize::from(thread)]
    }
}

impl core::ops::IndexMut<ThreadId> for Threads {
    #[inline]
    fn index_mut(&mut self, thread: ThreadId) -> &mut Thread {
        &mut self.0[usize::from(thread)]
    }
}

/// All of it.
pub struct Kernel {
    /// Every thread.
    pub threads: Threads,
    /// Every task.
    pub tasks: [Task; MAX_TASKS],
    /// Every endpoint.
    pub endpoints: [Endpoint; ENDPOINTS],
    /// Every notification.
    pub notifications: [Notification; NOTIFICATIONS],
    /// Who can run and does not.
    pub ready: Ready,
    /// Who waits for a tick.
    pub tick_waiters: Queue,
    /// Who runs. While the kernel chooses, whoever ran last.
    pub current: ThreadId,
    /// Whose address space is live.
    pub live: u8,
    /// Whether the thread that runs is to go behind its equals.
    pub turn_over: bool,
    /// Tasks whose end was asked for: bit by task.
    pub ending: u32,
}

/// What becomes of a system call.
pub enum Outcome {
    /// The caller goes on with this in `rax`.
    Answer(i64),
    /// The caller waits, or is no more; its registers are as they shall be.
    Waits,
}

impl Kernel {
    /// Nothing yet.
    pub const EMPTY: Self = Self {
        threads: Threads([Thread::NONE; THREADS]),
        tasks: [Task::NONE; MAX_TASKS],
        endpoints: [Endpoint::NONE; ENDPOINTS],
        notifications: [Notification::NONE; NOTIFICATIONS],
        ready: Ready::EMPTY,
        tick_waiters: Queue::EMPTY,
        current: NOBODY,
        live: u8::MAX,
        turn_over: false,
        ending: 0,
    };

    /// User mode was left with `frame`; on return, `frame` is what runs next.
    pub fn trap(&mut self, frame: &mut Frame, machine: &mut impl Machine) {
        if frame.vector == SYSTEM_CALL_VECTOR {
            let done = match frame.rax {
                CALL => self.fast_call(frame, machine),
                REPLY_RECEIVE => self.fast_reply_receive(frame, machine),
                NO_OPERATION => {
                    frame.rax = 0;
                    true
                }
                _ => false,
            };
            if done {
                return;
            }
        }
        self.slow(frame, machine);
    }

    fn slow(&mut self, frame: &mut Frame, machine: &mut impl Machine) {
        let current = self.current;
        self.threads[current].frame = *frame;
        match frame.vector {
            SYSTEM_CALL_VECTOR => {
                if let Outcome::Answer(answer) = self.system_call(frame.rax, machine) {
                    self.threads[current].frame.rax = answer as u64;
                }
            }
            TICK_VECTOR => self.turn_over = true,
            _ => self.fault(machine),
        }
        self.end_tasks(machine);
        *frame = *self.choose(machine);
    }

    /// The first thread that runs.
    pub fn start(&mut self, machine: &mut impl Machine) -> Frame {
        *self.choose(machine)
    }

    /// Who runs next: it becomes current, in its address space. Where nobody can, the CPU is given back.
    fn choose(&mut self, machine: &mut impl Machine) -> &Frame {
        loop {
            if let Some(event) = machine.tick() {
                self.tick(&event);
            }
            if let Some(next) = self.candidate() {
                self.current = next;
                self.turn_over = false;
                self.make_live(next, machine);
                return &self.threads[next].frame;
            }
            machine.idle();
        }
    }

    /// The current thread where it can go on and nobody goes before it, else the first of the ready.
    fn candidate(&mut self) -> Option<ThreadId> {
        let current = self.current;
        // Whoever is ready and was current is in no queue.
        if current != NOBODY && self.threads[current].state == State::Ready {
            let priority = self.threads[current].priority;
            let gives_way = self.turn_over && self.ready.has(priority);
            if !self.ready.is_above(priority) && !gives_way {
                return Some(current);
            }
            if gives_way {
                self.ready.push_back(&mut self.threads, current, priority);
            } else {
                self.ready.push_front(&mut self.threads, current, priority);
            }
        }
        self.current = NOBODY;
        self.ready.pop(&mut self.threads)
    }

    /// Makes the address space of `thread` the live one.
    #[inline]
    pub fn make_live(&mut self, thread: ThreadId, machine: &mut impl Machine) {
        let task = self.threads[thread].task;
        if self.live != task {
            self.live = task;
            machine.enter(self.tasks[usize::from(task)].space.root);
        }
    }

    /// `thread` can run from now on. It is in no queue.
    pub fn wake(&mut self, thread: ThreadId) {
        let priority = self.threads[thread].priority;
        self.threads[thread].state = State::Ready;
        // Who is current has its place: the one that runs.
        if thread != self.current {
            self.ready.push_back(&mut self.threads, thread, priority);
        }
    }

    /// `thread`, in no queue, goes on with `answer`.
    pub fn wake_with(&mut self, thread: ThreadId, answer: i64) {
        self.threads[thread].frame.rax = answer as u64;
        self.wake(thread);
    }

    /// The task of the current thread.
    #[inline]
    pub fn current_task(&self) -> usize {
        usize::from(self.threads[self.current].task)
    }

    /// Everybody who waits for a tick goes on.
    fn tick(&mut self, event: &TickEvent) {
        while let Some(t) = self.tick_waiters.pop(&mut self.threads) {
            let thread = &mut self.threads[t];
            let missed = match thread.last_tick {
                0 => event.missed,
                last => event.number.wrapping_sub(last).wrapping_sub(1),
            };
            thread.last_tick = event.number;
            let f = &mut thread.frame;
            (f.rsi, f.rdx, f.r8, f.r9) =
                (event.number, missed, event.scheduled_tsc, event.entered_tsc);
            self.wake_with(t, 0);
        }
    }

    /// Takes `thread` out of whatever queue it is in. Its state says nothing any more.
    pub fn unqueue(&mut self, thread: ThreadId) {
        let t = &self.threads[thread];
        let (state, priority) = (t.state, t.priority);
        match state {
            State::Ready if thread != self.current => {
                self.ready.remove(&mut self.threads, thread, priority);
            }
            State::Sending(e) | State::Receiving(e) => {
                self.endpoints[usize::from(e)].queue.remove(&mut self.threads, thread);
            }
            State::Waiting(n) => {
                self.notifications[usize::from(n)].queue.remove(&mut self.threads, thread);
            }
            State::Tick => self.tick_waiters.remove(&mut self.threads, thread),
            State::Ready | State::Replying(_) | State::None => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
