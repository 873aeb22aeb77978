//! The library's network.

use liblinux::Thread;

/// Brings the loopback interface up, with its addresses.
pub fn raise_loopback(thread: &Thread) -> std::io::Result<()> {
    let call = |number, arguments| {
        // SAFETY: addresses are those of structures below, which live meanwhile.
        match unsafe { thread.syscall(number, arguments) } {
            result if result < 0 => Err(std::io::Error::from_raw_os_error(-result as i32)),
            result => Ok(result as u64),
        }
    };
    let family = libc::AF_INET as u64;
    let socket = call(libc::SYS_socket, [family, libc::SOCK_DGRAM as u64, 0, 0, 0, 0])?;
    // SAFETY: a structure of integers.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().zip(b"lo") {
        *to = *from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_UP | libc::IFF_RUNNING) as i16;
    let address = &raw const request as u64;
    call(libc::SYS_ioctl, [socket, libc::SIOCSIFFLAGS, address, 0, 0, 0])?;
    call(libc::SYS_close, [socket, 0, 0, 0, 0, 0]).map(drop)
}
