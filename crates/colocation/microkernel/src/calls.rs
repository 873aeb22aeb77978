//! System calls other than messages and the layer's services: the dispatch, objects, threads, tasks, ticks.

use crate::kernel::{Kernel, Outcome};
use crate::machine::Machine;
use crate::queue::ThreadId;
use crate::ready::PRIORITIES;
use crate::space::is_share_page;
use crate::task::{Endpoint, Handle, Notification, Object, TASK_ENDPOINTS};
use crate::thread::{State, Thread};
use crate::typed::RETURNED;
use kyozon_abi::layer::MAX_TASKS;
use kyozon_abi::task::*;

/// Rights of a new endpoint's handle.
const ENDPOINT_RIGHTS: u8 = (HANDLE_SEND | HANDLE_RECEIVE | HANDLE_MINT) as u8;
/// Rights of a new notification's handle. [`MINT`] makes handles of endpoints only.
const NOTIFICATION_RIGHTS: u8 = (HANDLE_SEND | HANDLE_RECEIVE) as u8;

impl Kernel {
    /// Executes system call `number` of the current thread, whose registers are saved.
    pub(crate) fn system_call(&mut self, number: u64, machine: &mut impl Machine) -> Outcome {
        self.dispatch(number, machine).unwrap_or_else(Outcome::Answer)
    }

    fn dispatch(&mut self, number: u64, machine: &mut impl Machine) -> Result<Outcome, i64> {
        let f = &self.threads[self.current].frame;
        let (a, b, c) = (f.rdi, f.rsi, f.rdx);
        let answer = match number {
            CALL => return self.call(machine),
            RECEIVE => return self.receive(false, machine),
            REPLY_RECEIVE => return self.receive(true, machine),
            REPLY => return self.reply(machine),
            ACCEPT => self.accept(a),
            UNMAP => self.unmap(a, machine),
            SIGNAL => self.signal(a, b),
            WAIT => return self.wait(a, true),
            POLL => return self.wait(a, false),
            ENDPOINT => self.make_endpoint(),
            NOTIFICATION => self.make_notification(),
            MINT => self.mint(a, b, c),
            CLOSE => self.close(a),
            THREAD => self.make_thread(a, b, c),
            EXIT_THREAD => {
                self.exit_thread();
                return Ok(Outcome::Waits);
            }
            EXIT => {
                // Typed code's is a 32-bit number, whose upper half has any value.
                let code = if self.runs_typed().is_some() { u64::from(a as u32) } else { a };
                self.report_exit(code, machine);
                self.ending |= 1 << self.current_task();
                return Ok(Outcome::Waits);
            }
            YIELD => {
                self.turn_over = true;
                Ok(0)
            }
            PRIORITY => self.set_priority(a),
            FAULT_HANDLER => self.set_fault_handler(a, b),
            STOP => self.stop(a),
            GIVE_RIGHTS => self.give_rights(a, b),
            NO_OPERATION => Ok(0),
            WAIT_TICK => return self.wait_tick(),
            REPORT => self.report(a, machine),
            PUBLISH => self.publish(a, b, machine),
            REPAIR => self.repair(a, machine),
            WINDOW => self.window(a, machine),
            REGISTERS => self.linux_registers(a, b, machine),
            RESET => self.reset(a, machine),
            WATCH => self.watch(a, b, c, machine),
            WRITES => self.writes(a, machine),
            SUPERVISE => self.supervise(a),
            RETURNED => return self.typed_returned(machine),
            _ => Err(E_CALL),
        };
        answer.map(Outcome::Answer)
    }

    fn accept(&mut self, what: u64) -> Result<i64, i64> {
        let page = what & !0xfff;
        if what & 0xfff & !ACCEPT_HANDLE != 0 || page != 0 && !is_share_page(page) {
            return Err(E_ADDRESS);
        }
        let current = self.current;
        self.threads[current].accept = what;
        Ok(0)
    }

    fn unmap(&mut self, address: u64, machine: &mut impl Machine) -> Result<i64, i64> {
        if !is_share_page(address) {
            return Err(E_ADDRESS);
        }
        self.tasks[self.current_task()].space.unmap(machine, address);
        machine.forget(address);
        Ok(0)
    }

