//! Interfaces, addresses and routes of a kernel.
//!
//! ```no_run
//! use liblinux::net::Network;
//! # let thread: liblinux::Thread = todo!();
//! thread.set_link("eth0", true)?;
//! thread.add_address("eth0", "10.0.0.2/24")?;
//! thread.add_route("default", "10.0.0.1".parse()?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod error;
mod prefix;

pub use error::Error;
pub use prefix::Prefix;

use crate::calls::Calls;
use crate::netlink::{attributes, request, word, Message, Refused};
use crate::socket::family;
use std::net::IpAddr;

/// A result of a change to the network.
pub type Result<T> = std::result::Result<T, Error>;

/// An interface.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// Its number.
    pub index: u32,
    /// Its name.
    pub name: String,
    /// Flags, `IFF_` constants.
    pub flags: u32,
    /// Maximum bytes of a packet, without the Ethernet header.
    pub mtu: u32,
    /// Its hardware address. The loopback interface has zeros.
    pub mac: Vec<u8>,
}

impl Interface {
    /// Reads a struct ifinfomsg and its attributes.
    fn parse(payload: &[u8]) -> Self {
        let (index, flags) = (word(payload, 4), word(payload, 8));
        let mut interface = Self { index, name: String::new(), flags, mtu: 0, mac: Vec::new() };
        for (kind, value) in attributes(payload.get(INTERFACE..).unwrap_or(&[])) {
            match kind {
                libc::IFLA_IFNAME => {
                    let name = String::from_utf8_lossy(value);
                    interface.name = name.trim_end_matches('\0').to_owned();
                }
                libc::IFLA_MTU => interface.mtu = word(value, 0),
                libc::IFLA_ADDRESS => interface.mac = value.to_vec(),
                _ => {}
            }
        }
        interface
    }

    /// Whether it is up.
    pub fn is_up(&self) -> bool {
        self.flags & libc::IFF_UP as u32 != 0
    }

    /// Whether it has a link, too.
    pub fn is_running(&self) -> bool {
        self.flags & libc::IFF_RUNNING as u32 != 0
    }
}

/// Bytes of a struct ifinfomsg: family, type, index, flags, changed flags.
const INTERFACE: usize = 16;

fn interface(index: u32, flags: u32, change: u32) -> Vec<u8> {
    [[0; 4], index.to_ne_bytes(), flags.to_ne_bytes(), change.to_ne_bytes()].concat()
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(v4) => v4.octets().to_vec(),
        IpAddr::V6(v6) => v6.octets().to_vec(),
    }
}

/// A struct ifaddrmsg with its attributes.
fn address(kind: u16, flags: i32, index: u32, prefix: Prefix) -> Message {
    // Without it an IPv6 address is of no use until its neighbours had a second to object (RFC 4862).
    let own = if prefix.address.is_ipv6() { libc::IFA_F_NODAD as u8 } else { 0 };
    let head = [family(prefix.address) as u8, prefix.bits, own, libc::RT_SCOPE_UNIVERSE];
    let bytes = octets(prefix.address);
    Message::new(kind, flags, &[head, index.to_ne_bytes()].concat())
        .with(libc::IFA_LOCAL, &bytes)
        .with(libc::IFA_ADDRESS, &bytes)
}

/// Changes of a kernel's network.
pub trait Network: Calls {
    /// All interfaces.
    fn interfaces(&self) -> Result<Vec<Interface>> {
        let message = Message::new(libc::RTM_GETLINK, libc::NLM_F_DUMP, &interface(0, 0, 0));
        let answers = request(self, message);
        let answers = answers.map_err(|e| Error::refused("cannot list interfaces", e))?;
        Ok(answers.iter().map(|payload| Interface::parse(payload)).collect())
    }

    /// The interface with this name.
    fn interface(&self, name: &str) -> Result<Interface> {
        let all = self.interfaces()?;
        let found = all.iter().find(|interface| interface.name == name).cloned();
        found.ok_or_else(|| {
            let names: Vec<_> = all.iter().map(|interface| interface.name.as_str()).collect();
            Error::new(
                libc::ENODEV,
                format!("there is no interface {name}: the kernel has {}", names.join(", ")),
            )
        })
    }

    /// Sets an interface up or down.
    fn set_link(&self, name: &str, up: bool) -> Result<()> {
        let index = self.interface(name)?.index;
        let flag = libc::IFF_UP as u32;
        let fixed = interface(index, if up { flag } else { 0 }, flag);
        let what = || format!("cannot set {name} {}", if up { "up" } else { "down" });
        done(request(self, Message::new(libc::RTM_NEWLINK, 0, &fixed)), what)
    }

    /// Sets the maximum bytes of an interface's packets.
    fn set_mtu(&self, name: &str, mtu: u32) -> Result<()> {
        let index = self.interface(name)?.index;
        let message = Message::new(libc::RTM_NEWLINK, 0, &interface(index, 0, 0))
            .with(libc::IFLA_MTU, &mtu.to_ne_bytes());
        done(request(self, message), || format!("cannot set the MTU of {name} to {mtu}"))
    }

    /// Adds an address with its network: `10.0.0.2/24`, `fd00::2/64`. It can be used at once.
    fn add_address(&self, name: &str, prefix: &str) -> Result<()> {
        let index = self.interface(name)?.index;
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let message = address(libc::RTM_NEWADDR, flags, index, prefix.parse()?);
        done(request(self, message), || format!("cannot give {name} the address {prefix}"))
    }

    /// Removes an address.
    fn remove_address(&self, name: &str, prefix: &str) -> Result<()> {
        let index = self.interface(name)?.index;
        let message = address(libc::RTM_DELADDR, 0, index, prefix.parse()?);
        done(request(self, message), || format!("cannot remove the address {prefix} of {name}"))
    }

    /// Sends packets to `network`, `10.0.0.0/8` or `default`, by `gateway`.
    fn add_route(&self, network: &str, gateway: IpAddr) -> Result<()> {
        let prefix = match network {
            "default" => Prefix::all(gateway),
            network => network.parse()?,
        };
        // A struct rtmsg.
        let (protocol, scope) = (libc::RTPROT_STATIC, libc::RT_SCOPE_UNIVERSE);
        let (table, kind) = (libc::RT_TABLE_MAIN, libc::RTN_UNICAST);
        let family = family(gateway) as u8;
        let fixed = [family, prefix.bits, 0, 0, table, protocol, scope, kind, 0, 0, 0, 0];
        let flags = libc::NLM_F_CREATE | libc::NLM_F_EXCL;
        let mut message = Message::new(libc::RTM_NEWROUTE, flags, &fixed);
        if prefix.bits > 0 {
            message = message.with(libc::RTA_DST, &octets(prefix.address));
        }
        let message = message.with(libc::RTA_GATEWAY, &octets(gateway));
        done(request(self, message), || format!("cannot route {network} by {gateway}"))
    }
}

fn done(
    answers: std::result::Result<Vec<Vec<u8>>, Refused>,
    what: impl FnOnce() -> String,
) -> Result<()> {
    answers.map(drop).map_err(|refused| Error::refused(what(), refused))
}

impl<C: Calls + ?Sized> Network for C {}

#[cfg(test)]
mod tests;
