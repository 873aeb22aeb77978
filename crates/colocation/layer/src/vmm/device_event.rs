//! Entries of an IOMMU's log. AMD IOMMU specification (48882), 2.5.

use core::fmt;

const PAGE_FAULT: u64 = 2;
const WRITE: u64 = 1 << 53;

/// An entry of the log, not all zeros.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceEvent(pub [u64; 2]);

impl DeviceEvent {
    /// The address of an access that the IOMMU stopped; `None` for other events.
    pub fn stopped_at(self) -> Option<u64> {
        (self.0[0] >> 60 == PAGE_FAULT).then_some(self.0[1])
    }
}

impl fmt::Display for DeviceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [what, address] = self.0;
        let (bus, slot, function) = (what >> 8 & 0xff, what >> 3 & 31, what & 7);
        match self.stopped_at() {
            Some(at) => {
                let access = if what & WRITE != 0 { "write" } else { "read" };
                write!(f, "{access} of device {bus:02x}:{slot:02x}.{function} to {at:#x}")
            }
            None => {
                let code = what >> 60;
                write!(f, "event {code} of the IOMMU, device {bus:02x}:{slot:02x}.{function}, {address:#x}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::string::ToString;

    #[test]
    fn page_faults_name_device_and_address() {
        // Code 2, RW, PR; domain 1; device 00:1f.2.
        let event = DeviceEvent([2 << 60 | 1 << 53 | 1 << 52 | 1 << 32 | 0xfa, 0x1f40_0008]);
        assert_eq!(event.stopped_at(), Some(0x1f40_0008));
        assert_eq!(event.to_string(), "write of device 00:1f.2 to 0x1f400008");
        assert_eq!(DeviceEvent([2 << 60 | 0x310, 8]).to_string(), "read of device 03:02.0 to 0x8");
    }

    #[test]
    fn other_events_are_shown_raw() {
        let event = DeviceEvent([1 << 60 | 0xffff, 0x1000]);
        assert_eq!(event.stopped_at(), None);
        assert_eq!(event.to_string(), "event 1 of the IOMMU, device ff:1f.7, 0x1000");
    }
}