    fn signal(&mut self, handle: u64, bits: u64) -> Result<i64, i64> {
        let n = self.tasks[self.current_task()].notification(handle, HANDLE_SEND)?;
        let notification = &mut self.notifications[usize::from(n)];
        if !notification.alive {
            return Err(E_GONE);
        }
        notification.bits |= bits;
        if notification.bits != 0 {
            if let Some(thread) = notification.queue.pop(&mut self.threads) {
                self.threads[thread].frame.rsi = core::mem::take(&mut notification.bits);
                self.wake_with(thread, 0);
            }
        }
        Ok(0)
    }

    fn wait(&mut self, handle: u64, block: bool) -> Result<Outcome, i64> {
        let current = self.current;
        let n = self.tasks[self.current_task()].notification(handle, HANDLE_RECEIVE)?;
        let notification = &mut self.notifications[usize::from(n)];
        if !notification.alive {
            return Err(E_GONE);
        }
        if notification.bits == 0 && block {
            notification.queue.push_back(&mut self.threads, current);
            self.threads[current].state = State::Waiting(n);
            return Ok(Outcome::Waits);
        }
        self.threads[current].frame.rsi = core::mem::take(&mut notification.bits);
        Ok(Outcome::Answer(0))
    }

    fn make_endpoint(&mut self) -> Result<i64, i64> {
        let t = self.current_task();
        let task = &mut self.tasks[t];
        if u64::from(task.endpoints) == TASK_OBJECTS {
            return Err(E_FULL);
        }
        // A task's endpoint 0 exists from its start.
        let e = t * TASK_ENDPOINTS + 1 + usize::from(task.endpoints);
        let number = task.add(Handle {
            object: Object::Endpoint(e as u8),
            rights: ENDPOINT_RIGHTS,
            badge: 0,
        })?;
        task.endpoints += 1;
        self.endpoints[e] = Endpoint { alive: true, ..Endpoint::NONE };
        Ok(number as i64)
    }

    fn make_notification(&mut self) -> Result<i64, i64> {
        let t = self.current_task();
        let task = &mut self.tasks[t];
        if u64::from(task.notifications) == TASK_OBJECTS {
            return Err(E_FULL);
        }
        let n = t * TASK_OBJECTS as usize + usize::from(task.notifications);
        let number = task.add(Handle {
            object: Object::Notification(n as u8),
            rights: NOTIFICATION_RIGHTS,
            badge: 0,
        })?;
        task.notifications += 1;
        self.notifications[n] = Notification { alive: true, ..Notification::NONE };
        Ok(number as i64)
    }

    fn mint(&mut self, handle: u64, badge: u64, rights: u64) -> Result<i64, i64> {
        let t = self.current_task();
        let task = &mut self.tasks[t];
        let (e, _) = task.endpoint(handle, HANDLE_MINT)?;
        let kept = task.handle(handle).ok_or(E_HANDLE)?.rights;
        if badge & BADGE_FAULT != 0 || rights > u64::from(ENDPOINT_RIGHTS) {
            return Err(E_ARGUMENT);
        }
        let rights = kept & rights as u8;
        task.add(Handle { object: Object::Endpoint(e), rights, badge }).map(|n| n as i64)
    }

    fn close(&mut self, handle: u64) -> Result<i64, i64> {
        let t = self.current_task();
        let slot = usize::try_from(handle).ok().and_then(|n| self.tasks[t].handles.get_mut(n));
        match slot {
            Some(slot) if slot.object != Object::None => {
                *slot = Handle::NONE;
                Ok(0)
            }
            _ => Err(E_HANDLE),
        }
    }

