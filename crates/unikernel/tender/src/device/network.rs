//! Ports, and where frames go: a switch whose addresses are known, so that there is nothing to learn and nothing that
//! a guest could make it forget.

use super::heap::Heap;
use super::host::Host;
use super::line::Line;
use crate::error::{Context, Result};
use kyozon_devices::net::{Given, Mac, Net, ETHERNET};
use std::sync::{Arc, OnceLock};
use vmm_sys_util::eventfd::EventFd;

/// A guest's port, as the others see it.
struct Port {
    net: Net,
    /// The queue of frames for the guest.
    line: Arc<Line>,
    heap: Heap,
    token: EventFd,
}

/// A network of guests, and of the host where it has a port there.
#[derive(Default)]
pub struct Network {
    ports: OnceLock<Vec<Port>>,
    host: Option<Host>,
}

/// Where a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    /// To one port.
    To(usize),
    /// To stations behind the host.
    Host,
    /// To all.
    All,
}

fn way(macs: impl Iterator<Item = Mac>, frame: &[u8]) -> Option<Way> {
    if frame.len() < ETHERNET {
        return None;
    }
    // The lowest bit of an address says that it is many stations' (IEEE 802, 8.2.2).
    if frame[0] & 1 != 0 {
        return Some(Way::All);
    }
    let mut macs = macs.enumerate();
    Some(macs.find(|(_, mac)| frame.starts_with(mac)).map_or(Way::Host, |(port, _)| Way::To(port)))
}

impl Network {
    /// A network without ports of guests.
    pub fn new(host: Option<Host>) -> Self {
        Self { ports: OnceLock::new(), host }
    }

    /// The host's port.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Gives it its ports, once.
    pub fn connect(&self, ports: Vec<(Net, Arc<Line>, Heap, &EventFd)>) -> Result<()> {
        let port = |(net, line, heap, token): (Net, Arc<Line>, Heap, &EventFd)| {
            Ok(Port { net, line, heap, token: token.try_clone().context("eventfd")? })
        };
        let ports = ports.into_iter().map(port).collect::<Result<Vec<_>>>()?;
        // Called once, by the maker of the network.
        let _ = self.ports.set(ports);
        Ok(())
    }

    fn give(&self, port: &Port, frame: &[u8]) {
        let given = port.net.give(&mut port.line.ring(), &port.heap, frame);
        if matches!(given, Given::Taken { wake: true } | Given::Lost { wake: true }) {
            let _ = port.token.write(1);
        }
    }

    /// Sends a frame that came from a guest's port, or from the host.
    pub fn send(&self, from: Option<usize>, frame: &[u8]) {
        let ports = self.ports.get().map_or(&[][..], Vec::as_slice);
        let Some(way) = way(ports.iter().map(|port| port.net.mac()), frame) else { return };
        for (number, port) in ports.iter().enumerate() {
            if Some(number) != from && (way == Way::All || way == Way::To(number)) {
                self.give(port, frame);
            }
        }
        if let (Some(host), Some(_), Way::All | Way::Host) = (&self.host, from, way) {
            host.send(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_go_to_those_whom_they_are_for() {
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let to = |mac: [u8; 6]| way(macs.into_iter(), &[&mac[..], &[0; 8]].concat());
        assert_eq!(to(macs[0]), Some(Way::To(0)));
        assert_eq!(to(macs[1]), Some(Way::To(1)));
        assert_eq!(to([2, 0, 0, 0, 0, 3]), Some(Way::Host));
        assert_eq!(to([0xff; 6]), Some(Way::All));
        assert_eq!(to([0x33, 0x33, 0, 0, 0, 1]), Some(Way::All));
        assert_eq!(way(macs.into_iter(), &[0xff; 13]), None);
    }
}
