//! Admission: which runs may join, and what they get.

use super::state::{Id, Member, PeerEntry, State};
use crate::error::{bail, ensure, Error, Result};
use crate::region::{ALL, NOBODY};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, Join, RegionInfo, RegionRequest, IMAGE_BYTES, VERSION};
use std::os::fd::AsFd;
use std::time::Instant;

/// Bytes, for a reader.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b % (1 << 30) == 0 => format!("{}G", b >> 30),
        b if b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b => format!("{}K", b >> 10),
    }
}

/// Text of somebody else's that a terminal may show.
fn printable(text: &str) -> String {
    crate::report::printable(text).chars().take(IMAGE_BYTES).collect()
}

impl State {
    /// Admits a run, or refuses it with a reason.
    pub(super) fn welcome(&mut self, id: Id, join: &Join) {
        match self.admit(id, join) {
            Ok((first, regions)) => {
                let peers = MAX_PEERS - self.peers.iter().rev().take_while(|s| s.is_none()).count();
                let clock = self.clock.unwrap_or_default();
                let rights: Vec<_> =
                    regions.iter().map(|r| (r.number as usize, r.rights)).collect();
                let limit = self.peers_limit;
                let welcome = FromKeeper::Welcome { first, peers, limit, clock, regions };
                // A descriptor each that the tell does not outlive, nor borrow what it changes.
                let tokens = self.tokens.iter().map(|token| token.try_clone().map(Some));
                let Ok(tokens) = tokens.collect::<Result<Vec<_>, _>>() else { return };
                let files = rights.iter().map(|(number, rights)| self.file(*number, *rights));
                let Ok(files) = files.collect::<Result<Vec<_>>>() else { return };
                let tokens: Vec<std::os::fd::OwnedFd> =
                    tokens.into_iter().flatten().map(owned).collect();
                let all: Vec<_> = tokens.iter().chain(&files).map(AsFd::as_fd).collect();
                self.tell(id, &welcome, &all);
                self.met();
            }
            Err(error) => self.tell(id, &FromKeeper::Refused(format!("{error}")), &[]),
        }
    }

    fn admit(&mut self, id: Id, join: &Join) -> Result<(usize, Vec<RegionInfo>)> {
        let name = self.name.clone();
        ensure!(
            Group,
            join.version == VERSION,
            "the group {name} was made by another version of kyozon, which has to end first"
        );
        ensure!(Group, self.member(id).is_none(), "already a member of the group {name}");
        let host = join.backend == "host";
        ensure!(Group, !host || join.peers == 1 && join.memory == 0, "a host program is one peer");
        if self.joined {
            self.same_limits(join)?;
        } else {
            ensure!(Group, join.clock.is_some(), "the group {name} has no guest yet");
            self.memory_limit = join.group_memory;
            self.peers_limit = join.group_peers.unwrap_or(MAX_PEERS).min(MAX_PEERS);
            self.clock = join.clock;
        }
        let here = self.peers.iter().flatten().count();
        let (count, most) = (join.peers, self.peers_limit);
        ensure!(
            Group,
            count > 0 && here + count <= most,
            "the group {name} has {here} peers of at most {most}: {count} more do not fit"
        );
        let first = self.numbers(count).ok_or_else(|| {
            Error::Group(format!(
                "the group {name} has no {count} numbers in a row: let some of its peers end"
            ))
        })?;
        self.memory_fits(join)?;
        let mut numbers = Vec::new();
        for wanted in &join.regions {
            ensure!(
                Group,
                join.regions.iter().filter(|other| other.name == wanted.name).count() == 1,
                "the region {} is named twice",
                wanted.name
            );
            self.check_wanted(wanted)?;
        }
        for wanted in &join.regions {
            numbers.push(self.wanted(wanted)?);
        }
        for peer in first..first + count {
            let (memory, since) = (join.memory, Instant::now());
            self.peers[peer] = Some(PeerEntry { of: id, family: peer, memory, since });
            self.used |= 1 << peer;
            self.spent |= 1 << peer;
            // A token of the peer that had the number before.
            let _ = self.tokens[peer].read();
            for (number, wanted) in numbers.iter().zip(&join.regions) {
                let rights = if wanted.write { ALL } else { REGION_READ };
                let region = &mut self.regions[*number];
                region.granted[peer] = rights;
                region.mapped[peer] = rights;
                region.arrived |= 1 << peer;
                region.set_state(peer, PEER_PRESENT);
            }
        }
        self.join(
            id,
            Member {
                image: printable(&join.image),
                backend: printable(&join.backend),
                memory: join.memory,
                running: host,
            },
        );
        let rights = |wanted: &RegionRequest| if wanted.write { ALL } else { REGION_READ };
        let known = numbers.iter().zip(&join.regions).map(|(n, w)| self.known(*n, rights(w)));
        Ok((first, known.collect()))
    }

