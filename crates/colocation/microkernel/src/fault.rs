//! Faults of threads and the end of tasks.

use crate::kernel::Kernel;
use crate::machine::Machine;
use crate::queue::{ThreadId, NO_THREAD};
use crate::task::{owner_of_endpoint, owner_of_notification, Endpoint, Notification};
use crate::thread::{State, Thread, THREADS};
use kyozon_abi::events::EVENT_FAULT;
use kyozon_abi::layer::{MAX_TASKS, REPORT_BYTES};
use kyozon_abi::line;
use kyozon_abi::task::*;

/// Vector of the exception at the first use of the vector registers in a trip.
const VECTORS_VECTOR: u64 = 7;
/// The task that may use them.
const VECTORS_TASK: usize = 0;

type Line = line::Line<{ REPORT_BYTES as usize }>;

impl Kernel {
    /// Handles a fault of the current thread, whose registers are saved. If it may have the vector registers and did
    /// not, it continues with them. Otherwise its task's handler gets a message; without a handler, the task ends.
    pub(crate) fn fault(&mut self, machine: &mut impl Machine) {
        let thread = self.current;
        let task = self.task_of(thread);
        let vector = self.threads[thread].frame.vector;
        if vector == VECTORS_VECTOR && task == VECTORS_TASK && machine.give_vectors() {
            return;
        }
        let cr2 = machine.fault_address();
        if let Some(e) = self.tasks[task].fault_handler {
            let t = &mut self.threads[thread];
            let f = &t.frame;
            let number = u64::from(thread) % TASK_THREADS;
            t.fault = [f.vector, f.error, f.rip, cr2, f.rsp, number];
            t.badge = BADGE_FAULT | task as u64;
            t.faulted = true;
            if self.send(thread, e, machine).is_ok() {
                return;
            }
            self.threads[thread].faulted = false;
        }
        self.report_fault(thread, cr2, machine);
        self.ending |= 1 << task;
    }

    /// Reports the registers of a thread whose fault ends its task.
    fn report_fault(&mut self, thread: ThreadId, cr2: u64, machine: &mut impl Machine) {
        let (f, task) = (&self.threads[thread].frame, self.task_of(thread));
        let code = f.vector as u32;
        let line = Line::new(format_args!(
            "task {task} stopped: vector {} error {:#x} rip {:#x} cr2 {cr2:#x} rsp {:#x} rflags {:#x}",
            f.vector, f.error, f.rip, f.rsp, f.rflags
        ));
        machine.report(EVENT_FAULT, code, line.bytes());
        self.failed(task, line.bytes(), machine);
        let f = &self.threads[thread].frame;
        let line = Line::new(format_args!(
            "task {task}: rax {:#x} rbx {:#x} rcx {:#x} rdx {:#x} rsi {:#x} rdi {:#x} rbp {:#x}",
            f.rax, f.rbx, f.rcx, f.rdx, f.rsi, f.rdi, f.rbp
        ));
        machine.report(EVENT_FAULT, code, line.bytes());
        let line = Line::new(format_args!(
            "task {task}: r8 {:#x} r9 {:#x} r10 {:#x} r11 {:#x} r12 {:#x} r13 {:#x} r14 {:#x} r15 {:#x}",
            f.r8, f.r9, f.r10, f.r11, f.r12, f.r13, f.r14, f.r15
        ));
        machine.report(EVENT_FAULT, code, line.bytes());
    }

    /// Reports that the current task ends with `code`. Code 0 is not reported.
    pub(crate) fn report_exit(&mut self, code: u64, machine: &mut impl Machine) {
        if code != 0 {
            let task = self.current_task();
            let meaning = match code {
                EXIT_PANICKED => ", it panicked",
                EXIT_VERSION => ", it was built for another version of the task interface",
                EXIT_FAILED => ", it cannot do its work",
                _ => "",
            };
            let line = Line::new(format_args!("task {task} ended: code {code}{meaning}"));
            machine.report(EVENT_FAULT, code as u32, line.bytes());
            self.failed(task, line.bytes(), machine);
        }
    }

