//! Calls about regions from several tenders, by the [rules](crate::rules) that every group has.

use super::state::{Id, State};
use crate::error::{Context, Present, Result};
use crate::process::read_only;
use crate::region::Region;
use crate::rules::Roster;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, ToKeeper};
use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};

/// A descriptor of a region's memory that cannot write.
fn reader(region: &Region) -> Result<File> {
    let file = region.block.file_offset().present("the region has no file")?;
    read_only(file.file().as_fd())
}

impl State {
    /// Opens the region that was made last for readers; removes it if that fails.
    pub(super) fn finish_region(&mut self, number: usize) -> Result<usize> {
        match reader(&self.regions[number]) {
            Ok(file) => {
                self.read_only_files.push(file);
                Ok(number)
            }
            Err(error) => {
                self.regions.remove_last();
                Err(error)
            }
        }
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
            ToKeeper::Open { id, peer, name } => match self.regions.open(peer, name.as_bytes()) {
                Ok((number, rights)) => {
                    let region = self.region_info(number, rights);
                    self.answer(requester, id, Ok(number as u64), Some(region));
                }
                Err(error) => self.answer(requester, id, Err(error), None),
            },
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
                let result = self.regions.visible(number, peer).and_then(|number| {
                    let had = self.regions.set_unmapped(number, peer, PEER_LEFT);
                    had.then_some(0).ok_or(ERROR_NAME)
                });
                self.answer(requester, id, result, None);
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
            ToKeeper::Meet { id, peer, number, count } => {
                match self.regions.visible(number, peer) {
                    Ok(_) if count > MAX_PEERS as u64 => {
                        self.answer(requester, id, Err(ERROR_ARGUMENT), None);
                    }
                    Ok(number) => self.add_rendezvous(requester, id, peer, number, count),
                    Err(error) => self.answer(requester, id, Err(error), None),
                }
            }
            _ => {}
        }
    }

    fn create(
        &mut self,
        requester: Id,
        peer: usize,
        name: &str,
        bytes: u64,
        at: Option<u64>,
    ) -> Result<u64, i64> {
        let family = self.peers[peer].map(|entry| entry.family).ok_or(ERROR_NAME)?;
        let quota = self.member(requester).map(|member| member.quota).ok_or(ERROR_NAME)?;
        let used = self.family_use(peer).1;
        let payer = (peer, family);
        let made = self.regions.create(payer, (quota, used), name.as_bytes(), bytes, at, true)?;
        self.finish_region(made).map(|number| number as u64).map_err(|_| ERROR_FULL)
    }

    fn map(&mut self, peer: usize, number: u64, rights: u32) -> Result<(usize, OwnedFd), i64> {
        let number = self.regions.may_map(peer, number, rights)?;
        let file = self.region_file(number, rights).map_err(|_| ERROR_FULL)?;
        self.regions.set_mapped(number, peer, rights);
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
        let families = Families(std::array::from_fn(|peer| self.family(peer)));
        self.regions.grant(&families, peer, number, to, rights)
    }
}

/// The families of all peers at one moment.
struct Families([Option<(u64, usize)>; MAX_PEERS]);

impl Roster for Families {
    fn family(&self, peer: usize) -> Option<(u64, usize)> {
        *self.0.get(peer)?
    }
}