    fn same_limits(&self, join: &Join) -> Result<()> {
        let name = &self.name;
        if let Some(memory) = join.group_memory.filter(|m| Some(*m) != self.memory_limit) {
            let has = self.memory_limit.map_or("none".into(), size);
            bail!(
                Group,
                "the group {name} has a limit of memory already, {has}, not {}",
                size(memory)
            );
        }
        if let Some(peers) = join.group_peers.filter(|p| *p != self.peers_limit) {
            let has = self.peers_limit;
            bail!(Group, "the group {name} has a limit of peers already, {has}, not {peers}");
        }
        Ok(())
    }

    fn memory_fits(&self, join: &Join) -> Result<()> {
        let Some(limit) = self.memory_limit else { return Ok(()) };
        let there = |w: &&RegionRequest| self.regions.iter().all(|region| region.name != w.name);
        let regions = join.regions.iter().filter(there).map(|w| w.bytes);
        let more = regions.fold(join.memory.saturating_mul(join.peers as u64), u64::saturating_add);
        let used = self.memory();
        ensure!(
            Group,
            used.saturating_add(more) <= limit,
            "the group {} may have {} of memory: {} are used, {} more do not fit",
            self.name,
            size(limit),
            size(used),
            size(more)
        );
        Ok(())
    }

    /// `count` free numbers in a row, preferably unused ones.
    fn numbers(&self, count: usize) -> Option<usize> {
        let free = |from: usize, also: u64| {
            let range = from..from + count;
            range.end <= MAX_PEERS
                && range.into_iter().all(|peer| self.peers[peer].is_none() && also >> peer & 1 == 0)
        };
        (0..MAX_PEERS)
            .find(|from| free(*from, self.used))
            .or_else(|| (0..MAX_PEERS).find(|from| free(*from, 0)))
    }

    /// Whether a region that is there is as it is wanted.
    fn check_wanted(&self, wanted: &RegionRequest) -> Result<()> {
        let RegionRequest { name, bytes, at, .. } = wanted;
        let group = &self.name;
        let Some(region) = self.regions.iter().find(|region| region.name == *name) else {
            ensure!(Group, *bytes != 0, "the group {group} has no region {name}");
            return Ok(());
        };
        if let Some(owner) = region.owner {
            let whose = match owner {
                NOBODY => "a peer's, who is gone and".to_owned(),
                owner => format!("peer {owner}'s, who"),
            };
            bail!(Group, "the region {name} of the group {group} is {whose} did not grant it");
        }
        let has = region.bytes;
        ensure!(
            Group,
            *bytes == 0 || *bytes == has,
            "the region {name} of the group {group} has {}, not {}",
            size(has),
            size(*bytes)
        );
        ensure!(
            Group,
            at.is_none_or(|at| at == region.address),
            "the region {name} of the group {group} is at {:#x}, not {:#x}",
            region.address,
            at.unwrap_or(0)
        );
        Ok(())
    }

    fn wanted(&mut self, wanted: &RegionRequest) -> Result<usize> {
        let there = self.regions.iter().position(|region| region.name == wanted.name);
        if let Some(number) = there {
            return Ok(number);
        }
        crate::region::check(&self.regions, &wanted.name, wanted.bytes, wanted.at)
            .and_then(|address| self.make(&wanted.name, address, wanted.bytes, None))
    }
}

fn owned(token: vmm_sys_util::eventfd::EventFd) -> std::os::fd::OwnedFd {
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: the descriptor was the token's alone.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(token.into_raw_fd()) }
}
