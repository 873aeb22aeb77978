//! `kyozon ps` and `kyozon kill`: requests to the groups' keepers.
//!
//! Output contains text from keepers and guests. The keeper ensures that names are letters and digits, and that an
//! image's name is printable ASCII.

use crate::cli::Target;
use anyhow::{bail, Context, Result};
use kyozon_join::message::{FromKeeper, Listing, PeerInfo, ToKeeper};
use kyozon_join::place::Place;
use kyozon_join::socket::Socket;
use kyozon_join::Error;
use rustix::event::{poll, PollFd, PollFlags};
use rustix::process::{pidfd_open, Pid, PidfdFlags};
use rustix::time::Timespec;
use serde_json::json;
use std::os::fd::OwnedFd;
use std::time::Duration;

/// Time limit for a keeper's list of peers.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait for the keeper of an ended group to exit.
const KEEPER_EXIT: Duration = Duration::from_secs(1);
/// Time limit for guests to end.
const END: Duration = Duration::from_secs(20);

fn ask(socket: &Socket, ask: &ToKeeper, limit: Duration) -> Result<FromKeeper, Error> {
    socket.send(ask, &[])?;
    Ok(socket.receive_within::<FromKeeper>(limit)?.0)
}

fn list(socket: &Socket) -> Result<Listing, Error> {
    match ask(socket, &ToKeeper::List, PATIENCE)? {
        FromKeeper::List(listing) => Ok(listing),
        _ => Err(Error::Refused("unexpected answer from the group's keeper".into())),
    }
}

/// All groups, as text or as JSON. Groups that end meanwhile are omitted.
pub fn show(as_json: bool) -> Result<String> {
    let place = Place::find()?;
    let mut listings = Vec::new();
    for name in place.groups()? {
        match place.connect(&name).and_then(|socket| list(&socket)) {
            Ok(listing) => listings.push(listing),
            Err(Error::NoGroup(_) | Error::Gone) => {}
            Err(error) => return Err(error).with_context(|| format!("group {name}")),
        }
    }
    Ok(if as_json { json(&listings, resident) } else { text(&listings, resident) })
}

/// Resident memory of a process in bytes; `None` if it is gone.
pub(crate) fn resident(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?;
    let pages: u64 = text.split(' ').nth(1)?.parse().ok()?;
    Some(pages * rustix::param::page_size() as u64)
}

/// Bytes, for people.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 10 << 30 => format!("{}G", b >> 30),
        b if b >= 10 << 20 => format!("{}M", b >> 20),
        b => format!("{}K", b >> 10),
    }
}

/// A time, for people.
pub(crate) fn age(milliseconds: u64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        0..=99 => format!("{seconds}s"),
        100..=5999 => format!("{}m", seconds / 60),
        6000..=172_799 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn regions(peer: &PeerInfo) -> String {
    let words: Vec<_> =
        peer.regions.iter().map(|(name, rights)| format!("{name}:{rights}")).collect();
    words.join(",")
}

fn text(listings: &[Listing], resident: impl Fn(i32) -> Option<u64>) -> String {
    let mut rows = vec![[
        "GROUP", "PEER", "PID", "BACKEND", "STATE", "MEMORY", "RESIDENT", "AGE", "IMAGE", "REGIONS",
    ]
    .map(str::to_owned)];
    for listing in listings {
        for peer in &listing.peers {
            rows.push([
                listing.group.clone(),
                peer.peer.to_string(),
                peer.pid.to_string(),
                peer.backend.clone(),
                peer.state.clone(),
                size(peer.memory),
                resident(peer.pid).map_or("-".into(), size),
                age(peer.age_ms),
                peer.image.clone(),
                regions(peer),
            ]);
        }
    }
    table(&rows)
}

/// Lines of cells, the first of them titles, in columns.
pub(crate) fn table<R: AsRef<[String]>>(rows: &[R]) -> String {
    let columns = rows.iter().map(|row| row.as_ref().len()).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.as_ref().get(column));
        cells.map(String::len).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &R| {
        let cells = row.as_ref().iter().zip(&widths);
        let cells: Vec<_> = cells.map(|(cell, width)| format!("{cell:width$}")).collect();
        cells.join("  ").trim_end().to_owned() + "\n"
    };
    rows.iter().map(line).collect()
}

fn json(listings: &[Listing], resident: impl Fn(i32) -> Option<u64>) -> String {
    let peer = |peer: &PeerInfo| {
        let regions =
            peer.regions.iter().map(|(name, rights)| json!({"name": name, "rights": rights}));
        json!({
            "peer": peer.peer,
            "pid": peer.pid,
            "image": peer.image,
            "backend": peer.backend,
            "state": peer.state,
            "memory": peer.memory,
            "resident": resident(peer.pid),
            "regions": regions.collect::<Vec<_>>(),
            "age_ms": peer.age_ms,
        })
    };
    let group = |listing: &Listing| {
        let regions = listing.regions.iter();
        let regions =
            regions.map(|r| json!({"name": r.name, "address": r.address, "bytes": r.bytes}));
        json!({
            "group": listing.group,
            "keeper": listing.keeper,
            "memory": listing.memory,
            "memory_limit": listing.memory_limit,
            "peers_limit": listing.peers_limit,
            "regions": regions.collect::<Vec<_>>(),
            "peers": listing.peers.iter().map(peer).collect::<Vec<_>>(),
        })
    };
    let groups: Vec<_> = listings.iter().map(group).collect();
    json!(groups).to_string() + "\n"
}

/// Ends peers and waits for their end. When all peers of a command end, waits for that command as well.
pub fn kill(target: &Target) -> Result<()> {
    let socket = Place::find()?.connect(&target.group)?;
    let gone = || Error::NoGroup(target.group.clone());
    let before = match list(&socket) {
        Err(Error::Gone) => return Err(gone().into()),
        listing => listing?,
    };
    let hit = |peer: &&PeerInfo| target.peer.is_none_or(|number| number == peer.peer);
    let stays = |pid: i32| before.peers.iter().any(|peer| peer.pid == pid && !hit(&peer));
    let pids = before.peers.iter().filter(hit).map(|peer| peer.pid).filter(|pid| !stays(*pid));
    let open = |pid: i32| pidfd_open(Pid::from_raw(pid)?, PidfdFlags::empty()).ok();
    let processes: Vec<OwnedFd> = pids.filter_map(open).collect();
    let keeper = target.peer.is_none().then(|| open(before.keeper)).flatten();
    match ask(&socket, &ToKeeper::Kill { peer: target.peer }, END) {
        // The group's last command ended by itself meanwhile.
        Ok(FromKeeper::Ended(_)) | Err(Error::Gone) => {}
        Ok(FromKeeper::Refused(why)) => bail!(why),
        Ok(_) => bail!("unexpected answer from the group's keeper"),
        Err(error) => return Err(error).context("not all guests have ended: see kyozon ps"),
    }
    for process in &processes {
        let limit = Timespec::try_from(END)?;
        if poll(&mut [PollFd::new(process, PollFlags::IN)], Some(&limit))? == 0 {
            bail!(
                "a process of group {} has not ended within {} s: see kyozon ps",
                target.group,
                END.as_secs()
            );
        }
    }
    if let Some(keeper) = keeper {
        // The keeper stays if new peers have joined meanwhile.
        let _ = poll(
            &mut [PollFd::new(&keeper, PollFlags::IN)],
            Some(&Timespec::try_from(KEEPER_EXIT)?),
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests;
