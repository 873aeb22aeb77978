//! A network: its ports and the delivery of frames. It is a switch with fixed addresses, so it has no table of learned
//! addresses that a guest could overflow.

use super::heap::Heap;
use super::host::Host;
use super::queue::Queue;
use crate::error::{Context, Result};
use kyozon_devices::net::{Given, Mac, Net, ETHERNET};
use std::sync::{Arc, OnceLock};
use vmm_sys_util::eventfd::EventFd;

/// A guest's port, for delivering frames to it.
struct Port {
    net: Net,
    /// The guest's receive queue.
    queue: Arc<Queue>,
    heap: Heap,
    token: EventFd,
}

/// A network of guests, which may have a port on the host.
#[derive(Default)]
pub struct Network {
    ports: OnceLock<Vec<Port>>,
    host: Option<Host>,
}

/// The destination of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Destination {
    /// The guest's port with this number.
    Port(usize),
    /// The port on the host.
    Host,
    /// All ports.
    All,
}

/// The destination of a frame between ports with these addresses; `None` if the frame is too short.
fn destination(macs: impl Iterator<Item = Mac>, frame: &[u8]) -> Option<Destination> {
    if frame.len() < ETHERNET {
        return None;
    }
    // The lowest bit of the first byte marks a group address (IEEE 802, 8.2.2).
    if frame[0] & 1 != 0 {
        return Some(Destination::All);
    }
    let mut macs = macs.enumerate();
    let port = macs.find(|(_, mac)| frame.starts_with(mac));
    Some(port.map_or(Destination::Host, |(port, _)| Destination::Port(port)))
}

impl Network {
    /// A network without ports of guests.
    pub fn new(host: Option<Host>) -> Self {
        Self { ports: OnceLock::new(), host }
    }

    /// The port on the host.
    pub fn host(&self) -> Option<&Host> {
        self.host.as_ref()
    }

    /// Connects the guests' ports: device model, receive queue, heap and token of each. Must be called once.
    ///
    /// # Errors
    ///
    /// Linux refuses another eventfd.
    pub fn connect(&self, ports: Vec<(Net, Arc<Queue>, Heap, &EventFd)>) -> Result<()> {
        let port = |(net, queue, heap, token): (Net, Arc<Queue>, Heap, &EventFd)| {
            Ok(Port { net, queue, heap, token: token.try_clone().context("eventfd")? })
        };
        let ports = ports.into_iter().map(port).collect::<Result<Vec<_>>>()?;
        // The creator of the network calls this once, so the cell is empty.
        let _ = self.ports.set(ports);
        Ok(())
    }

    fn deliver(&self, port: &Port, frame: &[u8]) {
        let given = port.net.give(&mut port.queue.ring(), &port.heap, frame);
        if matches!(given, Given::Taken { wake: true } | Given::Lost { wake: true }) {
            let _ = port.token.write(1);
        }
    }

    /// Sends a frame that came from the guest's port `from`, or from the host if `None`.
    pub fn send(&self, from: Option<usize>, frame: &[u8]) {
        let ports = self.ports.get().map_or(&[][..], Vec::as_slice);
        let macs = ports.iter().map(|port| port.net.mac());
        let Some(to) = destination(macs, frame) else { return };
        for (number, port) in ports.iter().enumerate() {
            let selected = to == Destination::All || to == Destination::Port(number);
            if Some(number) != from && selected {
                self.deliver(port, frame);
            }
        }
        let for_host = matches!(to, Destination::All | Destination::Host);
        if let (Some(host), Some(_), true) = (&self.host, from, for_host) {
            host.send(frame);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_address_decides_the_destination() {
        let macs = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let to = |mac: [u8; 6]| destination(macs.into_iter(), &[&mac[..], &[0; 8]].concat());
        assert_eq!(to(macs[0]), Some(Destination::Port(0)));
        assert_eq!(to(macs[1]), Some(Destination::Port(1)));
        assert_eq!(to([2, 0, 0, 0, 0, 3]), Some(Destination::Host));
        assert_eq!(to([0xff; 6]), Some(Destination::All));
        assert_eq!(to([0x33, 0x33, 0, 0, 0, 1]), Some(Destination::All));
        assert_eq!(destination(macs.into_iter(), &[0xff; 13]), None);
    }
}
