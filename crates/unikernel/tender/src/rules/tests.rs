//! Rules for three families: peers 0 and 3, peer 1, and peers 2 and 4.

use super::*;
use crate::layout::PAGE;

struct Three;

impl Roster for Three {
    fn family(&self, peer: usize) -> Option<(u64, usize)> {
        [(0, 0), (0, 1), (0, 2), (0, 0), (0, 2)].get(peer).copied()
    }
}

/// Regions of which peer 0 created number 0 with two pages.
fn regions() -> Regions {
    let mut regions = Regions::default();
    let made = regions.create((0, 0), (Quota::NONE, 0), b"a", 2 * PAGE, None, false);
    assert_eq!(made, Ok(0));
    regions
}

#[test]
fn a_family_loses_a_right_together() {
    let mut regions = regions();
    assert_eq!(regions.grant(&Three, 0, 0, 2, ALL), Ok((0, vec![])));
    assert_eq!(regions.may_map(2, 0, ALL), Ok(0));
    regions.set_mapped(0, 2, ALL);
    assert_eq!(regions.inherit(2, 4, |_| false), [(0, ALL)]);
    assert_eq!(regions.grant(&Three, 0, 0, 2, REGION_READ), Ok((0, vec![2, 4])));
    assert_eq!(regions[0].granted[4], REGION_READ);
    // The owner's own family keeps its rights if one of its peers loses them.
    regions.set_mapped(0, 0, ALL);
    assert_eq!(regions.inherit(0, 3, |_| false), [(0, ALL)]);
    assert_eq!(regions.grant(&Three, 0, 0, 3, 0), Ok((0, vec![3])));
    assert_eq!((regions[0].granted[0], regions[0].granted[3]), (ALL, 0));
}

#[test]
fn only_owners_grant_and_only_to_peers() {
    let mut regions = regions();
    assert_eq!(regions.grant(&Three, 1, 0, 2, ALL), Err(ERROR_NAME));
    regions.grant(&Three, 0, 0, 1, REGION_READ).unwrap();
    assert_eq!(regions.grant(&Three, 1, 0, 2, ALL), Err(ERROR_RIGHT));
    for to in [5, MAX_PEERS as u64, u64::MAX] {
        assert_eq!(regions.grant(&Three, 0, 0, to, ALL), Err(ERROR_NAME), "{to}");
    }
    // The rights of a peer that is gone can be taken away.
    assert_eq!(regions.grant(&Three, 0, 0, 5, 0), Ok((0, vec![])));
    assert_eq!(regions.may_map(1, 0, ALL), Err(ERROR_RIGHT));
    assert_eq!(regions.may_map(1, 0, REGION_WRITE), Err(ERROR_ARGUMENT));
    assert_eq!(regions.may_map(1, 1, REGION_READ), Err(ERROR_NAME));
}

#[test]
fn regions_stay_when_their_payer_ends() {
    let mut regions = regions();
    assert_eq!((regions.paid_by(0), regions.unpaid_bytes()), ((1, 2 * PAGE), 0));
    let quota = Quota { peers: 1, bytes: 4 * PAGE, regions: 2 };
    let create = |regions: &mut Regions, used, name: &str| {
        regions.create((3, 0), (quota, used), name.as_bytes(), 2 * PAGE, None, false)
    };
    assert_eq!(create(&mut regions, 1, "b"), Err(ERROR_FULL));
    assert_eq!(create(&mut regions, 0, "b"), Ok(1));
    assert_eq!(create(&mut regions, 0, "c"), Err(ERROR_FULL));
    // What a spawned peer created stays private to its family.
    regions.remove(3, PEER_LEFT, false);
    assert_eq!((regions[1].owner, regions.paid_by(0).0), (Some(OWNER_GONE), 2));
    regions.remove(0, PEER_LEFT, true);
    assert_eq!((regions[0].owner, regions.unpaid_bytes()), (None, 4 * PAGE));
}
