use super::*;

const QUIET: Entry = Entry { inject: false, intercept_iret: false, step: false, exit_soon: false };
const INJECT: Entry = Entry { inject: true, intercept_iret: true, ..QUIET };
const HANDLER: Entry = Entry { intercept_iret: true, ..QUIET };
const STEP: Entry = Entry { step: true, ..QUIET };
const BUSY: Entry = Entry { exit_soon: true, ..QUIET };

fn in_handler() -> Nmis {
    let mut n = Nmis::new();
    n.want();
    assert_eq!(n.on_entry(false), INJECT);
    n
}

fn stepping() -> Nmis {
    let mut n = in_handler();
    n.on_iret();
    assert_eq!(n.on_entry(false), STEP);
    n
}

#[test]
fn nothing_is_intercepted_without_an_nmi() {
    let mut n = Nmis::new();
    assert_eq!(n.on_entry(false), QUIET);
    assert_eq!(n.on_entry(true), QUIET);
    assert!(!n.is_blocked() && !n.waits());
}

#[test]
fn one_nmi_from_injection_to_iret() {
    let mut n = in_handler();
    assert!(n.is_blocked() && !n.waits());
    assert_eq!(n.on_entry(false), HANDLER, "injected once");
    n.on_iret();
    assert_eq!(n.on_entry(false), STEP);
    n.on_step_done();
    assert_eq!(n.on_entry(false), QUIET);
    assert!(!n.is_blocked());
}

#[test]
fn nmis_in_the_handler_merge_into_one() {
    let mut n = in_handler();
    for _ in 0..3 {
        n.want();
        assert_eq!(n.on_entry(false), HANDLER);
    }
    n.on_iret();
    assert_eq!(n.on_entry(false), STEP);
    n.on_step_done();
    assert_eq!(n.on_entry(false), INJECT);
    n.on_iret();
    n.on_step_done();
    assert_eq!(n.on_entry(false), QUIET);
}

#[test]
fn nmis_between_iret_exit_and_its_end_wait() {
    let mut n = stepping();
    n.want();
    assert_eq!(n.on_entry(false), STEP, "the IRET has not run");
    assert_eq!(n.on_entry(false), STEP, "nor after another exit");
    n.on_step_done();
    assert_eq!(n.on_entry(false), INJECT);
}

#[test]
fn forgotten_nmi_leaves_the_guest_open() {
    let mut n = Nmis::new();
    n.want();
    assert!(n.on_entry(false).inject);
    assert_eq!(n.forget(), Entry::default());
    assert!(!n.is_blocked() && !n.waits());
    n.want();
    assert!(n.on_entry(false).inject);
}

#[test]
fn faulting_iret_keeps_nmis_blocked() {
    let mut n = stepping();
    n.want();
    n.on_step_fault();
    assert_eq!(n.on_entry(true), HANDLER, "the fault is reflected, and its handler's IRET counts");
    n.on_iret();
    assert_eq!(n.on_entry(false), STEP);
    n.on_step_done();
    assert_eq!(n.on_entry(false), INJECT);
}

#[test]
fn undelivered_nmis_are_injected_again() {
    let mut n = in_handler();
    n.on_not_delivered();
    assert!(n.waits() && !n.is_blocked());
    assert_eq!(n.on_entry(false), INJECT);
    n.want();
    n.on_not_delivered();
    assert_eq!(n.on_entry(false), INJECT, "with one that came since: one");
    assert!(!n.waits());
}

#[test]
fn busy_callers_get_exit_soon() {
    let mut n = Nmis::new();
    n.want();
    assert_eq!(n.on_entry(true), BUSY);
    assert_eq!(n.on_entry(true), BUSY);
    assert_eq!(n.on_entry(false), INJECT);
    n.want();
    assert_eq!(n.on_entry(true), HANDLER, "the IRET's exit comes anyway");
    n.on_iret();
    assert_eq!(n.on_entry(true), STEP);
    n.on_step_done();
    assert_eq!(n.on_entry(true), BUSY);
    assert_eq!(n.on_entry(false), INJECT);
}

#[test]
fn unexpected_exits_change_nothing() {
    let mut n = Nmis::new();
    for exit in [Nmis::on_iret, Nmis::on_step_done, Nmis::on_step_fault, Nmis::on_not_delivered] {
        exit(&mut n);
        assert_eq!(n.on_entry(false), QUIET);
    }
    let mut n = in_handler();
    for exit in [Nmis::on_step_done, Nmis::on_step_fault] {
        exit(&mut n);
        assert_eq!(n.on_entry(false), HANDLER);
    }
    let mut n = stepping();
    for exit in [Nmis::on_iret, Nmis::on_not_delivered] {
        exit(&mut n);
        assert_eq!(n.on_entry(false), STEP);
    }
}

/// A guest that is run: it takes what is injected, and its handlers return, fault in their IRET, or are cut short.
/// In its handler it never gets a second NMI, and none that was wanted is lost.
#[test]
fn nmis_never_nest_and_none_is_lost() {
    let mut state = 9u64;
    let mut random = |below: u64| {
        // xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut n = Nmis::new();
    let (mut in_nmi, mut in_fault, mut owed, mut handled) = (false, false, false, 0);
    for _ in 0..100_000 {
        if random(3) == 0 {
            n.want();
            owed = true;
        }
        let busy = random(4) == 0;
        let entry = n.on_entry(busy);
        assert!(!(entry.inject && (busy || in_nmi)));
        assert_eq!(entry.intercept_iret || entry.step, in_nmi || entry.inject);
        assert!(!(entry.intercept_iret && entry.step));
        assert!(
            entry.inject || entry.exit_soon || in_nmi || !owed,
            "no exit would come back to it"
        );
        if entry.inject {
            assert!(owed);
            if random(5) == 0 {
                n.on_not_delivered();
            } else {
                (in_nmi, owed, handled) = (true, false, handled + 1);
            }
        } else if entry.step {
            match random(3) {
                0 => {}
                1 if !in_fault => {
                    in_fault = true;
                    n.on_step_fault();
                }
                _ => {
                    (in_nmi, in_fault) = (false, false);
                    n.on_step_done();
                }
            }
        } else if entry.intercept_iret && random(2) == 0 {
            n.on_iret();
        }
    }
    assert!(handled > 5_000, "{handled}");
}
