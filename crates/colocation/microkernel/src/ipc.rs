//! Messages: call, receive, reply. The fast paths carry words only, to a peer that is already waiting.

use crate::kernel::{Kernel, Outcome};
use crate::machine::Machine;
use crate::queue::{ThreadId, NO_THREAD};
use crate::space::{is_share_page, is_writable};
use crate::task::{Endpoint, Handle};
use crate::thread::{load_kept, save_kept, State};
use kyozon_abi::layer::Frame;
use kyozon_abi::task::*;

impl Kernel {
    /// A call whose receiver is waiting and precedes every ready thread: the receiver runs at once with the caller's
    /// words. Returns false and changes nothing if a condition fails.
    #[inline]
    pub(crate) fn fast_call(&mut self, frame: &mut Frame, machine: &mut impl Machine) -> bool {
        let from = self.current;
        let task = &self.tasks[usize::from(self.threads[from].task)];
        let Ok((e, badge)) = task.endpoint(frame.rdi, HANDLE_SEND) else { return false };
        let endpoint = &mut self.endpoints[usize::from(e)];
        let Some(to) = endpoint.receiver() else { return false };
        if frame.rcx != 0 || self.ready.has_above(self.threads[to].priority) {
            return false;
        }
        endpoint.queue.remove(&mut self.threads, to);
        self.threads[to].caller = from;
        self.hand_over(frame, from, to, State::Replying(to), machine);
        frame.rdi = badge;
        true
    }

    /// A reply to a caller that precedes every ready thread, if no message is queued. Like [`Kernel::fast_call`].
    #[inline]
    pub(crate) fn fast_reply_receive(
        &mut self,
        frame: &mut Frame,
        machine: &mut impl Machine,
    ) -> bool {
        let from = self.current;
        let thread = &self.threads[from];
        let task = &self.tasks[usize::from(thread.task)];
        let Ok((e, _)) = task.endpoint(frame.rdi, HANDLE_RECEIVE) else { return false };
        let to = thread.caller;
        let endpoint = &mut self.endpoints[usize::from(e)];
        if to == NO_THREAD || frame.rcx != 0 || endpoint.has_sender() || !endpoint.alive {
            return false;
        }
        let caller = &self.threads[to];
        if caller.faulted || self.ready.has_above(caller.priority) {
            return false;
        }
        endpoint.receiving = true;
        endpoint.queue.push_back(&mut self.threads, from);
        self.threads[from].caller = NO_THREAD;
        self.hand_over(frame, from, to, State::Receiving(e), machine);
        frame.rdi = 0;
        true
    }

    /// Switches from `from`, which gets `state`, to `to`, which gets the words in the live frame.
    #[inline]
    fn hand_over(
        &mut self,
        frame: &mut Frame,
        from: ThreadId,
        to: ThreadId,
        state: State,
        machine: &mut impl Machine,
    ) {
        self.threads[from].state = state;
        self.threads[to].state = State::Ready;
        save_kept(frame, &mut self.threads[from].frame);
        load_kept(&self.threads[to].frame, frame);
        frame.rax = 0;
        frame.rcx = 0;
        self.current = to;
        self.make_live(to, machine);
    }

    /// CALL of the current thread, whose registers are saved.
    pub(crate) fn call(&mut self, machine: &mut impl Machine) -> Result<Outcome, i64> {
        let from = self.current;
        let handle = self.threads[from].frame.rdi;
        let (e, badge) = self.tasks[self.current_task()].endpoint(handle, HANDLE_SEND)?;
        self.threads[from].badge = badge;
        self.send(from, e, machine)?;
        Ok(Outcome::Waits)
    }

    /// Sends the message of `from`, which is in no queue and waits from then on.
    pub(crate) fn send(
        &mut self,
        from: ThreadId,
        e: u8,
        machine: &mut impl Machine,
    ) -> Result<(), i64> {
        let endpoint = &mut self.endpoints[usize::from(e)];
        if !endpoint.alive {
            return Err(E_GONE);
        }
        match endpoint.receiver() {
            Some(to) => {
                self.deliver(from, to, machine)?;
                self.endpoints[usize::from(e)].queue.remove(&mut self.threads, to);
                self.wake(to);
            }
            None => {
                endpoint.receiving = false;
                endpoint.queue.push_back(&mut self.threads, from);
                self.threads[from].state = State::Sending(e);
            }
        }
        Ok(())
    }

    /// Delivers the message of `from` to `to`, which owes a reply from then on.
    fn deliver(
        &mut self,
        from: ThreadId,
        to: ThreadId,
        machine: &mut impl Machine,
    ) -> Result<(), i64> {
        let received = self.transfer(from, to, machine)?;
        let (badge, words) = (self.threads[from].badge, self.threads[from].words());
        self.threads[to].receive(badge, received, words);
        self.threads[to].caller = from;
        self.threads[from].state = State::Replying(to);
        Ok(())
    }

