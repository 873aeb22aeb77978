//! A filter that proves that every system call goes through the seam: one from any other address kills the process.

use crate::machine;
use libc::{sock_filter, sock_fprog};
use std::io;

/// Offset of the low half of `instruction_pointer` in `struct seccomp_data` (linux/seccomp.h). It is the address after
/// the system-call instruction.
const POINTER: u32 = 8;
/// Instructions of classic BPF (linux/bpf_common.h).
const LOAD: u16 = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
const IF_EQUAL: u16 = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
const IF_ABOVE: u16 = (libc::BPF_JMP | libc::BPF_JGT | libc::BPF_K) as u16;
const RETURN: u16 = (libc::BPF_RET | libc::BPF_K) as u16;

/// Admits system calls of [`machine::functions`] only, for ever.
pub fn install() -> Result<(), String> {
    let (begin, end) = machine::functions();
    let row = |code, k, jt, jf| sock_filter { code, jt, jf, k };
    // The functions share a page, so the high halves of their addresses are equal.
    let mut program = [
        row(LOAD, POINTER + 4, 0, 0),
        row(IF_EQUAL, (begin >> 32) as u32, 0, 4),
        row(LOAD, POINTER, 0, 0),
        row(IF_ABOVE, begin as u32, 0, 2),
        row(IF_ABOVE, end as u32, 1, 0),
        row(RETURN, libc::SECCOMP_RET_ALLOW, 0, 0),
        row(RETURN, libc::SECCOMP_RET_KILL_PROCESS, 0, 0),
    ];
    let program = sock_fprog { len: program.len() as u16, filter: program.as_mut_ptr() };
    // SAFETY: The kernel copies the program. This process has one thread, whose next system call is the program's.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::syscall(libc::SYS_seccomp, libc::SECCOMP_SET_MODE_FILTER, 0, &program) == 0
    };
    let problem = || format!("cannot install a filter: {}", io::Error::last_os_error());
    done.then_some(()).ok_or_else(problem)
}
