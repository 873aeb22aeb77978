//! Calls about regions: the rules of `abi::unikernel`, for peers of several tenders.

use super::state::{Id, State};
use crate::error::{Context, Present, Result};
use crate::process::read_only;
use crate::region::{self, Region, ALL};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, ToKeeper};
use std::os::fd::{AsFd, OwnedFd};

impl State {
    /// Makes a region that is granted only to its owner, and returns its index.
    pub(super) fn make_region(
        &mut self,
        name: &str,
        address: u64,
        bytes: u64,
        owner: Option<usize>,
    ) -> Result<usize> {
        let mut region = Region::new(name, address, bytes, owner)?;
        if owner.is_none() {
            region.granted = [0; MAX_PEERS];
        }
        let file = region.block.file_offset().present("the region has no file")?;
        self.read_only_files.push(read_only(file.file().as_fd())?);
        self.regions.push(region);
        Ok(self.regions.len() - 1)
    }

    /// A descriptor of a region's memory; it can write only if `rights` include [`REGION_WRITE`].
    pub(super) fn region_file(&self, number: usize, rights: u32) -> Result<OwnedFd> {
        let file = if rights & REGION_WRITE != 0 {
            self.regions[number]
                .block
                .file_offset()
                .present("the region has no file")?
                .file()
                .as_fd()
        } else {
            self.read_only_files[number].as_fd()
        };
        file.try_clone_to_owned().context("too many open files")
    }

    pub(super) fn handle_region_request(&mut self, requester: Id, message: ToKeeper) {
        match message {
            ToKeeper::Create { id, peer, name, bytes, at } => {
                let result = self.create(requester, peer, &name, bytes, at);
                self.answer(requester, id, result, None);
            }
            ToKeeper::Open { id, peer, name } => {
                let matches = |r: &Region| r.name == name && r.granted[peer] != 0;
                match self.regions.iter().position(matches) {
                    Some(number) => {
                        let region = self.region_info(number, self.regions[number].granted[peer]);
                        self.answer(requester, id, Ok(number as u64), Some(region));
                    }
                    None => self.answer(requester, id, Err(ERROR_NAME), None),
                }
            }
            ToKeeper::Map { id, peer, number, rights } => match self.map(peer, number, rights) {
                Ok((number, file)) => {
                    let region = Some(self.region_info(number, rights));
                    self.send(
                        requester,
                        &FromKeeper::Answer { id, result: 0, region },
                        &[file.as_fd()],
                    );
                    self.answer_rendezvous();
                }
                Err(error) => self.answer(requester, id, Err(error), None),
            },
            ToKeeper::Unmap { id, peer, number } => {
                let result = self.visible(number, peer).and_then(|number| {
                    let region = &mut self.regions[number];
                    match std::mem::take(&mut region.mapped[peer]) {
                        0 => Err(ERROR_NAME),
                        _ => {
                            region.set_state(peer, PEER_LEFT);
                            Ok(())
                        }
                    }
                });
                self.answer(requester, id, result.map(|()| 0), None);
            }
            ToKeeper::Grant { id, peer, number, to, rights } => {
                match self.grant(peer, number, to, rights) {
                    Ok((_, losers)) if losers.is_empty() => self.answer(requester, id, Ok(0), None),
                    Ok((number, losers)) => {
                        losers
                            .into_iter()
                            .for_each(|peer| self.revoke_mapping(requester, id, peer, number));
                    }
                    Err(error) => self.answer(requester, id, Err(error), None),
                }
            }
            ToKeeper::Meet { id, peer, number, count } => match self.visible(number, peer) {
                Ok(_) if count > MAX_PEERS as u64 => {
                    self.answer(requester, id, Err(ERROR_ARGUMENT), None);
                }
                Ok(number) => self.add_rendezvous(requester, id, peer, number, count),
                Err(error) => self.answer(requester, id, Err(error), None),
            },
            _ => {}
        }
    }

    /// Index of a region that `peer` owns or was granted; `ERROR_NAME` for any other number.
    fn visible(&self, number: u64, peer: usize) -> Result<usize, i64> {
        let number = usize::try_from(number).map_err(|_| ERROR_NAME)?;
        let region = self.regions.get(number).ok_or(ERROR_NAME)?;
        let visible = region.granted[peer] != 0 || region.owner == Some(peer);
        visible.then_some(number).ok_or(ERROR_NAME)
    }

    fn create(
        &mut self,
        requester: Id,
        peer: usize,
        name: &str,
        bytes: u64,
        at: Option<u64>,
    ) -> Result<u64, i64> {
        let name = region::name(name.as_bytes()).ok_or(ERROR_ARGUMENT)?;
        if self.regions.iter().any(|region| region.name == name) {
            return Err(ERROR_EXISTS);
        }
        let address = region::place(&self.regions, bytes, at)?;
        // A family's regions may have as many bytes as one of its run's guests.
        let budget = self.member(requester).map_or(0, |member| member.memory);
        let family = self.peers[peer].map(|entry| entry.family);
        let own: u64 = self.regions.iter().filter(|r| r.payer == family).map(|r| r.bytes).sum();
        let limit = self.memory_limit.unwrap_or(u64::MAX);
        if self.regions.len() == MAX_REGIONS
            || own.saturating_add(bytes) > budget
            || self.memory().saturating_add(bytes) > limit
        {
            return Err(ERROR_FULL);
        }
        let number = self.make_region(name, address, bytes, Some(peer)).map_err(|_| ERROR_FULL)?;
        self.regions[number].payer = family;
        Ok(number as u64)
    }

    fn map(&mut self, peer: usize, number: u64, rights: u32) -> Result<(usize, OwnedFd), i64> {
        let number = self.visible(number, peer)?;
        if rights == 0 || rights & !ALL != 0 {
            return Err(ERROR_ARGUMENT);
        }
        if rights & !self.regions[number].granted[peer] != 0 {
            return Err(ERROR_RIGHT);
        }
        let file = self.region_file(number, rights).map_err(|_| ERROR_FULL)?;
        let region = &mut self.regions[number];
        // A mapping with other rights is no new arrival: readers of the header see the same generation.
        if std::mem::replace(&mut region.mapped[peer], rights) == 0 {
            region.set_state(peer, PEER_PRESENT);
        }
        region.arrived |= 1 << peer;
        Ok((number, file))
    }

    /// Changes rights. Returns the region's index, and the peers whose present mapping has more rights than are left.
    fn grant(
        &mut self,
        peer: usize,
        number: u64,
        to: u64,
        rights: u32,
    ) -> Result<(usize, Vec<usize>), i64> {
        let number = self.visible(number, peer)?;
        let to = usize::try_from(to).ok().filter(|to| self.owner_of(*to).is_some());
        let to = to.ok_or(ERROR_NAME)?;
        let others = if self.are_family(peer, to) { Vec::new() } else { self.family_of(to) };
        let region = &mut self.regions[number];
        if region.owner != Some(peer) {
            return Err(ERROR_RIGHT);
        }
        region.granted[to] = rights & ALL;
        // A family is one program: if one of its peers loses a right, all of them do.
        others.iter().for_each(|other| region.granted[*other] &= rights);
        let mut losers = vec![to];
        losers.extend(others);
        losers.retain(|loser| region.mapped[*loser] & !rights != 0);
        Ok((number, losers))
    }
}