    /// Makes thread `number` of a task and wakes it.
    pub(crate) fn add_thread(
        &mut self,
        task: usize,
        number: u64,
        entry: u64,
        argument: u64,
        priority: u8,
    ) {
        let thread = (task as u64 * TASK_THREADS + number) as ThreadId;
        let t = &mut self.threads[thread];
        *t = Thread::NONE;
        t.task = task as u8;
        t.priority = priority;
        t.frame.rip = entry;
        t.frame.rdi = argument;
        // As after a call instruction: the stack is 8 bytes off its alignment. System V ABI 3.2.2.
        t.frame.rsp = TASK_STACK_TOP - number * TASK_STACK_STRIDE - 8;
        self.wake(thread);
    }

    fn make_thread(&mut self, entry: u64, argument: u64, priority: u64) -> Result<i64, i64> {
        let task = self.current_task();
        if priority > u64::from(self.tasks[task].max_priority) {
            return Err(E_ARGUMENT);
        }
        let first = task * TASK_THREADS as usize;
        let mine = &self.threads.0[first..first + TASK_THREADS as usize];
        let number = mine.iter().position(|t| t.state == State::None).ok_or(E_FULL)?;
        self.add_thread(task, number as u64, entry, argument, priority as u8);
        Ok(number as i64)
    }

    fn set_priority(&mut self, priority: u64) -> Result<i64, i64> {
        if priority > u64::from(self.tasks[self.current_task()].max_priority) {
            return Err(E_ARGUMENT);
        }
        let current = self.current;
        self.threads[current].priority = priority as u8 % PRIORITIES as u8;
        Ok(0)
    }

    /// The index of task `task`, if the caller may manage it: with `RIGHT_MANAGE`, or, if `own`, its own task.
    fn managed(&self, task: u64, own: bool) -> Result<usize, i64> {
        let me = self.current_task();
        let index = usize::try_from(task).ok().filter(|t| *t < MAX_TASKS && self.tasks[*t].alive);
        match index {
            Some(t) if own && t == me => Ok(t),
            _ if self.tasks[me].rights & RIGHT_MANAGE == 0 => Err(E_RIGHT),
            Some(t) => Ok(t),
            None => Err(E_ARGUMENT),
        }
    }

    fn set_fault_handler(&mut self, task: u64, handle: u64) -> Result<i64, i64> {
        let task = self.managed(task, true)?;
        self.tasks[task].fault_handler = match handle {
            NO_HANDLE => None,
            _ => Some(self.tasks[self.current_task()].endpoint(handle, HANDLE_SEND)?.0),
        };
        Ok(0)
    }

    fn stop(&mut self, task: u64) -> Result<i64, i64> {
        self.ending |= 1 << self.managed(task, false)?;
        Ok(0)
    }

    fn give_rights(&mut self, task: u64, rights: u64) -> Result<i64, i64> {
        let task = self.managed(task, false)?;
        if rights & !self.tasks[self.current_task()].rights != 0 {
            return Err(E_RIGHT);
        }
        self.tasks[task].rights = rights;
        Ok(0)
    }

    fn wait_tick(&mut self) -> Result<Outcome, i64> {
        self.needs(RIGHT_TICK)?;
        let current = self.current;
        self.tick_waiters.push_back(&mut self.threads, current);
        self.threads[current].state = State::Tick;
        Ok(Outcome::Waits)
    }

    /// Makes a task with its first endpoint and without threads. [`Kernel::introduce`] adds handles to other tasks.
    pub(crate) fn add_task(&mut self, task: usize, rights: u64, max_priority: u8) {
        let e = (task * TASK_ENDPOINTS) as u8;
        self.endpoints[usize::from(e)] = Endpoint { alive: true, ..Endpoint::NONE };
        let t = &mut self.tasks[task];
        t.alive = true;
        t.rights = rights;
        t.max_priority = max_priority;
        t.handles[HANDLE_OWN as usize] =
            Handle { object: Object::Endpoint(e), rights: ENDPOINT_RIGHTS, badge: 0 };
    }

    /// Gives `task` a handle to send to the first endpoint of `other`.
    pub(crate) fn introduce(&mut self, task: usize, other: usize) {
        let object = Object::Endpoint((other * TASK_ENDPOINTS) as u8);
        self.tasks[task].handles[HANDLE_TASKS as usize + other] =
            Handle { object, rights: HANDLE_SEND as u8, badge: task as u64 };
    }
}
