//! Random sequences of calls.

use super::*;

/// For any sequence of calls the invariants hold, and a thread runs or waits for a tick.
#[test]
fn random_calls_keep_the_invariants() {
    for seed in 1..30u64 {
        let mut s = System::new(3);
        let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state % below
        };
        for n in 1..3000 {
            if s.fake.ticks.is_empty() {
                s.tick(n);
            }
            let mut value = || match random(8) {
                0 => TASK_SHARE_BASE + random(3) * 4096,
                1 => TASK_HEAP_BASE + random(4) * 4096,
                2 => u64::MAX >> random(64),
                _ => random(12),
            };
            let words = [value(), value(), value(), value(), value(), value()];
            let (rdi, rcx, kind) = (value(), value() | value() & 7, random(40));
            // A system in which all threads wait for messages stands still correctly; so the driver keeps waiting for
            // ticks.
            let driver = s.kernel.current_task() == 0;
            let number = match kind {
                EXIT | EXIT_THREAD | STOP if driver || random(30) != 0 => NO_OPERATION,
                RECEIVE | CALL | WAIT | REPLY_RECEIVE if s.runs() == DRIVER => WAIT_TICK,
                other => other,
            };
            if number > 35 {
                let vector = if driver { 2 } else { [2, 14][random(2) as usize] };
                s.interrupt(vector);
            } else if driver && number == GIVE_RIGHTS {
                s.call(GIVE_RIGHTS, 1 + rdi % 2, words);
            } else {
                s.call_with(number, rdi, rcx, words);
            }
        }
    }
}