    /// Carries out the fault handler's answer for `thread`, which is in no queue.
    pub(crate) fn after_fault(&mut self, thread: ThreadId, what: u64, rip: u64) {
        self.threads[thread].faulted = false;
        // Typed code continues where it was only: of other addresses nothing was checked.
        let typed = self.typed.is_some_and(|typed| typed.task == self.threads[thread].task);
        if what == FAULT_RESUME && !(typed && rip != 0) {
            if rip != 0 {
                self.threads[thread].frame.rip = rip;
            }
            self.wake(thread);
        } else {
            self.threads[thread].state = State::Ready;
            self.remove(thread);
        }
    }

    /// Ends `thread`, and its task with its last thread. If it is [`State::Ready`], it must be in no queue.
    fn remove(&mut self, thread: ThreadId) {
        let task = self.task_of(thread);
        self.threads[thread].state = State::None;
        self.release_caller(thread);
        let first = task * TASK_THREADS as usize;
        let mine = &self.threads.0[first..first + TASK_THREADS as usize];
        if mine.iter().all(|t| t.state == State::None) {
            self.ending |= 1 << task;
        }
    }

    /// Releases the caller of `thread`, which has ended. If the caller waits for its fault handler, its task ends: no
    /// other thread handles the fault.
    fn release_caller(&mut self, thread: ThreadId) {
        let caller = core::mem::replace(&mut self.threads[thread].caller, NO_THREAD);
        if caller == NO_THREAD {
            return;
        }
        if self.threads[caller].faulted {
            self.ending |= 1 << self.task_of(caller);
        } else {
            self.wake_with(caller, E_GONE);
        }
    }

    /// Ends the current thread.
    pub(crate) fn exit_thread(&mut self) {
        let thread = self.current;
        self.remove(thread);
    }

    /// Ends every task that is to end, and the tasks that depend on it. Each iteration ends a task for good, so the
    /// loop is bounded by the number of tasks.
    pub(crate) fn end_tasks(&mut self, machine: &mut impl Machine) {
        while self.ending != 0 {
            let task = self.ending.trailing_zeros() as usize;
            self.ending &= !(1 << task);
            if task < MAX_TASKS && self.tasks[task].alive {
                self.end_task(task, machine);
            }
        }
    }

    fn end_task(&mut self, task: usize, machine: &mut impl Machine) {
        self.tasks[task].alive = false;
        for t in
            (0..THREADS as ThreadId).filter(|t| usize::from(*t) / TASK_THREADS as usize == task)
        {
            self.unqueue(t);
            self.threads[t].state = State::None;
        }
        for t in 0..THREADS as ThreadId {
            let lost = match self.threads[t].state {
                State::Sending(e) | State::Receiving(e) => owner_of_endpoint(e) == task,
                State::Waiting(n) => owner_of_notification(n) == task,
                State::Replying(other) => self.threads[other].state == State::None,
                State::None | State::Ready | State::Tick => false,
            };
            if !lost {
                continue;
            }
            self.unqueue(t);
            if self.threads[t].faulted {
                // Its fault handler is gone. Until its own task has ended, it waits for itself.
                self.threads[t].state = State::Replying(t);
                let cr2 = self.threads[t].fault[3];
                self.report_fault(t, cr2, machine);
                self.ending |= 1 << self.task_of(t);
            } else {
                self.wake_with(t, E_GONE);
            }
        }
        // Threads that owed this task a reply forget it.
        for t in &mut self.threads.0 {
            if t.caller != NO_THREAD && usize::from(t.caller) / TASK_THREADS as usize == task {
                t.caller = NO_THREAD;
            }
        }
        let first = task * TASK_THREADS as usize;
        self.threads.0[first..first + TASK_THREADS as usize].fill(Thread::NONE);
        for (i, e) in self.endpoints.iter_mut().enumerate() {
            if owner_of_endpoint(i as u8) == task {
                *e = Endpoint::NONE;
            }
        }
        for (i, n) in self.notifications.iter_mut().enumerate() {
            if owner_of_notification(i as u8) == task {
                *n = Notification::NONE;
            }
        }
        for t in &mut self.tasks {
            if t.fault_handler.is_some_and(|e| owner_of_endpoint(e) == task) {
                t.fault_handler = None;
            }
        }
    }
}
