//! Calls with invalid arguments or without rights.

use crate::check::Checks;
use crate::peer;
use kyozon_abi::layer::*;
use kyozon_abi::task::*;
use kyozon_task::ipc::Endpoint;
use kyozon_task::{linux, report, task, Error, StartInfo};

/// Addresses that no call may use for a structure.
fn bad_addresses(info: &StartInfo) -> [u64; 18] {
    [
        0,
        8,
        COKERNEL_BASE,
        MEMORY_BASE,
        LAYER_BASE,
        WINDOW_BASE,
        TASK_WINDOW_BASE,
        TASK_WINDOW_BASE + 0x10_0000,
        TASK_STACK_TOP,
        TASK_STACK_TOP - 16,
        TASK_STACK_TOP - TASK_STACK_BYTES - 8,
        TASK_STACK_TOP - 2001,
        info.heap + info.heap_bytes - 16,
        TASK_SHARE_BASE,
        1 << 47,
        u64::MAX - 7,
        u64::MAX,
        0xffff_8000_0000_0000,
    ]
}

/// Makes all invalid calls, with tasks 1 and 2 as peers.
pub fn run(info: &'static StartInfo) {
    let mut c = Checks::new("hostile");
    let call = |number, a, b, d| {
        // SAFETY: these calls are refused, or write to memory on this stack only.
        unsafe { task::any_call(number, a, 0, [b, d, 0, 0, 0, 0]) }
    };
    for address in bad_addresses(info) {
        c.same("report", call(REPORT, address, 0, 0), E_ADDRESS);
        c.same("publish", call(PUBLISH, 0, address, 0), E_ADDRESS);
        c.same("repair", call(REPAIR, address, 0, 0), E_ADDRESS);
        let alone = info.mode == MODE_ALONE;
        c.same(
            "window",
            call(WINDOW, address, 0, 0),
            if alone { E_UNAVAILABLE } else { E_ADDRESS },
        );
        let text = Report { kind: 1, code: 0, text: address, bytes: 64 };
        // The top of the stack is readable as bytes, which need no alignment.
        if address != TASK_STACK_TOP - 2001 {
            c.same("text", call(REPORT, (&raw const text) as u64, 0, 0), E_ADDRESS);
        }
        c.same("accept", call(ACCEPT, address | 2, 0, 0), E_ADDRESS);
        if address != TASK_SHARE_BASE {
            c.same("unmap", call(UNMAP, address, 0, 0), E_ADDRESS);
        }
    }
    if info.mode != MODE_ALONE {
        for read_only in [TASK_INFO, TASK_BASE] {
            c.same("window", call(WINDOW, read_only, 0, 0), E_ADDRESS);
        }
    }
    for bytes in [257, 1 << 32, u64::MAX] {
        let long = Report { kind: 1, code: 0, text: info.heap, bytes };
        c.same("long", call(REPORT, (&raw const long) as u64, 0, 0), E_ARGUMENT);
    }
    for handle in [TASK_HANDLES - 1, TASK_HANDLES, 255, 256, 1 << 32, u64::MAX] {
        for number in [CALL, RECEIVE, REPLY_RECEIVE, SIGNAL, WAIT, POLL, MINT, CLOSE] {
            c.same("handle", call(number, handle, 1, 1), E_HANDLE);
        }
    }
    for number in [0, 7, 11, 25, 32, 33, 255, 1 << 32 | 1, u64::MAX] {
        c.same("number", call(number, 0, 0, 0), E_CALL);
    }
    for number in [STOP, GIVE_RIGHTS] {
        for task in [info.tasks.into(), 6, 255, 1 << 32, u64::MAX] {
            c.same("task", call(number, task, 0, 0), E_ARGUMENT);
        }
    }
    c.same("rights", call(GIVE_RIGHTS, 1, u64::MAX, 0), E_RIGHT);
    c.same("thread", call(THREAD, 0, 0, u64::MAX), E_ARGUMENT);
    transfers(&mut c);
    without_rights(&mut c);
    fuzzing(&mut c);
    c.end();
}

/// Invalid transfers.
fn transfers(c: &mut Checks) {
    let call = |rcx| {
        // SAFETY: none of the requested transfers affects this task's memory.
        unsafe { task::any_call(CALL, HANDLE_TASKS + 1, rcx, [0; 6]) }
    };
    for (rcx, answer) in [
        (4, E_ARGUMENT),
        (TRANSFER_PAGE, E_ADDRESS),
        (COKERNEL_BASE | TRANSFER_PAGE, E_ADDRESS),
        (MEMORY_BASE | TRANSFER_GRANT, E_ADDRESS),
        (TASK_WINDOW_BASE | TRANSFER_PAGE, E_ADDRESS),
        (TASK_INFO | TRANSFER_PAGE | TRANSFER_WRITE, E_ADDRESS),
        (!0xfff | TRANSFER_PAGE, E_ADDRESS),
        (31 << 12 | TRANSFER_HANDLE, E_HANDLE),
        (0xf_ffff << 12 | TRANSFER_HANDLE, E_HANDLE),
    ] {
        c.same("transfer", call(rcx), answer);
    }
}

