//! The rules of regions: which peer sees, maps, grants and pays for a region, and what the headers show.
//!
//! They are the same whether this run has the regions ([`LocalRegions`](crate::group::LocalRegions)) or the group's
//! keeper, which both call them under their own lock. A rule changes rights and headers; the caller changes mappings.

use crate::error::Result;
use crate::quota::Quota;
use crate::region::{self, Region, ALL, OWNER_GONE};
use kyozon_abi::unikernel::*;
use std::ops::{Deref, Index, IndexMut};

/// The peers of a group, as the rules need them.
pub trait Roster {
    /// What the peers of one family have in common, and no peer of another family; `None` if there is no such peer.
    fn family(&self, peer: usize) -> Option<(u64, usize)>;
}

/// The regions of a group, by number.
#[derive(Debug, Default)]
pub struct Regions(Vec<Region>);

impl Deref for Regions {
    type Target = [Region];
    fn deref(&self) -> &[Region] {
        &self.0
    }
}

impl Index<usize> for Regions {
    type Output = Region;
    fn index(&self, number: usize) -> &Region {
        &self.0[number]
    }
}

impl IndexMut<usize> for Regions {
    fn index_mut(&mut self, number: usize) -> &mut Region {
        &mut self.0[number]
    }
}

impl Regions {
    /// Adds a region of the group that an operator requests, and returns its number. Nobody has rights to it yet.
    ///
    /// # Errors
    ///
    /// The name, size or address is invalid, or in use, or there is no room; one line for the operator.
    pub fn add(&mut self, name: &str, bytes: u64, at: Option<u64>, file: bool) -> Result<usize> {
        let address = region::check(&self.0, name, bytes, at)?;
        self.0.push(Region::new(name, address, bytes, None, file)?);
        Ok(self.0.len() - 1)
    }

    /// Removes the region that was added last.
    pub fn remove_last(&mut self) {
        self.0.pop();
    }

    /// [`ASK_REGION_CREATE`] of a peer, which pays for the region with its family's quota, of which `used` bytes are
    /// used for other things. Returns the region's number.
    #[allow(clippy::too_many_arguments)] // those of the call, and who makes it
    pub fn create(
        &mut self,
        (peer, family): (usize, usize),
        (quota, used): (Quota, u64),
        name: &[u8],
        bytes: u64,
        at: Option<u64>,
        file: bool,
    ) -> Result<usize, i64> {
        let name = region::name(name).ok_or(ERROR_ARGUMENT)?;
        if self.0.iter().any(|region| region.name == name) {
            return Err(ERROR_EXISTS);
        }
        let address = region::place(&self.0, bytes, at)?;
        let (count, paid) = self.paid_by(family);
        let all = paid.saturating_add(used).saturating_add(bytes);
        if self.0.len() == MAX_REGIONS || count >= quota.regions || all > quota.bytes {
            return Err(ERROR_FULL);
        }
        let made = Region::new(name, address, bytes, Some(peer), file);
        let mut made = made.map_err(|_| ERROR_FULL)?;
        made.payer = Some(family);
        self.0.push(made);
        Ok(self.0.len() - 1)
    }

    /// Number and bytes of the regions that a family pays for.
    pub fn paid_by(&self, family: usize) -> (usize, u64) {
        let paid = self.0.iter().filter(|region| region.payer == Some(family));
        paid.fold((0, 0), |(count, bytes), region| (count + 1, bytes + region.bytes))
    }

    /// Number of a region that `peer` owns or was granted.
    ///
    /// # Errors
    ///
    /// `ERROR_NAME`: `number` is no such region.
    pub fn visible(&self, number: u64, peer: usize) -> Result<usize, i64> {
        let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
        let region = self.0.get(number).ok_or(ERROR_NAME)?;
        let visible = region.granted[peer] != 0 || region.owner == Some(peer);
        visible.then_some(number).ok_or(ERROR_NAME)
    }

    /// [`ASK_REGION_OPEN`]: number of the region, and the peer's rights.
    ///
    /// # Errors
    ///
    /// `ERROR_NAME`: the peer was granted no region with this name.
    pub fn open(&self, peer: usize, name: &[u8]) -> Result<(usize, u32), i64> {
        let matches = |r: &Region| r.name.as_bytes() == name && r.granted[peer] != 0;
        let number = self.0.iter().position(matches).ok_or(ERROR_NAME)?;
        Ok((number, self.0[number].granted[peer]))
    }

