//! Network namespaces of the host, and what they need.

use kyozon_devices::net::backend::Tap;
use liblinux::host::Host;
use liblinux::net::Network;
use std::io;

/// The first thing that this machine lacks for a TAP device in a namespace of its own.
pub fn missing() -> Option<&'static str> {
    // SAFETY: geteuid has no arguments and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        return Some("root");
    }
    (!std::path::Path::new("/dev/net/tun").exists()).then_some("/dev/net/tun")
}

/// Moves the calling thread, and those that it starts later, into a new network namespace. The namespace ends with the
/// last of them.
pub fn enter() -> io::Result<()> {
    // SAFETY: the call concerns this thread alone, and no memory.
    if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// A TAP device in the calling thread's namespace, up, with `addresses` for the host.
pub fn tap(name: &str, addresses: &[String]) -> Tap {
    let tap = Tap::open(name).expect("a TAP device");
    for address in addresses {
        Host.add_address(name, address).expect("an address");
    }
    Host.set_link(name, true).expect("up");
    tap
}
