//! The processor of a guest's process: a thread of the tender traces it.

use super::filter::DOOR_NUMBER;
use super::loader::{self, Step};
use crate::backend::{Cpu, Event, Kick, Reason, Registers, UNKNOWN_ACCESS};
use crate::error::{bail, ensure, Context, Result};
use kyozon_abi::unikernel::*;
use rustix::process::{pidfd_send_signal, Signal};
use std::io::Error;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

/// `si_code` of a signal for an exception without an address (linux/siginfo.h).
const SI_KERNEL: i32 = 0x80;
const SEGV_MAPERR: i32 = 1;
const FPE_INTDIV: i32 = 1;
const TRAP_TRACE: i32 = 2;
const BUS_ADRALN: i32 = 1;

/// The process of a guest. Dropping this value kills it.
pub struct ProcessCpu {
    pid: i32,
    /// Pipe that lets the child execute the loader once it is traced.
    go: Option<OwnedFd>,
    steps: Vec<Step>,
    /// The process is stopped for this thread.
    stopped: bool,
    /// The process has ended and was waited for.
    ended: bool,
    handle: Arc<Handle>,
}

/// A descriptor of the process (clone(2), `CLONE_PIDFD`) for sending signals. The filter of `confine` allows signals to
/// processes by descriptor only, and the tender gets such a descriptor only when it creates a process. With a core file
/// the filter allows files to be opened; then Landlock keeps the tender from descriptors of other processes.
struct Handle(OwnedFd);

impl Handle {
    /// Sends a signal. It has no effect if the process has ended.
    fn send(&self, signal: Signal) {
        let _ = pidfd_send_signal(&self.0, signal);
    }
}

struct KickHandle(Arc<Handle>);

impl Kick for KickHandle {
    fn kick(&self) {
        self.0.send(Signal::STOP);
    }

    fn ended(&self) -> Option<BorrowedFd<'_>> {
        // Readable when the process is a zombie (pidfd_open(2)), also while it is traced.
        Some(self.0 .0.as_fd())
    }
}

/// Makes a ptrace request that returns no data.
fn ptrace(request: libc::c_uint, pid: i32, address: usize, data: usize) -> Result<()> {
    // SAFETY: the requests of this module access the tracee, or write to `data` if that is a buffer of the caller.
    let done = unsafe { libc::ptrace(request, pid, address, data) };
    ensure!(Backend, done >= 0, "ptrace: {}", Error::last_os_error());
    Ok(())
}

impl ProcessCpu {
    pub(super) fn new(pid: i32, handle: OwnedFd, go: OwnedFd, steps: Vec<Step>) -> Self {
        let handle = Arc::new(Handle(handle));
        Self { pid, go: Some(go), steps, stopped: false, ended: false, handle }
    }

    /// Traces the process from this thread and lets it execute the loader.
    fn begin(&mut self, go: OwnedFd) -> Result<()> {
        let options = libc::PTRACE_O_EXITKILL | libc::PTRACE_O_TRACESECCOMP;
        ptrace(libc::PTRACE_SEIZE, self.pid, 0, options as usize)
            .context("cannot trace the guest's process (see /proc/sys/kernel/yama/ptrace_scope)")?;
        let written = rustix::io::write(&go, b"g");
        ensure!(Backend, written == Ok(1), "the guest's process ended before it was traced");
        Ok(())
    }

    /// Waits until the process stops or ends; returns the status of waitpid(2).
    fn wait(&mut self) -> Result<i32> {
        let mut status = 0;
        loop {
            // SAFETY: the call waits for a child of this process.
            let got = unsafe { libc::waitpid(self.pid, &mut status, libc::__WALL) };
            if got == self.pid {
                return Ok(status);
            }
            let error = Error::last_os_error();
            if error.raw_os_error() != Some(libc::EINTR) {
                return Err(error).context("waitpid");
            }
        }
    }

    fn signal_info(&self) -> Result<libc::siginfo_t> {
        // SAFETY: zeros are a value of this structure.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETSIGINFO, self.pid, 0, &raw mut info as usize)?;
        Ok(info)
    }

    /// Whether the guest itself caused the signal. Signals from other processes are dropped: a guest has no signals.
    fn is_exception(&self, signal: i32) -> Result<bool> {
        let kinds =
            [libc::SIGSEGV, libc::SIGBUS, libc::SIGILL, libc::SIGFPE, libc::SIGTRAP, libc::SIGSYS];
        // Codes of signals from the kernel are above 0 (linux/siginfo.h).
        Ok(kinds.contains(&signal) && self.signal_info()?.si_code > 0)
    }

