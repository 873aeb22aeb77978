//! `kyozon kill`: ends peers, and answers once they have ended.

use super::state::{Id, KillRequest, State};
use kyozon_join::message::FromKeeper;
use rustix::process::Signal;

impl State {
    pub(super) fn kill(&mut self, requester: Id, only: Option<usize>) {
        let peers = self.peers.iter().enumerate();
        let targets: Vec<_> = peers
            .filter_map(|(peer, entry)| Some((peer, (*entry)?)))
            // A family ends with its first peer.
            .filter(|(peer, entry)| only.is_none_or(|only| [*peer, entry.family].contains(&only)))
            .map(|(peer, entry)| (peer, entry.connection))
            .collect();
        if let Some(peer) = only.filter(|only| self.owner_of(*only).is_none()) {
            let name = &self.name;
            let refused = FromKeeper::Refused(format!("the group {name} has no peer {peer}"));
            return self.send(requester, &refused, &[]);
        }
        let mut notified = Vec::new();
        for (peer, id) in &targets {
            if self.member(*id).is_some_and(|member| member.is_host()) {
                self.signal(*id, Signal::TERM);
            } else if only.map_or(!notified.contains(id), |only| only == *peer) {
                notified.push(*id);
                self.send(*id, &FromKeeper::Stop { peer: only }, &[]);
            }
        }
        let (count, connections) = (targets.len(), targets.iter().map(|target| target.1).collect());
        self.kill_requests.push(KillRequest { requester, left: targets, connections, count });
    }

    /// Whether a kill request waits for the end of this connection's peer.
    pub(super) fn is_ending(&self, peer: usize, connection: Id) -> bool {
        self.kill_requests.iter().any(|request| request.left.contains(&(peer, connection)))
    }

    /// Closes the connections that leave, and answers the kill requests whose peers have ended. If the group is over,
    /// the requests wait until its folder is removed.
    pub(super) fn settle(&mut self) {
        self.leaving.clear();
        if self.is_over() {
            return;
        }
        self.answer_kill_requests();
    }

    /// Answers the last kill requests, once the group's folder is removed. Leaving connections close when this process
    /// ends.
    pub(super) fn finish(&mut self) {
        self.answer_kill_requests();
    }

    fn answer_kill_requests(&mut self) {
        let about_to_leave = |id: &Id| {
            self.connections.contains_key(id)
                && !self.peers.iter().flatten().any(|entry| entry.connection == *id)
        };
        let is_complete = |request: &KillRequest| {
            request.left.is_empty() && !request.connections.iter().any(about_to_leave)
        };
        let (done, left) =
            std::mem::take(&mut self.kill_requests).into_iter().partition(is_complete);
        self.kill_requests = left;
        let done: Vec<KillRequest> = done;
        for request in done {
            self.send(request.requester, &FromKeeper::Ended(request.count), &[]);
        }
    }
}
