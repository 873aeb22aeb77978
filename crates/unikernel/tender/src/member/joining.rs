//! Joins a group, or makes it.

use super::{Member, KEEPER_TIMEOUT};
use crate::clock::Clock;
use crate::error::{bail, ensure, Present, Result};
use crate::keeper;
use crate::lives::Lives;
use crate::memory::{shared_block, Block};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{FromKeeper, Join, RegionInfo, RegionRequest, ToKeeper, VERSION};
use kyozon_join::place::{Met, Place};
use kyozon_join::socket::Socket;
use std::os::fd::{FromRawFd, IntoRawFd, OwnedFd};
use vmm_sys_util::eventfd::EventFd;

/// The group to join, and the limits that its first joiner sets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Meeting {
    /// Its name.
    pub name: String,
    /// Maximum bytes of all guests and regions.
    pub memory: Option<u64>,
    /// Maximum number of peers.
    pub peers: Option<usize>,
}

/// The guests of a run.
#[derive(Clone, Copy, Debug)]
pub struct Guests {
    /// Their number at the start.
    pub count: usize,
    /// Maximum bytes of each one's family.
    pub memory: u64,
    /// See [`Join::spare`].
    pub spare: u64,
    /// See [`Join::threads`].
    pub threads: Option<usize>,
}

/// The keeper's answer to a run that joined.
pub struct Joined {
    /// The connection to the keeper.
    pub member: Member,
    /// Number of the run's first peer.
    pub first: usize,
    /// Generations of the run's peers.
    pub generations: Vec<u32>,
    /// The group's table of peers.
    pub lives: Lives,
    /// The highest number of a peer of the group, plus 1.
    pub peers: usize,
    /// Maximum number of peers at the same time.
    pub limit: usize,
    /// Tokens of all peers that the group can have, by number.
    pub tokens: Vec<EventFd>,
    /// The group's clock.
    pub clock: Clock,
    /// The requested regions, in the same order.
    pub regions: Vec<(RegionInfo, Block)>,
}

/// Connects to a group; makes it and its keeper if it does not exist. The calling process must have one thread.
///
/// # Errors
///
/// The group's folder or socket cannot be used, or the keeper cannot be started.
pub fn meet(meeting: &Meeting) -> Result<Socket> {
    let place = Place::find()?;
    match place.meet(&meeting.name)? {
        Met::Joined(socket) => Ok(socket),
        Met::Made { socket, listener, lock } => {
            keeper::start(&place, &meeting.name, listener, lock)?;
            Ok(socket)
        }
    }
}

impl Joined {
    /// Joins with these guests.
    ///
    /// # Errors
    ///
    /// The keeper refuses the run, for the reason in the error, or does not answer in time.
    pub fn new(
        socket: Socket,
        meeting: &Meeting,
        clock: Clock,
        (image, backend): (&str, &str),
        guests: Guests,
        regions: Vec<RegionRequest>,
    ) -> Result<Self> {
        let join = Join {
            version: VERSION,
            image: image.into(),
            backend: backend.into(),
            peers: guests.count,
            memory: guests.memory,
            spare: guests.spare,
            threads: guests.threads,
            clock: Some(clock),
            regions,
            group_memory: meeting.memory,
            group_peers: meeting.peers,
        };
        socket.send(&ToKeeper::Join(join), &[])?;
        let (welcome, descriptors) = socket.receive_within(KEEPER_TIMEOUT)?;
        let (first, generations, peers, limit, clock, regions) = match welcome {
            FromKeeper::Welcome { first, generations, peers, limit, clock, regions }
                if generations.len() == guests.count =>
            {
                (first, generations, peers, limit, clock, regions)
            }
            FromKeeper::Refused(why) => bail!(Group, "{why}"),
            _ => bail!(
                Group,
                "the group's keeper sent an unexpected answer: end the group with kyozon kill, then try again"
            ),
        };
        let expected = MAX_PEERS + 1 + regions.len();
        ensure!(
            Group,
            descriptors.len() == expected,
            "the group's keeper sent {} descriptors, not {expected}: end the group with kyozon kill, then try again",
            descriptors.len()
        );
        let mut descriptors = descriptors.into_iter();
        // SAFETY: the descriptor is an eventfd, and `fd` was its only owner.
        let token = |fd: OwnedFd| unsafe { EventFd::from_raw_fd(fd.into_raw_fd()) };
        let tokens = descriptors.by_ref().take(MAX_PEERS).map(token).collect::<Vec<_>>();
        let lives = Lives::of(descriptors.next().present("the table of peers is missing")?);
        let block = |(region, fd): (RegionInfo, OwnedFd)| {
            let write = region.rights & REGION_WRITE != 0;
            let block = shared_block(region.bytes, fd.into(), write)?;
            Ok((region, block))
        };
        let regions = regions.into_iter().zip(descriptors).map(block).collect::<Result<_>>()?;
        let member = Member::new(socket);
        Ok(Self { member, first, generations, lives, peers, limit, tokens, clock, regions })
    }
}
