//! Waits for descriptors of both kernels at once, without polling.
//!
//! A thread of ours, one for each program thread that needs it, waits in the library on the program thread's behalf,
//! and writes to an eventfd of the host when something is ready. The program thread waits in the host for that and for
//! its host descriptors. Whatever ends its wait, it then writes to an eventfd of the library, so that ours stops.

use crate::{host, library};
use std::sync::mpsc::{channel, Receiver, Sender};

/// A program thread's waiting thread.
pub struct Bridge {
    jobs: Sender<Vec<libc::pollfd>>,
    stopped: Receiver<()>,
    /// Of the host: the library has something.
    ready: u64,
    /// Of the library: stop.
    stop: u64,
}

impl Bridge {
    /// Starts a thread.
    pub fn new() -> Option<Self> {
        let flags = libc::EFD_CLOEXEC as u64;
        let low = host::call(libc::SYS_eventfd2, &[0, flags]);
        let ready = crate::descriptors::move_up(low)?;
        let (jobs, work) = channel::<Vec<libc::pollfd>>();
        let (done, stopped) = channel();
        let (sender, stop) = channel();
        let mask = host::set_mask(!host::NEVER_BLOCKED);
        let thread = std::thread::Builder::new().name("exec-bridge".into()).spawn(move || {
            let Ok(thread) = library::attach() else { return };
            // SAFETY: eventfd2 takes no address.
            let stop = unsafe { thread.syscall(libc::SYS_eventfd2, [0; 6]) };
            if stop < 0 || sender.send(stop as u64).is_err() {
                return;
            }
            for mut entries in work {
                entries.push(libc::pollfd { fd: stop as i32, events: libc::POLLIN, revents: 0 });
                let arguments = [entries.as_mut_ptr() as u64, entries.len() as u64, 0, 0, 8, 0];
                // SAFETY: the entries live through the call.
                unsafe { thread.syscall(libc::SYS_ppoll, arguments) };
                let one = 1u64;
                host::call(libc::SYS_write, &[ready, &raw const one as u64, 8]);
                if done.send(()).is_err() {
                    break;
                }
            }
            // SAFETY: close takes no address.
            unsafe { thread.syscall(libc::SYS_close, [stop as u64, 0, 0, 0, 0, 0]) };
            crate::descriptors::close_private(ready);
        });
        host::set_mask(mask);
        thread.ok()?;
        Some(Self { jobs, stopped, ready, stop: stop.recv().ok()? })
    }

    /// Waits until `hosts` or `inner`, the library's, have something, until `timeout`, or until a signal. Returns the
    /// host's result.
    pub fn wait(
        &self,
        state: &crate::state::State,
        mut hosts: Vec<libc::pollfd>,
        inner: Vec<libc::pollfd>,
        timeout: Option<libc::timespec>,
    ) -> i64 {
        if self.jobs.send(inner).is_err() {
            return -i64::from(libc::ENOMEM);
        }
        hosts.push(libc::pollfd { fd: self.ready as i32, events: libc::POLLIN, revents: 0 });
        let time = timeout.as_ref().map_or(0, |time| &raw const *time as u64);
        let result = host::wait(
            libc::SYS_ppoll,
            &[hosts.as_mut_ptr() as u64, hosts.len() as u64, time, 0, 8],
        );
        let mut value = 1u64;
        let one = &raw mut value as u64;
        library::own_call(state, libc::SYS_write, &[self.stop, one, 8]);
        let _ = self.stopped.recv();
        library::own_call(state, libc::SYS_read, &[self.stop, one, 8]);
        host::call(libc::SYS_read, &[self.ready, one, 8]);
        result
    }
}