/// Calls of a task without rights.
fn without_rights(c: &mut Checks) {
    let ask = |number, a, b, d| {
        let answer = Endpoint::of_task(1).call([peer::ANY, number, a, b, d, 0]);
        answer.map_or(i64::MAX, |m| m.words[0] as i64)
    };
    for number in [WAIT_TICK, REPORT, PUBLISH, REPAIR, WINDOW, RESET, STOP, GIVE_RIGHTS] {
        c.same("right", ask(number, 0, 0, 0), E_RIGHT);
    }
    c.same("right", ask(FAULT_HANDLER, 0, HANDLE_OWN, 0), E_RIGHT);
    c.same("own", ask(FAULT_HANDLER, 1, NO_HANDLE, 0), 0);
    c.same("priority", ask(PRIORITY, 16, 0, 0), E_ARGUMENT);
    c.same("reply", ask(MINT, HANDLE_TASKS, 0, 0), E_RIGHT);
    c.same("task 2", ask(SIGNAL, HANDLE_TASKS + 2, 1, 0), E_HANDLE);
    c.same("given", task::give_rights(1, RIGHT_LINUX).is_ok(), true);
    c.same("given", ask(REPORT, 0, 0, 0), E_ADDRESS);
    c.same("taken", task::give_rights(1, 0).is_ok(), true);
}

/// Two tasks make random calls; the kernel and this task are not affected.
fn fuzzing(c: &mut Checks) {
    let answers = [1, 2].map(|peer| {
        let words = [peer::FUZZ, 0x9e37_79b9 * u64::from(peer), 0, 0, 0, 0];
        Endpoint::of_task(peer).call(words).map(|m| m.words[0])
    });
    // The calls may end their task before it has answered.
    let good = |answer| matches!(answer, Ok(3) | Err(Error::Gone));
    c.same("fuzz", answers.into_iter().all(good) && answers.contains(&Ok(3)), true);
    // Their calls of this task are answered meanwhile; they must not be able to stall it.
    let mut missed = 0;
    for _ in 0..200 {
        missed += linux::wait_tick().map_or(1000, |tick| tick.missed);
    }
    let _ = report!("test fuzz: missed {missed}");
    c.same("fuzz", missed < 20, true);
    for peer in [1, 2] {
        // The task may have ended already.
        let _ = task::stop(peer);
        c.same("stopped", Endpoint::of_task(peer).call([0; 6]).is_err(), true);
    }
}

/// Makes random system calls and never ends.
pub extern "C" fn fuzz(seed: u64) -> ! {
    let mut state = seed | 1;
    let mut random = move || {
        // Marsaglia's xorshift64.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut value = move || match random() % 12 {
        0 => random(),
        1 => random() % 40,
        2 => TASK_SHARE_BASE + ((random() % 520) << 12),
        3 => TASK_BASE + random() % 0x8000,
        4 => TASK_STACK_TOP - random() % 0x10000,
        5 => TASK_HEAP_BASE + random() % 0x1000,
        6 => u64::MAX - random() % 16,
        7 => 1 << (random() % 64),
        8 => TASK_INFO,
        9 => ((random() % 8) << 12) | (random() % 64),
        10 => MEMORY_BASE + random() % 0x10_0000,
        _ => 0,
    };
    loop {
        let number = value() % (RESET + 1);
        // A thread that ends or waits for ever makes no more calls.
        let ends = [EXIT, EXIT_THREAD, RECEIVE, REPLY_RECEIVE, WAIT, CALL].contains(&number);
        if ends && (number == EXIT || value() % 5000 != 1) {
            continue;
        }
        // A thread with a random entry would end its task at once.
        let rdi = match value() % 2 {
            _ if number == THREAD => fuzz as *const () as u64,
            0 => value() % 10,
            _ => value(),
        };
        let words = [value(), value(), value(), value(), value(), value()];
        // SAFETY: this task lacks the rights for calls that write to its memory. It may lose pages that it unmaps and
        // grants, and its threads may do anything: the task is expendable.
        unsafe { task::any_call(number, rdi, value(), words) };
    }
}