    /// [`ASK_REGION_MAP`]: number of the region, if the peer may map it with these rights.
    ///
    /// # Errors
    ///
    /// `ERROR_NAME`, `ERROR_ARGUMENT`, `ERROR_RIGHT`.
    pub fn may_map(&self, peer: usize, number: u64, rights: u32) -> Result<usize, i64> {
        let number = self.visible(number, peer)?;
        if region::rights(rights.into()).is_none() {
            return Err(ERROR_ARGUMENT);
        }
        if rights & !self.0[number].granted[peer] != 0 {
            return Err(ERROR_RIGHT);
        }
        Ok(number)
    }

    /// A peer has mapped a region with these rights. A mapping with other rights is no new arrival: readers of the
    /// header see the same generation.
    pub fn set_mapped(&mut self, number: usize, peer: usize, rights: u32) {
        let region = &mut self.0[number];
        region.arrived |= 1 << peer;
        if std::mem::replace(&mut region.mapped[peer], rights) == 0 {
            region.set_state(peer, PEER_PRESENT);
        }
    }

    /// A peer has no mapping of a region any more; the header shows `state`. Returns whether it had one.
    pub fn set_unmapped(&mut self, number: usize, peer: usize, state: u32) -> bool {
        let region = &mut self.0[number];
        let had = std::mem::take(&mut region.mapped[peer]) != 0;
        if had {
            region.set_state(peer, state);
        }
        had
    }

    /// Grants a region of the group to a peer that has mapped it from its start on.
    pub fn join(&mut self, number: usize, peer: usize, rights: u32) {
        self.0[number].granted[peer] = rights;
        self.set_mapped(number, peer, rights);
    }

    /// [`ASK_REGION_GRANT`], and with rights 0 [`ASK_REGION_REVOKE`]. Returns the region's number, and the peers whose
    /// present mapping has more rights than are left.
    ///
    /// # Errors
    ///
    /// `ERROR_NAME`: there is no such region, or no such peer to grant it to. `ERROR_RIGHT`: the caller is not its
    /// owner.
    pub fn grant(
        &mut self,
        roster: &dyn Roster,
        peer: usize,
        number: u64,
        to: u64,
        rights: u32,
    ) -> Result<(usize, Vec<usize>), i64> {
        let number = self.visible(number, peer)?;
        let to = usize::try_from(to).ok().filter(|to| *to < MAX_PEERS).ok_or(ERROR_NAME)?;
        let family = roster.family(to);
        if rights != 0 && family.is_none() {
            return Err(ERROR_NAME);
        }
        let region = &mut self.0[number];
        if region.owner != Some(peer) {
            return Err(ERROR_RIGHT);
        }
        region.granted[to] = rights & ALL;
        let mut losers = vec![to];
        // A family is one program: if one of its peers loses a right, all of them do.
        if family.is_some() && family != roster.family(peer) {
            let others = (0..MAX_PEERS).filter(|o| *o != to && roster.family(*o) == family);
            losers.extend(others);
            losers.iter().for_each(|loser| region.granted[*loser] &= rights);
        }
        losers.retain(|loser| region.mapped[*loser] & !rights != 0);
        Ok((number, losers))
    }

    /// Gives a spawned peer the rights of its parent's mappings, except those of regions that the parent is about to
    /// lose. Returns numbers and rights; the peer counts as arrived.
    pub fn inherit(
        &mut self,
        parent: usize,
        peer: usize,
        losing: impl Fn(usize) -> bool,
    ) -> Vec<(usize, u32)> {
        let mut inherited = Vec::new();
        for number in 0..self.0.len() {
            let rights = if losing(number) { 0 } else { self.0[number].mapped[parent] };
            self.0[number].granted[peer] = rights;
            if rights != 0 {
                self.set_mapped(number, peer, rights);
                inherited.push((number, rights));
            }
        }
        inherited
    }

    /// Removes a peer that is gone; the headers show `state`. The regions of an initial guest belong to the group from
    /// then on; those that a spawned peer made stay private to its family.
    pub fn remove(&mut self, peer: usize, state: u32, initial: bool) {
        for number in 0..self.0.len() {
            self.set_unmapped(number, peer, state);
            let region = &mut self.0[number];
            region.granted[peer] = 0;
            if region.owner == Some(peer) {
                region.owner = if initial { None } else { Some(OWNER_GONE) };
            }
            region.payer = region.payer.filter(|payer| *payer != peer);
        }
    }

    /// Number of peers that have ever mapped a region.
    pub fn arrived(&self, number: usize) -> u64 {
        self.0[number].arrived.count_ones().into()
    }

    /// Bytes of the regions that no family pays for.
    pub fn unpaid_bytes(&self) -> u64 {
        self.0.iter().filter(|region| region.payer.is_none()).map(|region| region.bytes).sum()
    }
}

#[cfg(test)]
mod tests;
