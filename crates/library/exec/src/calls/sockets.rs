//! Sockets. Those of the Internet families, and of netlink and packets, which describe them, are the library's. Local
//! sockets are the host's: the name that would decide comes after the socket.

use super::descriptor::{first, installed};
use super::Outcome::{Done, Native};
use super::{error, inner, Call, Outcome};
use crate::state::State;
use crate::{descriptors, library};

pub(super) const CALLS: &[(i64, Call)] = &[
    (libc::SYS_socket, socket),
    (libc::SYS_accept, accept),
    (libc::SYS_accept4, accept4),
    (libc::SYS_connect, first),
    (libc::SYS_bind, first),
    (libc::SYS_listen, listen),
    (libc::SYS_shutdown, first),
    (libc::SYS_getsockname, first),
    (libc::SYS_getpeername, first),
    (libc::SYS_setsockopt, first),
    (libc::SYS_getsockopt, first),
    (libc::SYS_sendto, first),
    (libc::SYS_recvfrom, first),
    (libc::SYS_sendmsg, first),
    (libc::SYS_recvmsg, first),
    (libc::SYS_sendmmsg, first),
    (libc::SYS_recvmmsg, first),
    (libc::SYS_io_uring_setup, io_uring),
];

/// Families whose sockets are the library's.
const FAMILIES: [i32; 4] = [libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK, libc::AF_PACKET];

fn socket(state: &State, a: [u64; 6]) -> Outcome {
    let family = a[0] as i32;
    let routed = family != libc::AF_NETLINK || a[2] as i32 == libc::NETLINK_ROUTE;
    let ours =
        FAMILIES.contains(&family) || (family == libc::AF_UNIX && super::owned::local_sockets());
    if !ours || !routed || !library::present() {
        return Native;
    }
    let fd = inner(state, a);
    let close_on_exec = a[1] & libc::SOCK_CLOEXEC as u64 != 0;
    installed(state, fd, descriptors::install(fd, close_on_exec, 0))
}

fn listen(state: &State, a: [u64; 6]) -> Outcome {
    let outcome = first(state, a);
    if outcome == Done(0) {
        crate::beside::listens();
    }
    outcome
}

fn accept(state: &State, a: [u64; 6]) -> Outcome {
    accept4(state, [a[0], a[1], a[2], 0, 0, 0])
}

fn accept4(state: &State, a: [u64; 6]) -> Outcome {
    let Some(fd) = descriptors::get(a[0]) else { return Native };
    let fd = library::program_call(state, libc::SYS_accept4, [fd, a[1], a[2], a[3], 0, 0]);
    if fd < 0 {
        return Done(fd);
    }
    let close_on_exec = a[3] & libc::SOCK_CLOEXEC as u64 != 0;
    installed(state, fd, descriptors::install(fd, close_on_exec, 0))
}

/// The host's rings cannot reach the library's descriptors. Programs have another way.
fn io_uring(_: &State, _: [u64; 6]) -> Outcome {
    error(libc::ENOSYS)
}

/// Whether the call of the thread is one of a socket with a timeout: Linux does not start those again.
pub(super) fn has_timeout(state: &State) -> bool {
    let number = state.number.get() as i64;
    let sends = [
        libc::SYS_write,
        libc::SYS_writev,
        libc::SYS_sendto,
        libc::SYS_sendmsg,
        libc::SYS_sendmmsg,
        libc::SYS_connect,
    ];
    let option = if sends.contains(&number) { libc::SO_SNDTIMEO } else { libc::SO_RCVTIMEO };
    let Some(fd) = descriptors::get(state.registers.get().rdi) else { return false };
    let mut time = libc::timeval { tv_sec: 0, tv_usec: 0 };
    let mut bytes = size_of_val(&time) as u32;
    let (value, length) = (&raw mut time as u64, &raw mut bytes as u64);
    let arguments = [fd, libc::SOL_SOCKET as u64, option as u64, value, length];
    let found = library::own_call(state, libc::SYS_getsockopt, &arguments) == 0;
    found && (time.tv_sec, time.tv_usec) != (0, 0)
}
