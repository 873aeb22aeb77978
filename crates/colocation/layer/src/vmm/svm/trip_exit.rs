//! What an exit of the cokernel's guest means for its trip.

use super::vmcb::*;

/// The meaning of an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TripExit {
    /// The trip is over.
    End,
    /// The layer calls the hypervisor.
    Call,
    /// A user task executed VMMCALL: it gets the exception that it would get without a hypervisor.
    Undefined,
    /// A non-maskable interrupt has come.
    Nmi,
    /// An INIT has come: Linux may send one at any time, and the trip goes on.
    Init,
    /// The guest is about to run an IRET.
    Iret,
    /// The guest was single-stepped, and this exception ended the step.
    Stepped(u64),
    /// The guest has left its limits.
    Violation,
}

/// The meaning of exit `code`. `at_end`: the guest is at the instruction that ends a trip. `step`: it is
/// single-stepped.
// On the way of every tick.
#[inline(always)]
pub fn meaning(code: u64, kernel: bool, at_end: bool, step: bool) -> TripExit {
    match code {
        VMEXIT_VMMCALL if at_end && kernel => TripExit::End,
        VMEXIT_VMMCALL if kernel => TripExit::Call,
        VMEXIT_VMMCALL => TripExit::Undefined,
        VMEXIT_NMI => TripExit::Nmi,
        VMEXIT_INIT => TripExit::Init,
        VMEXIT_IRET => TripExit::Iret,
        VMEXIT_EXCEPTION..VMEXIT_NMI if step => TripExit::Stepped(code - VMEXIT_EXCEPTION),
        _ => TripExit::Violation,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_user_tasks_are_undefined_instructions() {
        for at_end in [false, true] {
            assert_eq!(meaning(VMEXIT_VMMCALL, false, at_end, false), TripExit::Undefined);
        }
        assert_eq!(meaning(VMEXIT_VMMCALL, true, false, false), TripExit::Call);
        assert_eq!(meaning(VMEXIT_VMMCALL, true, true, false), TripExit::End);
    }

    #[test]
    fn init_does_not_end_a_trip() {
        for flags in 0..8 {
            let flag = |bit: u32| flags >> bit & 1 != 0;
            assert_eq!(meaning(VMEXIT_INIT, flag(0), flag(1), flag(2)), TripExit::Init);
        }
    }

    #[test]
    fn exceptions_exit_during_a_step_only() {
        assert_eq!(meaning(VMEXIT_EXCEPTION + DEBUG, true, false, true), TripExit::Stepped(DEBUG));
        assert_eq!(meaning(VMEXIT_EXCEPTION + DEBUG, true, false, false), TripExit::Violation);
    }

    #[test]
    fn everything_else_is_a_violation() {
        for code in [VMEXIT_SHUTDOWN, VMEXIT_MSR, VMEXIT_VMRUN, VMEXIT_NESTED_FAULT, VMEXIT_INVALID]
        {
            assert_eq!(meaning(code, true, true, true), TripExit::Violation, "{code:#x}");
        }
    }
}
