//! The dispatcher: which system calls are handled here, and how. All others are the host's.

mod descriptor;
mod epoll;
mod files;
mod process;
mod signal;
mod sockets;
mod transfer;
mod wait;

use crate::gate::Way;
use crate::state::State;
use crate::{host, library, patch};
use std::sync::atomic::Ordering;

/// How a call ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The host executes it, in the program.
    Native,
    /// With this result.
    Done(i64),
    /// The thread leaves the program.
    Leave,
}

/// A handler of a system call.
pub type Call = fn(&State, [u64; 6]) -> Outcome;
type List = &'static [(i64, Call)];

/// Numbers from this on are the host's.
pub const NUMBERS: usize = 512;

/// The handlers by number. The gate compares with zero before it saves anything.
pub static TABLE: [Option<Call>; NUMBERS] = table(&[
    descriptor::CALLS,
    epoll::CALLS,
    files::CALLS,
    process::CALLS,
    signal::CALLS,
    sockets::CALLS,
    transfer::CALLS,
    wait::CALLS,
]);

const fn table(lists: &[List]) -> [Option<Call>; NUMBERS] {
    let mut table: [Option<Call>; NUMBERS] = [None; NUMBERS];
    let mut list = 0;
    while list < lists.len() {
        let mut entry = 0;
        while entry < lists[list].len() {
            let (number, call) = lists[list][entry];
            assert!(table[number as usize].is_none());
            table[number as usize] = Some(call);
            entry += 1;
        }
        list += 1;
    }
    table
}

/// Handles a system call of the program. Called by the gate.
pub extern "C" fn dispatch(state: &State) -> Way {
    let registers = state.registers.get();
    if state.trapped.swap(0, Ordering::Relaxed) == 1 {
        patch::rewrite(registers.rip - 2);
    }
    state.number.set(registers.rax);
    let call = TABLE.get(registers.rax as usize).copied().flatten();
    let outcome = call.map_or(Outcome::Native, |call| call(state, registers.arguments()));
    if outcome == Outcome::Done(-i64::from(libc::EPIPE)) {
        signal::broken_pipe(state, registers.arguments());
    }
    match outcome {
        // Not made, because a signal is pending: the gate delivers it and starts the call again.
        Outcome::Native | Outcome::Done(host::NOT_MADE) => Way::Native,
        Outcome::Leave => Way::Leave,
        Outcome::Done(result) => {
            state.change(|registers| registers.rax = result as u64);
            Way::Done
        }
    }
}

/// Calls that a signal with `SA_RESTART` does not end, signal(7).
const RESTARTED: [i64; 20] = [
    libc::SYS_read,
    libc::SYS_readv,
    libc::SYS_pread64,
    libc::SYS_write,
    libc::SYS_writev,
    libc::SYS_pwrite64,
    libc::SYS_ioctl,
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_flock,
    libc::SYS_fcntl,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_recvmmsg,
    libc::SYS_sendto,
    libc::SYS_sendmsg,
    libc::SYS_sendmmsg,
];

/// A signal is about to be delivered. The call starts again behind its handler if it has not been made (`native`), or
/// if it was interrupted and the handler has `SA_RESTART`.
pub fn interrupted(state: &State, native: bool, restart: bool) {
    let number = state.number.get();
    let registers = state.registers.get();
    let ended = registers.rax as i64 == -i64::from(libc::EINTR);
    let restarted = || RESTARTED.contains(&(number as i64)) && !sockets::has_timeout(state);
    if native || (ended && restart && restarted()) {
        state.change(|registers| {
            registers.rax = number;
            registers.rip -= 2;
        });
    }
}

/// The same call, of the library, with other arguments.
fn inner(state: &State, arguments: [u64; 6]) -> i64 {
    library::program_call(state, state.number.get() as i64, arguments)
}

fn error(number: i32) -> Outcome {
    Outcome::Done(-i64::from(number))
}