    /// RECEIVE of the current thread; if `reply`, REPLY_RECEIVE.
    pub(crate) fn receive(
        &mut self,
        reply: bool,
        machine: &mut impl Machine,
    ) -> Result<Outcome, i64> {
        let to = self.current;
        let handle = self.threads[to].frame.rdi;
        let (e, _) = self.tasks[self.current_task()].endpoint(handle, HANDLE_RECEIVE)?;
        if !self.endpoints[usize::from(e)].alive {
            return Err(E_GONE);
        }
        if reply && self.threads[to].caller != NO_THREAD {
            self.reply(machine)?;
        }
        self.abandon(to);
        loop {
            let endpoint: &mut Endpoint = &mut self.endpoints[usize::from(e)];
            if !endpoint.has_sender() {
                endpoint.receiving = true;
                endpoint.queue.push_back(&mut self.threads, to);
                self.threads[to].state = State::Receiving(e);
                return Ok(Outcome::Waits);
            }
            let from = endpoint.queue.head();
            endpoint.queue.remove(&mut self.threads, from);
            match self.deliver(from, to, machine) {
                Ok(()) => return Ok(Outcome::Answer(0)),
                Err(error) => self.wake_with(from, error),
            }
        }
    }

    /// REPLY of the current thread to its caller.
    pub(crate) fn reply(&mut self, machine: &mut impl Machine) -> Result<Outcome, i64> {
        let from = self.current;
        let to = self.threads[from].caller;
        if to == NO_THREAD {
            return Err(E_NO_CALLER);
        }
        if self.threads[to].faulted {
            self.threads[from].caller = NO_THREAD;
            let [what, rip, ..] = self.threads[from].words();
            self.after_fault(to, what, rip);
            return Ok(Outcome::Answer(0));
        }
        let received = self.transfer(from, to, machine)?;
        let words = self.threads[from].words();
        self.threads[to].receive(0, received, words);
        self.threads[from].caller = NO_THREAD;
        self.wake(to);
        Ok(Outcome::Answer(0))
    }

    /// Releases the caller of `thread` without a reply.
    pub(crate) fn abandon(&mut self, thread: ThreadId) {
        let caller = core::mem::replace(&mut self.threads[thread].caller, NO_THREAD);
        if caller == NO_THREAD {
            return;
        }
        if self.threads[caller].faulted {
            self.after_fault(caller, FAULT_STOP, 0);
        } else {
            self.wake_with(caller, E_GONE);
        }
    }

    /// Transfers the page or handle that accompanies the message of `from`. Returns the value of `rcx` for `to`.
    fn transfer(
        &mut self,
        from: ThreadId,
        to: ThreadId,
        machine: &mut impl Machine,
    ) -> Result<u64, i64> {
        if self.threads[from].faulted || self.threads[from].frame.rcx == 0 {
            return Ok(0);
        }
        let wanted = self.threads[from].frame.rcx;
        match wanted & TRANSFER_KIND {
            TRANSFER_HANDLE => self.transfer_handle(from, to, wanted),
            0 => Err(E_ARGUMENT),
            _ => self.transfer_page(from, to, wanted, machine),
        }
    }

    fn transfer_handle(&mut self, from: ThreadId, to: ThreadId, wanted: u64) -> Result<u64, i64> {
        let (source, target) = (self.task_of(from), self.task_of(to));
        let number = wanted >> 12 & 0xf_ffff;
        let handle = *self.tasks[source].handle(number).ok_or(E_HANDLE)?;
        let keep = (wanted >> TRANSFER_RIGHTS) as u8;
        if self.threads[to].accept & ACCEPT_HANDLE == 0 {
            return Err(E_REFUSED);
        }
        let copy = Handle { rights: handle.rights & keep, ..handle };
        let number = self.tasks[target].add(copy).map_err(|_| E_REFUSED)?;
        self.threads[to].accept &= !ACCEPT_HANDLE;
        Ok(number << 12 | TRANSFER_HANDLE)
    }

    fn transfer_page(
        &mut self,
        from: ThreadId,
        to: ThreadId,
        wanted: u64,
        machine: &mut impl Machine,
    ) -> Result<u64, i64> {
        let (source, target) = (self.task_of(from), self.task_of(to));
        let (source, target) = (self.tasks[source].space, self.tasks[target].space);
        let (address, write) = (wanted & !0xfff, wanted & TRANSFER_WRITE != 0);
        let entry = source.shareable(machine, address).ok_or(E_ADDRESS)?;
        if write && !is_writable(entry) {
            return Err(E_ADDRESS);
        }
        let place = self.threads[to].accept & !0xfff;
        if !is_share_page(place) || !target.is_free(machine, place) {
            return Err(E_REFUSED);
        }
        if wanted & TRANSFER_KIND == TRANSFER_GRANT {
            source.unmap(machine, address);
            // The sender's space may be the live one.
            machine.forget(address);
        }
        target.share(machine, place, entry, write);
        self.threads[to].accept &= 0xfff;
        Ok(place | wanted & (TRANSFER_KIND | TRANSFER_WRITE))
    }

    /// The task of a thread.
    pub(crate) fn task_of(&self, thread: ThreadId) -> usize {
        usize::from(self.threads[thread].task)
    }
}
