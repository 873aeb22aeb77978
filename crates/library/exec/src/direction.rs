//! Which thread gets a signal for the process. Linux gives it to the first thread unless that blocks it. But every
//! SIGSYS makes its thread look for pending signals, and it may take one before the first thread wakes up. Such a
//! signal is sent on to the first thread, which may be waiting for nothing else.

use crate::state::State;
use crate::{gate, host};
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The first thread's id. Read by assembler.
pub static FIRST: AtomicI32 = AtomicI32::new(0);
/// Its record.
static RECORD: AtomicPtr<State> = AtomicPtr::new(std::ptr::null_mut());

/// Notes the first thread, whose record lives as long as the process.
pub fn set_first(state: &State) {
    RECORD.store((&raw const *state).cast_mut(), Ordering::Release);
    FIRST.store(state.tid.get(), Ordering::Release);
}

/// The mask of the program's first thread while a signal is deferred there and all others wait for it.
fn deferring() -> Option<u64> {
    // SAFETY: the record lives. Only its thread writes the mask, before it sets the flag.
    unsafe {
        let state = RECORD.load(Ordering::Acquire).as_ref()?;
        let deferring = state.deferring.load(Ordering::Acquire) == 1;
        deferring.then(|| (&raw const (*state.deferred.get()).mask).read_volatile())
    }
}

/// linux/signal.h: sent by the kernel.
const SI_KERNEL: i32 = 0x80;

/// What the host never blocks.
pub const UNBLOCKABLE: u64 = host::bit(libc::SIGKILL) | host::bit(libc::SIGSTOP);
/// How often to look again if the first thread blocks all signals: it may be about to return from a deferral.
const TRIES: u32 = 10;

/// A thread must not queue a signal that looks as if the host's kernel had sent it. Such codes are queued below this
/// number, and handlers get them as they were.
pub const ENCODED: i32 = -0x4b59_0000;
/// Codes from 0 to this one are encoded.
pub const MOST: u32 = 0xffff;

/// The code with which any thread may queue a signal.
pub fn encode(code: i32) -> i32 {
    if (0..=MOST as i32).contains(&code) {
        ENCODED - code
    } else {
        code
    }
}

/// The code that [`encode`] got.
pub fn decode(code: i32) -> i32 {
    match ENCODED.wrapping_sub(code) {
        before if (0..=MOST as i32).contains(&before) => before,
        _ => code,
    }
}

/// Sends a signal that the calling thread is about to handle to the first thread, if it is that one's. TLS must not be
/// used: this runs in the program.
///
/// # Safety
///
/// A signal handler passes on what it got.
pub unsafe extern "C" fn send_on(signal: i32, info: *const libc::siginfo_t) -> bool {
    // SAFETY: the kernel passes a siginfo_t.
    let code = unsafe { (*info).si_code };
    // Other codes are those of signals for a thread, or may be.
    let for_process = [libc::SI_USER, SI_KERNEL].contains(&code)
        || (signal == libc::SIGCHLD && (libc::CLD_EXITED..=libc::CLD_CONTINUED).contains(&code));
    if !for_process {
        return false;
    }
    let first = FIRST.load(Ordering::Relaxed) as u64;
    let mut tries = 0;
    loop {
        match deferring().or_else(|| blocked(first)) {
            Some(mask) if mask & host::bit(signal) == 0 => break,
            Some(mask) if mask == !host::NEVER_BLOCKED & !UNBLOCKABLE && tries < TRIES => {
                tries += 1
            }
            _ => return false,
        }
        call(libc::SYS_sched_yield, [0; 4]);
    }
    let pid = call(libc::SYS_getpid, [0; 4]) as u64;
    // SAFETY: as above.
    let mut info = unsafe { *info };
    info.si_code = encode(code);
    call(libc::SYS_rt_tgsigqueueinfo, [pid, first, signal as u64, &raw const info as u64]) == 0
}

/// Sends a signal that a thread of ours got to the program's first thread.
///
/// # Safety
///
/// A signal handler passes on what it got.
pub unsafe fn pass_on(signal: i32, info: *const libc::siginfo_t) {
    let first = FIRST.load(Ordering::Relaxed);
    // SAFETY: the kernel passes a siginfo_t.
    let mut info = unsafe { *info };
    info.si_code = encode(info.si_code);
    if i64::from(first) != host::call(libc::SYS_gettid, &[]) {
        let pid = host::call(libc::SYS_getpid, &[]) as u64;
        let info = &raw const info as u64;
        host::call(libc::SYS_rt_tgsigqueueinfo, &[pid, first as u64, signal as u64, info]);
    }
}

/// A system call of the host, while the program runs.
fn call(number: i64, [a, b, c, d]: [u64; 4]) -> i64 {
    // SAFETY: callers pass addresses of their own memory.
    unsafe { gate::host_call(number, [a, b, c, d, 0, 0]) }
}

/// The signals that a thread of this process blocks.
fn blocked(tid: u64) -> Option<u64> {
    const BEFORE: &[u8] = b"/proc/self/task/";
    const BEHIND: &[u8] = b"/status\0";
    const FIELD: &[u8] = b"\nSigBlk:\t";
    let mut path = [0u8; 48];
    let mut end = path.len() - BEHIND.len();
    path[end..].copy_from_slice(BEHIND);
    let mut rest = tid;
    while rest > 0 {
        end -= 1;
        path[end] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    end -= BEFORE.len();
    path[end..end + BEFORE.len()].copy_from_slice(BEFORE);
    let flags = (libc::O_RDONLY | libc::O_CLOEXEC) as u64;
    let name = (&raw const path[end]) as u64;
    let file = call(libc::SYS_openat, [libc::AT_FDCWD as u64, name, flags, 0]);
    if file < 0 {
        return None;
    }
    let mut text = [0u8; 2048];
    let (address, bytes) = (text.as_mut_ptr() as u64, text.len() as u64);
    let bytes = call(libc::SYS_read, [file as u64, address, bytes, 0]);
    call(libc::SYS_close, [file as u64, 0, 0, 0]);
    let text = text.get(..usize::try_from(bytes).ok()?)?;
    let at = text.windows(FIELD.len()).position(|window| window == FIELD)? + FIELD.len();
    let digits = text.get(at..at + 16)?;
    digits
        .iter()
        .try_fold(0, |mask, &digit| Some(mask << 4 | u64::from(char::from(digit).to_digit(16)?)))
}
