//! The kernel's state and the entry from user mode: system call, tick or fault.
//!
//! The running thread's registers are in the live frame, which the layer restores. A message call whose peer is waiting
//! swaps the live frame's registers and returns; everything else saves the frame, works on saved threads, and chooses
//! the next thread.

use crate::machine::Machine;
use crate::queue::{Link, Links, Queue, ThreadId, NO_THREAD};
use crate::ready::Ready;
use crate::task::*;
use crate::thread::{State, Thread, THREADS};
use crate::typed::Typed;
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

/// The kernel's state.
pub struct Kernel {
    /// Every thread.
    pub threads: Threads,
    /// Every task.
    pub tasks: [Task; MAX_TASKS],
    /// Every endpoint.
    pub endpoints: [Endpoint; ENDPOINTS],
    /// Every notification.
    pub notifications: [Notification; NOTIFICATIONS],
    /// Threads that can run but do not.
    pub ready: Ready,
    /// Threads that wait for a tick.
    pub tick_waiters: Queue,
    /// The running thread; while the kernel chooses, the last one.
    pub current: ThreadId,
    /// The task whose address space is live.
    pub live: u8,
    /// Whether the running thread has used its turn: other threads of its priority run first.
    pub turn_over: bool,
    /// Tasks that are to end, one bit per task.
    pub ending: u32,
    /// Number of the last tick, which counts those that were missed.
    pub now: u64,
    /// Number of ticks that this kernel has seen.
    pub seen_ticks: u64,
    /// The number of the tick at which a supervised task needs a look.
    pub look_at: u64,
    /// Ticks per second.
    pub tick_hz: u32,
    /// The task whose program is typed code, if there is one.
    pub typed: Option<Typed>,
}

/// The result of a system call.
pub enum Outcome {
    /// The caller continues with this value in `rax`.
    Answer(i64),
    /// The caller waits or has ended; its saved registers are final.
    Waits,
}

impl Kernel {
    /// A kernel without tasks.
    pub const EMPTY: Self = Self {
        threads: Threads([Thread::NONE; THREADS]),
        tasks: [Task::NONE; MAX_TASKS],
        endpoints: [Endpoint::NONE; ENDPOINTS],
        notifications: [Notification::NONE; NOTIFICATIONS],
        ready: Ready::EMPTY,
        tick_waiters: Queue::EMPTY,
        current: NO_THREAD,
        live: u8::MAX,
        turn_over: false,
        ending: 0,
        now: 0,
        seen_ticks: 0,
        look_at: u64::MAX,
        tick_hz: 0,
        typed: None,
    };

    /// Handles an exit from user mode with registers `frame`. On return, `frame` holds the next thread's registers.
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

    /// Registers of the first thread to run.
    pub fn start(&mut self, machine: &mut impl Machine) -> Frame {
        *self.choose(machine)
    }

    /// Chooses the next thread and makes it and its address space current. Idles while no thread can run.
    fn choose(&mut self, machine: &mut impl Machine) -> &Frame {
        loop {
            if let Some(event) = machine.tick() {
                self.tick(&event);
                if self.now >= self.look_at {
                    self.look(machine);
                }
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

    /// The current thread if it can continue and none precedes it, otherwise the first ready one.
    fn candidate(&mut self) -> Option<ThreadId> {
        let current = self.current;
        // A ready thread that was current is in no queue.
        if current != NO_THREAD && self.threads[current].state == State::Ready {
            let priority = self.threads[current].priority;
            let gives_way = self.turn_over && self.ready.has(priority);
            if !self.ready.has_above(priority) && !gives_way {
                return Some(current);
            }
            if gives_way {
                self.ready.push_back(&mut self.threads, current, priority);
            } else {
                self.ready.push_front(&mut self.threads, current, priority);
            }
        }
        self.current = NO_THREAD;
        self.ready.pop(&mut self.threads)
    }

    /// Makes the address space of `thread` the live one. A typed task is in each of them.
    #[inline]
    pub fn make_live(&mut self, thread: ThreadId, machine: &mut impl Machine) {
        let task = self.threads[thread].task;
        let is_typed = self.typed.is_some_and(|typed| typed.task == task);
        if self.live != task && !(is_typed && self.live != u8::MAX) {
            self.live = task;
            machine.enter(self.tasks[usize::from(task)].space.root);
        }
    }

    /// Makes `thread` ready. It must be in no queue.
    pub fn wake(&mut self, thread: ThreadId) {
        let priority = self.threads[thread].priority;
        self.threads[thread].state = State::Ready;
        // The current thread is not queued: `candidate` considers it.
        if thread != self.current {
            self.ready.push_back(&mut self.threads, thread, priority);
        }
    }

    /// Makes `thread` ready with `answer` in `rax`. It must be in no queue.
    pub fn wake_with(&mut self, thread: ThreadId, answer: i64) {
        self.threads[thread].frame.rax = answer as u64;
        self.wake(thread);
    }

    /// The task of the current thread.
    #[inline]
    pub fn current_task(&self) -> usize {
        usize::from(self.threads[self.current].task)
    }

    /// Wakes all threads that wait for a tick.
    fn tick(&mut self, event: &TickEvent) {
        self.now = event.number;
        self.seen_ticks += 1;
        while let Some(t) = self.tick_waiters.pop(&mut self.threads) {
            let thread = &mut self.threads[t];
            let missed = match thread.last_tick {
                0 => event.missed,
                last => event.number.wrapping_sub(last).wrapping_sub(1),
            };
            thread.last_tick = event.number;
            self.tasks[usize::from(thread.task)].supervision.waited = (self.now, self.seen_ticks);
            let f = &mut thread.frame;
            (f.rsi, f.rdx, f.r8, f.r9) =
                (event.number, missed, event.scheduled_tsc, event.entered_tsc);
            self.wake_with(t, 0);
        }
    }

    /// Removes `thread` from its queue, if any. Its state is stale afterwards.
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
