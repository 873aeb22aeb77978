//! Parsers of values that several options share. Errors are one line, for clap.

use std::time::Duration;

/// The guests that `kyozon kill` ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The group.
    pub group: String,
    /// One of its peers; `None` for all.
    pub peer: Option<usize>,
}

pub(super) fn target(text: &str) -> Result<Target, String> {
    let (name, peer) = match text.split_once('/') {
        Some((group, peer)) => {
            let number = peer.parse().ok().filter(|peer| *peer < kyozon_abi::unikernel::MAX_PEERS);
            (
                group,
                Some(number.ok_or_else(|| format!("peer {peer:?} is not a number from 0 to 63"))?),
            )
        }
        None => (text, None),
    };
    Ok(Target { group: group(name)?, peer })
}

pub(super) fn group(text: &str) -> Result<String, String> {
    let name = kyozon_join::place::is_name(text).then(|| text.to_owned());
    name.ok_or_else(|| {
        "a name has 1 to 32 letters, digits, '-', '_' or '.', and does not start with '.'"
            .to_owned()
    })
}

pub(super) fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 =
        text.parse().map_err(|_| "not a number of seconds, such as 0.5".to_owned())?;
    let time = Duration::try_from_secs_f64(seconds).ok().filter(|time| !time.is_zero());
    time.ok_or_else(|| {
        "out of range: more than 0 seconds, and at most what a clock can count".to_owned()
    })
}

pub(super) fn address(text: &str) -> Option<u64> {
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

pub(super) fn size(text: &str) -> Result<u64, String> {
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match &text[split..] {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        unit => return Err(format!("unknown unit {unit:?}: use K, M or G")),
    };
    let number: u64 = text[..split].parse().map_err(|_| "not a number, such as 64M".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "too large: at most 64 bits".to_owned())
}

pub(super) fn port(text: &str) -> Result<u32, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| "not a port number, such as 0x2f8 (a PC's second serial line)".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn malformed_group_names_and_peers_are_rejected() {
        let all = Target { group: "a.b".into(), peer: None };
        assert_eq!(target("a.b"), Ok(all.clone()));
        assert_eq!(target("a.b/63"), Ok(Target { peer: Some(63), ..all }));
        for bad in ["", "/", "/1", "a/", "a/64", "a/-1", "a/b", "a/1/2", ".a", "a b"] {
            assert!(target(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn malformed_sizes_are_rejected() {
        assert_eq!((size("4096"), size("3G")), (Ok(4096), Ok(3 << 30)));
        for bad in ["", "M", "4m", "-1", "4 M", "99999999999G"] {
            assert!(size(bad).is_err(), "{bad:?}");
        }
    }
}
