//! When a guest can take an NMI, on a processor that does not track it (no VNMI).
//!
//! An injected NMI does not block the next one (APM 2, 15.20), so the hypervisor does it: from the injection until the
//! guest's handler has completed its IRET, further NMIs wait and are merged into one.
//!
//! ```text
//!         inject                  IRET exit                      #DB exit
//!  Open ---------> Blocked ----------------------> Stepping ------------------> Open
//!                  IRET is intercepted             RFLAGS.TF (and RF), #DB and what IRET can raise are intercepted
//!                    ^   \_ not delivered: Open, the NMI waits again      |
//!                    \____________________________________________________/  a fault: not completed, so still blocked
//! ```
//!
//! The exit comes before the IRET runs; an NMI injected then would find the handler's stack in use. A completed IRET
//! has loaded RFLAGS, so our TF is gone. After a fault TF is still set, and must be cleared before the fault is
//! reflected, or its handler would find it in its frame. A fault keeps NMIs blocked, as they are until an IRET
//! completes (VNMI does the same, 15.21.10): the IRET of the fault's handler is the next that counts. Any other exit
//! while stepping, also for an NMI, changes nothing: the IRET has not run, and is stepped at the next entry.
//!
//! A guest whose handler ends without an IRET stays blocked, as on a processor.

/// What the VMCB must contain at the next VMRUN. The caller decides about fields that are false.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Inject an NMI: EVENTINJ of type 2, vector 2.
    pub inject: bool,
    /// Intercept IRET.
    pub intercept_iret: bool,
    /// Set RFLAGS.TF and RF; intercept #DB and the exceptions that an IRET can raise.
    pub step: bool,
    /// An NMI waits only because the caller is busy: the caller must cause an exit as soon as it is not. If it
    /// single-steps, that is the step's end; else it sends an NMI to its own CPU, which exits when the other event has
    /// been delivered.
    pub exit_soon: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Open,
    Blocked,
    Stepping,
}

/// The NMIs of one guest on one CPU.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nmis {
    state: State,
    waits: bool,
}

impl Nmis {
    /// A guest that can take an NMI.
    pub const fn new() -> Self {
        Self { state: State::Open, waits: false }
    }

    /// An NMI is for the guest. NMIs that come before it is injected are merged with it.
    pub fn want(&mut self) {
        self.waits = true;
    }

    /// Whether an NMI waits. Code that ends the guest sends it to the CPU itself.
    pub fn waits(&self) -> bool {
        self.waits
    }

    /// Whether the guest is stepped over an IRET.
    pub fn is_stepping(&self) -> bool {
        self.state == State::Stepping
    }

    /// Whether the guest is between the injection and the end of its IRET.
    #[cfg(test)]
    fn is_blocked(&self) -> bool {
        self.state != State::Open
    }

    /// Exit: the guest is about to run an IRET.
    pub fn on_iret(&mut self) {
        if self.state == State::Blocked {
            self.state = State::Stepping;
        }
    }

    /// Exit: #DB with DR6.BS after an entry with [`Entry::step`]. If the guest had set TF itself, the caller
    /// reflects that #DB too, and is busy with it.
    pub fn on_step_done(&mut self) {
        if self.state == State::Stepping {
            self.state = State::Open;
        }
    }

    /// Exit: the stepped IRET raised an exception, which the caller reflects after it has cleared TF.
    pub fn on_step_fault(&mut self) {
        if self.state == State::Stepping {
            self.state = State::Blocked;
        }
    }

    /// Exit: EXITINTINFO says that the injected NMI was not delivered, because of an intercept during its delivery. It
    /// waits again, merged with one that came since: the handler has seen neither.
    pub fn on_not_delivered(&mut self) {
        if self.state == State::Blocked {
            self.state = State::Open;
            self.waits = true;
        }
    }

    /// Called once for each VMRUN. `busy`: another event is injected at this one, the guest is single-stepped for
    /// another reason, or it is in an interrupt shadow.
    pub fn on_entry(&mut self, busy: bool) -> Entry {
        let ready = self.waits && self.state == State::Open;
        let inject = ready && !busy;
        if inject {
            (self.state, self.waits) = (State::Blocked, false);
        }
        Entry {
            inject,
            intercept_iret: self.state == State::Blocked,
            step: self.state == State::Stepping,
            exit_soon: ready && busy,
        }
    }

    /// The NMI of the last [`Nmis::on_entry`] is not injected after all, nor later.
    pub fn forget(&mut self) -> Entry {
        self.state = State::Open;
        Entry::default()
    }
}

#[cfg(test)]
mod tests;
