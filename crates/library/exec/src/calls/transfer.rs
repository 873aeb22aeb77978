//! Transfers between two descriptors. If both are of one kernel, it makes them; otherwise the bytes go through our
//! memory.

use super::Outcome::{Done, Native};
use super::{error, Call, Outcome};
use crate::state::State;
use crate::{descriptors, host, library};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_sendfile, sendfile),
    (libc::SYS_splice, splice),
    (libc::SYS_copy_file_range, copy_file_range),
    (libc::SYS_tee, tee),
];

/// Bytes that one call moves at most. Callers expect fewer than they asked for.
const CHUNK: u64 = 64 << 10;

/// A descriptor of either kernel.
#[derive(Clone, Copy)]
enum End {
    Host(u64),
    Library(u64),
}

impl End {
    fn of(fd: u64) -> Self {
        descriptors::get(fd).map_or(Self::Host(fd), Self::Library)
    }

    fn call(self, state: &State, number: i64, a: [u64; 3]) -> i64 {
        match self {
            Self::Host(fd) => host::wait(number, &[fd, a[0], a[1], a[2]]),
            Self::Library(fd) => library::program_call(state, number, [fd, a[0], a[1], a[2], 0, 0]),
        }
    }

    /// Reads at an offset, or at the file's position.
    fn read(self, state: &State, buffer: &mut [u8], offset: Option<u64>) -> i64 {
        let (address, bytes) = (buffer.as_mut_ptr() as u64, buffer.len() as u64);
        match offset {
            Some(offset) => self.call(state, libc::SYS_pread64, [address, bytes, offset]),
            None => self.call(state, libc::SYS_read, [address, bytes, 0]),
        }
    }

    /// As [`call`](Self::call), but a signal does not end it: what was read must be written.
    fn insist(self, state: &State, number: i64, a: [u64; 3]) -> i64 {
        match self {
            Self::Host(fd) => host::call(number, &[fd, a[0], a[1], a[2]]),
            Self::Library(fd) => library::own_call(state, number, &[fd, a[0], a[1], a[2]]),
        }
    }

    fn write(self, state: &State, buffer: &[u8], offset: Option<u64>) -> i64 {
        let (address, bytes) = (buffer.as_ptr() as u64, buffer.len() as u64);
        match offset {
            Some(offset) => self.insist(state, libc::SYS_pwrite64, [address, bytes, offset]),
            None => self.insist(state, libc::SYS_write, [address, bytes, 0]),
        }
    }

    /// Waits until it can be written.
    fn wait_writable(self, state: &State) -> i64 {
        let fd = match self {
            Self::Host(fd) | Self::Library(fd) => fd,
        };
        let mut entry = libc::pollfd { fd: fd as i32, events: libc::POLLOUT, revents: 0 };
        let arguments = [&raw mut entry as u64, 1, u64::MAX];
        match self {
            Self::Host(_) => host::call(libc::SYS_poll, &arguments),
            Self::Library(_) => library::own_call(state, libc::SYS_poll, &arguments),
        }
    }
}

/// Moves at most `bytes`. Offsets are addresses of the program, or 0 for the files' positions.
fn copy(state: &State, from: (End, u64), to: (End, u64), bytes: u64) -> i64 {
    let offset = |address: u64| -> Result<Option<u64>, i64> {
        if address == 0 {
            Ok(None)
        } else {
            host::read_value(address).map(Some)
        }
    };
    let (start, target) = match (offset(from.1), offset(to.1)) {
        (Ok(start), Ok(target)) => (start, target),
        (Err(error), _) | (_, Err(error)) => return error,
    };
    let mut buffer = vec![0; bytes.min(CHUNK) as usize];
    let have = from.0.read(state, &mut buffer, start);
    if have <= 0 {
        return have;
    }
    let mut done = 0;
    while done < have {
        let place = target.map(|offset| offset + done as u64);
        let result = to.0.write(state, &buffer[done as usize..have as usize], place);
        match result {
            bytes if bytes > 0 => done += bytes,
            // What was read from the file's position and is not taken goes back, if it can; else it must be taken.
            error => {
                let back = (done - have) as u64;
                let seek = [back, libc::SEEK_CUR as u64, 0];
                if start.is_some() || from.0.insist(state, libc::SYS_lseek, seek) >= 0 {
                    if done == 0 {
                        return error;
                    }
                    break;
                }
                if error != -i64::from(libc::EAGAIN) && error != -i64::from(libc::EINTR) {
                    return if done > 0 { done } else { error };
                }
                to.0.wait_writable(state);
            }
        }
    }
    for (value, address) in [(start, from.1), (target, to.1)] {
        if let Some(value) = value {
            if let Err(error) = host::write_value(address, value + done as u64) {
                return error;
            }
        }
    }
    done
}

/// One kernel's, or through our memory.
fn transfer(
    state: &State,
    from: (u64, u64),
    to: (u64, u64),
    bytes: u64,
    both: impl FnOnce(u64, u64) -> [u64; 6],
) -> Outcome {
    match (End::of(from.0), End::of(to.0)) {
        (End::Host(_), End::Host(_)) => Native,
        (End::Library(from), End::Library(to)) => Done(super::inner(state, both(from, to))),
        (source, target) => Done(copy(state, (source, from.1), (target, to.1), bytes)),
    }
}

fn sendfile(state: &State, a: [u64; 6]) -> Outcome {
    transfer(state, (a[1], a[2]), (a[0], 0), a[3], |from, to| [to, from, a[2], a[3], 0, 0])
}

fn splice(state: &State, a: [u64; 6]) -> Outcome {
    let both = |from, to| [from, a[1], to, a[3], a[4], a[5]];
    transfer(state, (a[0], a[1]), (a[2], a[3]), a[4], both)
}

fn copy_file_range(state: &State, a: [u64; 6]) -> Outcome {
    let both = |from, to| [from, a[1], to, a[3], a[4], a[5]];
    transfer(state, (a[0], a[1]), (a[2], a[3]), a[4], both)
}

/// Both pipes must be of one kernel.
fn tee(state: &State, a: [u64; 6]) -> Outcome {
    match (descriptors::get(a[0]), descriptors::get(a[1])) {
        (None, None) => Native,
        (Some(from), Some(to)) => Done(super::inner(state, [from, to, a[2], a[3], 0, 0])),
        _ => error(libc::EINVAL),
    }
}