    /// The processor's exception that caused a signal.
    fn exception(&self, signal: i32) -> Result<Reason> {
        let info = self.signal_info()?;
        let code = info.si_code;
        let exception = |vector| Reason::Exception { vector, error: 0, address: 0 };
        Ok(match (signal, code) {
            (libc::SIGSEGV, SI_KERNEL) => exception(VECTOR_PROTECTION),
            (libc::SIGSEGV | libc::SIGBUS, _) if (signal, code) != (libc::SIGBUS, BUS_ADRALN) => {
                // SAFETY: these signals have an address if the kernel sends them.
                let address = unsafe { info.si_addr() } as u64;
                let present = u64::from(code != SEGV_MAPERR);
                let access =
                    if address == self.user_registers()?.rip { 16 } else { UNKNOWN_ACCESS };
                Reason::Exception { vector: VECTOR_PAGE, error: present | access | 4, address }
            }
            (libc::SIGBUS, _) => exception(17),
            (libc::SIGILL, _) => exception(VECTOR_INVALID_OPCODE),
            (libc::SIGFPE, FPE_INTDIV) => exception(VECTOR_DIVIDE),
            (libc::SIGFPE, _) => exception(19),
            (libc::SIGTRAP, TRAP_TRACE) => exception(1),
            (libc::SIGTRAP, _) => exception(VECTOR_BREAKPOINT),
            (libc::SIGSYS, _) => Reason::SystemCall(self.user_registers()?.orig_rax),
            _ => Reason::Killed(signal),
        })
    }

    fn user_registers(&self) -> Result<libc::user_regs_struct> {
        // SAFETY: zeros are a value of this structure.
        let mut r: libc::user_regs_struct = unsafe { std::mem::zeroed() };
        ptrace(libc::PTRACE_GETREGS, self.pid, 0, &raw mut r as usize)?;
        Ok(r)
    }

    /// If the loader stopped at its `ud2`: an error text with the failed step and the cause.
    fn failed_step(&self) -> Result<Option<String>> {
        let r = self.user_registers()?;
        let first = loader::row_address(0);
        let inside = r.rip >= GUEST_SYSTEM_BASE && r.rip < first && r.rbx >= first;
        let step = self.steps.get(((r.rbx.wrapping_sub(first)) / 64) as usize);
        Ok(step.filter(|_| inside).map(|step| {
            let error = Error::from_raw_os_error((r.rax as i64).wrapping_neg() as i32);
            format!("the guest's process cannot {}: {error}", step.purpose)
        }))
    }
}

impl Cpu for ProcessCpu {
    fn enter(&mut self) -> Result<Event> {
        if let Some(go) = self.go.take() {
            self.begin(go)?;
        } else if std::mem::take(&mut self.stopped) {
            // This fails if the process was killed; `wait` then reports its end.
            let _ = ptrace(libc::PTRACE_CONT, self.pid, 0, 0);
        }
        let status = self.wait()?;
        if !libc::WIFSTOPPED(status) {
            self.ended = true;
            if libc::WIFEXITED(status) {
                bail!(
                    Backend,
                    "the guest's process could not execute its loader (status {})",
                    libc::WEXITSTATUS(status)
                );
            }
            return Ok(Event::Crash(Reason::Killed(libc::WTERMSIG(status))));
        }
        self.stopped = true;
        let signal = libc::WSTOPSIG(status);
        match status >> 16 {
            libc::PTRACE_EVENT_SECCOMP => {
                let number = self.user_registers()?.orig_rax;
                debug_assert_eq!(number, u64::from(DOOR_NUMBER));
                Ok(Event::Call)
            }
            0 if self.is_exception(signal)? => {
                if signal == libc::SIGILL {
                    if let Some(why) = self.failed_step()? {
                        bail!(Backend, "{why}");
                    }
                }
                Ok(Event::Crash(self.exception(signal)?))
            }
            _ => Ok(Event::Interrupted),
        }
    }

    fn registers(&mut self) -> Result<Registers> {
        if self.ended {
            return Ok(Registers::default());
        }
        let r = self.user_registers()?;
        Ok(Registers {
            rax: r.rax,
            rbx: r.rbx,
            rcx: r.rcx,
            rdx: r.rdx,
            rsi: r.rsi,
            rdi: r.rdi,
            rbp: r.rbp,
            rsp: r.rsp,
            r8: r.r8,
            r9: r.r9,
            r10: r.r10,
            r11: r.r11,
            r12: r.r12,
            r13: r.r13,
            r14: r.r14,
            r15: r.r15,
            rip: r.rip,
            rflags: r.eflags,
            fs_base: r.fs_base,
            gs_base: r.gs_base,
        })
    }

    fn child(&self) -> Option<i32> {
        Some(self.pid)
    }

    fn kick(&mut self) -> Box<dyn Kick> {
        Box::new(KickHandle(self.handle.clone()))
    }
}

impl Drop for ProcessCpu {
    fn drop(&mut self) {
        if !self.ended {
            self.handle.send(Signal::KILL);
            // SAFETY: the process is a child of this tender that was not waited for.
            unsafe { libc::waitpid(self.pid, std::ptr::null_mut(), libc::__WALL) };
        }
    }
}
