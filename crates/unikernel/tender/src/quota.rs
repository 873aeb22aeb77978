//! What one family may have, so that a guest takes no more of the host and of its group than its operator gave it.
//!
//! `--memory` bounds the family: the image, the heap and the first stack; the private memory of spawned peers and the
//! pages that the tender makes for them; and the regions that the family creates. The first three are laid out at the
//! start ([`Layout`](crate::layout::Layout)), and the others share what the layout left out: the *spare* memory.

use crate::elf::Image;
use crate::layout::{fixed_bytes, private_bytes, system, PAGE};
use crate::memory::POPULATED_TABLES;
use kyozon_abi::unikernel::MAX_REGIONS;

/// Bytes of the tender's pages for a spawned peer.
const OWN_PAGES: u64 = system::USED + POPULATED_TABLES;

/// Limits of one family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Maximum number of its peers at the same time.
    pub peers: usize,
    /// Maximum bytes of its spawned peers and of the regions that it created.
    pub bytes: u64,
    /// Maximum number of regions that it created.
    pub regions: usize,
}

impl Quota {
    /// No limits.
    pub const NONE: Self = Self { peers: usize::MAX, bytes: u64::MAX, regions: usize::MAX };

    /// The equal share of each of `families` in a group of at most `peers` peers, or `threads` peers. Each has `bytes`
    /// bytes of spare memory.
    pub fn new(families: usize, peers: usize, threads: Option<usize>, bytes: u64) -> Self {
        let families = families.max(1);
        Self {
            peers: threads.unwrap_or(peers.div_ceil(families)),
            bytes,
            regions: (MAX_REGIONS / families).max(1),
        }
    }
}

/// Bytes that a spawned peer costs beside memory that it shares, if its own block has `private` bytes.
pub fn peer_bytes(private: u64) -> u64 {
    private + OWN_PAGES
}

/// The part of a family's `memory` that is not laid out at the start: an eighth, or as much as `peers` peers need if
/// that is more, but at most half of what the image and the first stack leave.
pub fn spare(image: &Image, memory: u64, peers: usize) -> u64 {
    let spawned = (peers as u64).saturating_sub(1);
    let threads = spawned.saturating_mul(peer_bytes(private_bytes(image)));
    let left = memory.saturating_sub(fixed_bytes(image, memory) + PAGE);
    (memory / 8).max(threads).min(left / 2) & !(PAGE - 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::elf;
    use crate::layout::Layout;

    #[test]
    fn a_familys_parts_fit_into_its_memory() {
        let image = elf::parse(&elf::tests::image()).unwrap();
        for memory in [256 << 10, 1 << 20, 64 << 20, 3 << 30] {
            for peers in [1, 2, 32, 64] {
                let spare = spare(&image, memory, peers);
                let layout = Layout::new(&image, memory - spare).unwrap();
                assert!(layout.bytes + spare <= memory && layout.heap.bytes >= PAGE);
                let most = (memory / 8).max(63 * peer_bytes(private_bytes(&image)));
                assert!(spare <= most, "{memory} {peers}");
            }
        }
        let all = 63 * peer_bytes(private_bytes(&image));
        assert!(spare(&image, 64 << 20, 64) >= all, "64 MiB are enough for all threads");
        assert_eq!(spare(&image, 1000, 64), 0);
    }

    #[test]
    fn each_family_has_its_share() {
        assert_eq!(Quota::new(1, 64, None, 5), Quota { peers: 64, bytes: 5, regions: 16 });
        assert_eq!(Quota::new(3, 64, None, 5), Quota { peers: 22, bytes: 5, regions: 5 });
        assert_eq!(Quota::new(40, 64, Some(9), 5), Quota { peers: 9, bytes: 5, regions: 1 });
    }
}
