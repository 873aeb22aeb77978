//! An address with the length of its network's prefix.

use super::Error;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// An address with the length of its network's prefix: `10.0.0.2/24`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prefix {
    /// The address.
    pub address: IpAddr,
    /// Number of bits that all addresses of the network share.
    pub bits: u8,
}

impl Prefix {
    /// All addresses of the family of `address`.
    pub fn all(address: IpAddr) -> Self {
        let address = match address {
            IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        Self { address, bits: 0 }
    }
}

impl FromStr for Prefix {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let invalid = || {
            let text = format!("{text:?} is no address with a prefix: write 10.0.0.2/24");
            Error::new(libc::EINVAL, text)
        };
        let (address, bits) = text.split_once('/').ok_or_else(invalid)?;
        let address: IpAddr = address.parse().map_err(|_| invalid())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.parse().ok().filter(|bits| *bits <= most).ok_or_else(invalid)?;
        Ok(Self { address, bits })
    }
}
