//! Admission of runs to the group.

use super::state::{Id, Member, PeerEntry, State};
use crate::error::{bail, ensure, Error, Result};
use crate::quota::Quota;
use crate::region::{ALL, OWNER_GONE};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, Join, RegionInfo, RegionRequest, IMAGE_BYTES, VERSION};
use std::os::fd::AsFd;
use std::time::Instant;

/// A number of bytes, in the largest unit that divides it.
pub(super) fn size(bytes: u64) -> String {
    match bytes {
        0 => "0".into(),
        b if b % (1 << 30) == 0 => format!("{}G", b >> 30),
        b if b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b => format!("{}K", b >> 10),
    }
}

/// A joiner's text, shortened and with control characters replaced, so that a terminal may show it.
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
                let generations = self.generations[first..first + join.peers].to_vec();
                let welcome =
                    FromKeeper::Welcome { first, generations, peers, limit, clock, regions };
                // Copies of the descriptors: `send` borrows the state mutably.
                let tokens = self.tokens.iter().map(|token| token.try_clone().map(Some));
                let Ok(tokens) = tokens.collect::<Result<Vec<_>, _>>() else { return };
                let files =
                    rights.iter().map(|(number, rights)| self.region_file(*number, *rights));
                let Ok(files) = files.collect::<Result<Vec<_>>>() else { return };
                let mut tokens: Vec<std::os::fd::OwnedFd> =
                    tokens.into_iter().flatten().map(owned).collect();
                let Ok(lives) = self.lives_reader.try_clone() else { return };
                tokens.push(lives);
                let all: Vec<_> = tokens.iter().chain(&files).map(AsFd::as_fd).collect();
                self.send(id, &welcome, &all);
                self.answer_rendezvous();
            }
            Err(error) => self.send(id, &FromKeeper::Refused(format!("{error}")), &[]),
        }
    }

    /// Checks the request, then makes the run's peers and regions. Returns the first peer's number.
    fn admit(&mut self, id: Id, join: &Join) -> Result<(usize, Vec<RegionInfo>)> {
        let name = self.name.clone();
        ensure!(
            Group,
            join.version == VERSION,
            "the group {name} was made by another version of kyozon: end the group first"
        );
        ensure!(
            Group,
            self.member(id).is_none(),
            "this process has already joined the group {name}: it cannot join twice"
        );
        let host = join.backend == "host";
        ensure!(
            Group,
            !host || join.peers == 1 && join.memory == 0,
            "a host program joins as one peer without memory of its own"
        );
        if self.joined {
            self.check_limits(join)?;
        } else {
            ensure!(
                Group,
                join.clock.is_some(),
                "the group {name} has no guest yet: start one first"
            );
            self.memory_limit = join.group_memory;
            self.peers_limit = join.group_peers.unwrap_or(MAX_PEERS).min(MAX_PEERS);
            self.clock = join.clock;
        }
        let here = self.peers.iter().flatten().count();
        let (count, max) = (join.peers, self.peers_limit);
        ensure!(
            Group,
            count > 0 && here + count <= max,
            "the group {name} has {here} peers of at most {max}: {count} more do not fit"
        );
        let first = self.free_numbers(count).ok_or_else(|| {
            Error::Group(format!(
                "the group {name} has no {count} consecutive free numbers: wait until some of its peers have ended"
            ))
        })?;
        self.check_memory(join)?;
        let mut numbers = Vec::new();
        for wanted in &join.regions {
            ensure!(
                Group,
                join.regions.iter().filter(|other| other.name == wanted.name).count() == 1,
                "the region {} is named twice: name each region once",
                wanted.name
            );
            self.check_request(wanted)?;
        }
        for wanted in &join.regions {
            numbers.push(self.find_or_make(wanted)?);
        }
        for peer in first..first + count {
            let (memory, since) = (join.memory, Instant::now());
            self.add_peer(peer, PeerEntry { connection: id, family: peer, memory, since });
            self.joined_numbers |= 1 << peer;
            for (number, wanted) in numbers.iter().zip(&join.regions) {
                let rights = if wanted.write { ALL } else { REGION_READ };
                self.regions.join(*number, peer, rights);
            }
        }
        self.join(
            id,
            Member {
                image: printable(&join.image),
                backend: printable(&join.backend),
                // Other commands join later, so a family of one command has half of the group.
                quota: Quota::new(2, self.peers_limit, join.threads, join.spare),
                running: host,
            },
        );
        let rights = |wanted: &RegionRequest| if wanted.write { ALL } else { REGION_READ };
        let known = numbers.iter().zip(&join.regions).map(|(n, w)| self.region_info(*n, rights(w)));
        Ok((first, known.collect()))
    }

    /// Checks that limits in the request equal the group's.
    fn check_limits(&self, join: &Join) -> Result<()> {
        let name = &self.name;
        if let Some(memory) = join.group_memory.filter(|m| Some(*m) != self.memory_limit) {
            let has = self.memory_limit.map_or("none".into(), size);
            bail!(
                Group,
                "the group {name} already has the memory limit {has}, not {}: leave the limit out",
                size(memory)
            );
        }
        if let Some(peers) = join.group_peers.filter(|p| *p != self.peers_limit) {
            let has = self.peers_limit;
            bail!(Group, "the group {name} already has the peer limit {has}, not {peers}: leave the limit out");
        }
        Ok(())
    }

    /// Checks that the run's guests and new regions fit into the group's memory limit.
    fn check_memory(&self, join: &Join) -> Result<()> {
        let Some(limit) = self.memory_limit else { return Ok(()) };
        let is_new = |w: &&RegionRequest| self.regions.iter().all(|region| region.name != w.name);
        let regions = join.regions.iter().filter(is_new).map(|w| w.bytes);
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

    /// The first of `count` consecutive free numbers, if possible of numbers that no peer has had.
    fn free_numbers(&self, count: usize) -> Option<usize> {
        let free = |from: usize, excluded: u64| {
            let range = from..from + count;
            range.end <= MAX_PEERS
                && range
                    .into_iter()
                    .all(|peer| self.peers[peer].is_none() && excluded >> peer & 1 == 0)
        };
        (0..MAX_PEERS)
            .find(|from| free(*from, self.used))
            .or_else(|| (0..MAX_PEERS).find(|from| free(*from, 0)))
    }

    /// Checks that the run may map an existing region, and that it is as requested.
    fn check_request(&self, wanted: &RegionRequest) -> Result<()> {
        let RegionRequest { name, bytes, at, .. } = wanted;
        let group = &self.name;
        let Some(region) = self.regions.iter().find(|region| region.name == *name) else {
            ensure!(Group, *bytes != 0, "the group {group} has no region {name}");
            return Ok(());
        };
        if let Some(owner) = region.owner {
            let owner = match owner {
                OWNER_GONE => "a peer that is gone".to_owned(),
                owner => format!("peer {owner}"),
            };
            bail!(
                Group,
                "the region {name} of the group {group} belongs to {owner}, which did not grant it: use another name"
            );
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

    /// Index of the requested region; makes the region if it does not exist.
    fn find_or_make(&mut self, wanted: &RegionRequest) -> Result<usize> {
        let there = self.regions.iter().position(|region| region.name == wanted.name);
        if let Some(number) = there {
            return Ok(number);
        }
        let made = self.regions.add(&wanted.name, wanted.bytes, wanted.at, true)?;
        self.finish_region(made)
    }
}

fn owned(token: vmm_sys_util::eventfd::EventFd) -> std::os::fd::OwnedFd {
    use std::os::fd::{FromRawFd, IntoRawFd};
    // SAFETY: the token was the descriptor's only owner.
    unsafe { std::os::fd::OwnedFd::from_raw_fd(token.into_raw_fd()) }
}
