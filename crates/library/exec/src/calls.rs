//! The dispatcher: which system calls are handled here, and how. All others are the host's.

mod credentials;
mod descriptor;
mod epoll;
mod files;
mod limits;
mod owned;
mod process;
mod signal;
mod sockets;
mod transfer;
mod wait;

use crate::gate::Way;
use crate::state::State;
use crate::{descriptors, host, library, patch, reserve};
use std::sync::atomic::{AtomicU8, Ordering};

pub use limits::limit_files;
pub use owned::Owned;

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

/// The handlers by number.
static TABLE: [Option<Call>; NUMBERS] = table(&[
    credentials::CALLS,
    descriptor::CALLS,
    epoll::CALLS,
    files::CALLS,
    limits::CALLS,
    owned::CALLS,
    process::CALLS,
    crate::seam::CALLS,
    signal::CALLS,
    sockets::CALLS,
    transfer::CALLS,
    wait::CALLS,
]);

/// How the gate treats a number: [`HOST`], [`DISPATCHED`], [`FIRST`] or [`PLAIN`].
pub static ROUTES: [AtomicU8; NUMBERS] = [const { AtomicU8::new(HOST) }; NUMBERS];
/// The host's.
pub const HOST: u8 = 0;
/// Goes to the dispatcher.
pub const DISPATCHED: u8 = 1;
/// Directly to the library if the first argument is one of its descriptors, otherwise to the host.
pub const FIRST: u8 = 2;
/// Directly to the library.
pub const PLAIN: u8 = 3;

/// Sets the routes, before any program runs.
pub fn route(owned: Owned) {
    for (number, call) in TABLE.iter().enumerate() {
        let Some(call) = call else { continue };
        let first = std::ptr::fn_addr_eq(*call, descriptor::first as Call);
        ROUTES[number].store(if first { FIRST } else { DISPATCHED }, Ordering::Relaxed);
    }
    owned::route(owned);
}

/// A call in which nothing but a descriptor's number changes. FS base and TLS are the program's. Called by the gate.
pub extern "C" fn direct(state: &State, route: u32) -> Way {
    // SAFETY: only this thread uses the record, and nothing changes it meanwhile.
    let registers = unsafe { &*state.registers.as_ptr() };
    let number = registers.rax;
    state.number.set(number);
    let mut arguments = registers.arguments();
    if route == u32::from(FIRST) {
        match descriptors::get(arguments[0]) {
            Some(fd) => arguments[0] = fd,
            None if reserve::RESERVED.load(Ordering::Relaxed) != 0 => return Way::Dispatched,
            None => return Way::Native,
        }
    }
    match library::direct_call(state, number as i64, arguments) {
        None => Way::Dispatched,
        Some(host::NOT_MADE) => Way::Native,
        Some(result) => {
            if result < 0 {
                signal::failed(state, registers.arguments(), result);
            }
            // SAFETY: as above; the reference is not used any more.
            unsafe { (*state.registers.as_ptr()).rax = result as u64 };
            Way::Done
        }
    }
}

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
    if !KEEPS_RESERVE.contains(&(registers.rax as i64)) {
        reserve::release();
    }
    let outcome = call.map_or(Outcome::Native, |call| call(state, registers.arguments()));
    if outcome == Outcome::Native {
        reserve::release();
    }
    if let Outcome::Done(result) = outcome {
        if result < 0 {
            signal::failed(state, registers.arguments(), result);
        }
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

/// Calls that leave the descriptors of the host alone if they are the library's.
const KEEPS_RESERVE: [i64; 9] = [
    libc::SYS_open,
    libc::SYS_openat,
    libc::SYS_close,
    libc::SYS_stat,
    libc::SYS_lstat,
    libc::SYS_newfstatat,
    libc::SYS_statx,
    libc::SYS_access,
    libc::SYS_unlink,
];

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
    if crate::seam::interrupted(state, restart, restarted) {
        return;
    }
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
