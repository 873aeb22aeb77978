//! `kyozon kill`: ends peers, and answers when they have ended.

use super::state::{Id, Killing, State};
use kyozon_join::message::FromKeeper;
use rustix::process::Signal;

impl State {
    pub(super) fn kill(&mut self, asker: Id, only: Option<usize>) {
        let peers = self.peers.iter().enumerate();
        let left: Vec<_> = peers
            .filter_map(|(peer, seat)| Some((peer, (*seat)?)))
            // With the first of a family go all.
            .filter(|(peer, seat)| only.is_none_or(|only| [*peer, seat.family].contains(&only)))
            .map(|(peer, seat)| (peer, seat.of))
            .collect();
        if let Some(peer) = only.filter(|only| self.owner_of(*only).is_none()) {
            let name = &self.name;
            let refused = FromKeeper::Refused(format!("the group {name} has no peer {peer}"));
            return self.tell(asker, &refused, &[]);
        }
        let mut told = Vec::new();
        for (peer, id) in &left {
            if self.member(*id).is_some_and(|member| member.is_host()) {
                self.signal(*id, Signal::TERM);
            } else if only.map_or(!told.contains(id), |only| only == *peer) {
                told.push(*id);
                self.tell(*id, &FromKeeper::Stop { peer: only }, &[]);
            }
        }
        let (count, members) = (left.len(), left.iter().map(|target| target.1).collect());
        self.killings.push(Killing { asker, left, members, count });
    }

    /// Whether somebody waits for the end of a peer.
    pub(super) fn is_ending(&self, peer: usize, of: Id) -> bool {
        self.killings.iter().any(|killing| killing.left.contains(&(peer, of)))
    }

    /// Answers the requests whose peers have ended, and closes connections that leave.
    pub(super) fn settle(&mut self) {
        self.leaving.clear();
        if self.is_over() {
            return;
        }
        self.killed();
    }

    /// The group's folder is gone. Connections that left, or wait for that, close when this process ends.
    pub(super) fn finish(&mut self) {
        self.killed();
    }

    fn killed(&mut self) {
        let leaves = |id: &Id| {
            self.connections.contains_key(id)
                && !self.peers.iter().flatten().any(|seat| seat.of == *id)
        };
        let over =
            |killing: &Killing| killing.left.is_empty() && !killing.members.iter().any(leaves);
        let (done, left) = std::mem::take(&mut self.killings).into_iter().partition(over);
        self.killings = left;
        let done: Vec<Killing> = done;
        for killing in done {
            self.tell(killing.asker, &FromKeeper::Ended(killing.count), &[]);
        }
    }
}
