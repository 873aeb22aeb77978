//! The child process: started, watched, killed and reaped by a thread of its own.
//!
//! The thread that starts the child lives as long as the child, because the kernel sends the child's parent-death
//! signal when that thread ends.

use super::area::Area;
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child as Running, Command, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Exit status of a child that logged why it cannot start.
pub const REFUSED: i32 = 1;
/// Exit status of a child whose kernel panicked.
pub const PANICKED: i32 = 3;

/// Exit status of a child whose end cannot be known.
const UNKNOWN: i32 = 255;

/// Why a child was killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kill {
    /// It did not answer within this time.
    Silent(Duration),
    /// Its answer made no sense.
    Nonsense,
    /// It is no longer needed.
    Unused,
}

struct State {
    pid: libc::pid_t,
    kill: Option<Kill>,
    ended: Option<ExitStatus>,
}

struct Watched {
    state: Mutex<State>,
    ended: AtomicBool,
    /// Signalled when it has ended.
    end: Condvar,
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|e| e.into_inner())
    }
}

/// A child. Dropping it kills and reaps it.
pub struct Child {
    watched: Arc<Watched>,
    thread: Option<JoinHandle<()>>,
}

fn wait_for_end(pid: libc::pid_t) {
    let how = libc::WEXITED | libc::WNOWAIT;
    loop {
        // SAFETY: a structure of integers, which the call writes.
        let done = unsafe {
            let mut info: libc::siginfo_t = std::mem::zeroed();
            libc::waitid(libc::P_PID, pid as libc::id_t, &raw mut info, how)
        };
        if done == 0 || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return;
        }
    }
}

fn watch(mut child: Running, watched: &Watched, area: &Area) {
    wait_for_end(child.id() as libc::pid_t);
    {
        // Until it is reaped, its id belongs to nobody else. Whoever kills it holds the same lock.
        let mut state = watched.lock();
        // A program that ignores SIGCHLD does not learn how its children ended: then nothing is known to be good.
        state.ended = Some(child.wait().unwrap_or(ExitStatus::from_raw(UNKNOWN << 8)));
        watched.ended.store(true, Ordering::SeqCst);
    }
    watched.end.notify_all();
    for slot in 0..area.slots() {
        area.slot(slot).stir();
    }
}

impl Child {
    /// Starts `command`. When the child has ended, the clients of `area` are woken.
    pub fn start(mut command: Command, area: Arc<Area>) -> io::Result<Self> {
        let (send, started) = sync_channel(1);
        let thread = thread::Builder::new().name("linux-watch".into()).spawn(move || {
            let child = match command.spawn() {
                Ok(child) => child,
                Err(error) => {
                    // The receiver waits for it.
                    let _ = send.send(Err(error));
                    return;
                }
            };
            let state = State { pid: child.id() as libc::pid_t, kill: None, ended: None };
            let (state, ended, end) = (Mutex::new(state), AtomicBool::new(false), Condvar::new());
            let watched = Arc::new(Watched { state, ended, end });
            // The same.
            let _ = send.send(Ok(watched.clone()));
            drop(send);
            watch(child, &watched, &area);
        })?;
        let watched = started.recv().map_err(io::Error::other)??;
        Ok(Self { watched, thread: Some(thread) })
    }

    /// Whether it has not ended.
    pub fn alive(&self) -> bool {
        !self.watched.ended.load(Ordering::SeqCst)
    }

    /// Ends it. The first reason is kept.
    pub fn kill(&self, reason: Kill) {
        let mut state = self.watched.lock();
        if state.ended.is_none() {
            state.kill.get_or_insert(reason);
            // SAFETY: the child has not been reaped: the id is its own.
            unsafe { libc::kill(state.pid, libc::SIGKILL) };
        }
    }

    /// Waits until it has ended, or for `limit`. Returns whether it has.
    pub fn wait(&self, limit: Duration) -> bool {
        let running = |state: &mut State| state.ended.is_none();
        let state = self.watched.lock();
        // A thread that panicked with the lock has changed nothing that matters here.
        drop(self.watched.end.wait_timeout_while(state, limit, running));
        !self.alive()
    }

    /// Its end, if it has ended.
    pub fn end(&self) -> Option<(Option<Kill>, ExitStatus)> {
        let state = self.watched.lock();
        state.ended.map(|status| (state.kill, status))
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.watched.lock().pid
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.kill(Kill::Unused);
        if let Some(thread) = self.thread.take() {
            // It only waits for the child, which has been killed.
            let _ = thread.join();
        }
    }
}

/// What happened to a child, for messages.
pub fn explain(kill: Option<Kill>, status: ExitStatus, last_words: &str) -> String {
    let what = match (kill, status.code(), status.signal()) {
        (Some(Kill::Silent(limit)), ..) => {
            format!("Linux did not answer for {} s and was stopped", limit.as_secs_f32())
        }
        (Some(Kill::Nonsense), ..) => "Linux gave an impossible answer and was stopped".into(),
        (Some(Kill::Unused), ..) => "Linux was stopped".into(),
        (None, Some(PANICKED), _) => "Linux panicked".into(),
        (None, Some(REFUSED), _) => "Linux does not start".into(),
        (None, Some(code), _) => format!("Linux's process ended with status {code}"),
        (None, None, Some(libc::SIGSYS)) => {
            "Linux made a forbidden system call and was killed (SIGSYS)".into()
        }
        (None, None, signal) => {
            let number = signal.unwrap_or_default();
            format!("Linux's process was killed by signal {number}{}", name(number))
        }
    };
    if last_words.is_empty() {
        what
    } else {
        format!("{what}; its last words: {last_words}")
    }
}

fn name(signal: i32) -> &'static str {
    match signal {
        libc::SIGSEGV => " (SIGSEGV)",
        libc::SIGBUS => " (SIGBUS)",
        libc::SIGILL => " (SIGILL)",
        libc::SIGFPE => " (SIGFPE)",
        libc::SIGABRT => " (SIGABRT)",
        libc::SIGKILL => " (SIGKILL)",
        libc::SIGXFSZ => " (SIGXFSZ)",
        _ => "",
    }
}
