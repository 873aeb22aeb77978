//! `kyozon ps`: lists the group's peers and regions.

use super::state::State;
use crate::region::Region;
use kyozon_abi::unikernel::REGION_WRITE;
use kyozon_join::message::{Listing, PeerInfo};

impl State {
    pub(super) fn listing(&self) -> Listing {
        let mut peers = Vec::new();
        for (peer, entry) in self.peers.iter().enumerate() {
            let Some(entry) = entry else { continue };
            let Some(connection) = self.connections.get(&entry.connection) else { continue };
            let Some(member) = &connection.member else { continue };
            let mapped = self.regions.iter().filter(|region| region.mapped[peer] != 0);
            let rights = |region: &Region| match region.mapped[peer] & REGION_WRITE {
                0 => "r".to_owned(),
                _ => "rw".to_owned(),
            };
            peers.push(PeerInfo {
                peer,
                pid: connection.pid,
                image: member.image.clone(),
                backend: member.backend.clone(),
                state: if member.running { "running" } else { "starting" }.to_owned(),
                memory: entry.memory,
                regions: mapped.map(|region| (region.name.clone(), rights(region))).collect(),
                age_ms: entry.since.elapsed().as_millis() as u64,
            });
        }
        Listing {
            group: self.name.clone(),
            keeper: std::process::id() as i32,
            memory: self.memory(),
            memory_limit: self.memory_limit,
            peers_limit: self.peers_limit,
            regions: (0..self.regions.len()).map(|number| self.region_info(number, 0)).collect(),
            peers,
        }
    }
}
