//! A run, from an image to an exit status.
//!
//! The calling thread builds everything, and gives up the rights that it no longer needs. A second thread waits for
//! signals and for the time limit. Each guest has a thread that runs its processor; the first guest's is the calling
//! thread. No part of a guest outlives [`run`].

use crate::backend::Cpu;
use crate::bond::Bond;
use crate::boot::{self, Boot};
use crate::clock::{self, Clock};
use crate::confine::{self, Needs, Spawns};
use crate::console;
use crate::device::Devices;
use crate::elf;
use crate::error::{ensure, Context, Error, Present, Result};
use crate::group::Group;
use crate::guest::{self, End};
use crate::layout;
use crate::lives::Lives;
use crate::machine::{host, machine, Machine};
use crate::member::joining::{self, Guests, Joined, Meeting};
use crate::member::shared_region;
use crate::options::{Backend, Options, RegionOption};
use crate::peer::Peer;
use crate::peers::Peers;
use crate::pins::Pins;
use crate::process::Readers;
use crate::quota::{self, Quota};
use crate::signals::{self, Woken};
use crate::spawn::Spawner;
use crate::tokens::Tokens;
use kyozon_abi::unikernel::*;
use kyozon_join::message::{RegionRequest, ToKeeper};
use kyozon_join::socket::Socket;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;

/// The outcome of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The guests' backend.
    pub backend: Backend,
    /// The caller's exit status: that of the first guest that did not end with 0.
    pub status: u8,
    /// Exit statuses of the guests of the start, by number.
    pub guests: Vec<u8>,
    /// Time from the call of [`run`] to the first guest's start.
    pub start: Duration,
    /// Time from there to the last guest's end.
    pub ran: Duration,
}

/// Runs guests until all have ended. The calling process must have one thread.
///
/// # Errors
///
/// An option, the image or the group cannot be used, a system call failed, or the tender could not continue a guest.
pub fn run(options: &Options) -> Result<Summary> {
    let began = Instant::now();
    console::open_outputs();
    let clock_began = crate::clock::Moment::now();
    // Threads allocate little here: creating an arena for each would cost more than it saves.
    // SAFETY: sets a parameter of the allocator before there are other threads.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    let max_peers = options.vms.max(options.peers);
    ensure!(
        Options,
        options.vms > 0 && max_peers <= MAX_PEERS,
        "a group has 1 to {MAX_PEERS} guests: change --vms or --peers"
    );
    let pins = Pins::new(&options.pin, options.vms).context("--pin")?;
    let name = options.image.display();
    let parallelism = std::thread::available_parallelism().map_or(1, usize::from);
    let mut file = boot::read(&options.image)?;
    let mut words = options.arguments.clone();
    let image = if elf::is_program(&file) {
        words.insert(0, name.to_string());
        let program = std::mem::replace(&mut file, boot::read(&options.host)?);
        let about = || format!("cannot run {name} on {}", options.host.display());
        let host = file.len();
        file.extend(program);
        let image = elf::parse(&file[..host]).with_context(about)?;
        image.with_program(&file, host).with_context(about)?
    } else {
        elf::parse(&file).with_context(|| format!("cannot run {name}"))?
    };
    let socket = options.group.as_ref().map(joining::meet).transpose()?;
    let host = host(options.backend)?;
    let backend = if host.is_some() { Backend::Kvm } else { Backend::Process };
    let signals = signals::block()?;
    signals::handle_kicks()?;

    // The group's own limit is not known before the run joins; it is not above MAX_PEERS.
    let threads = options.threads.unwrap_or(match socket {
        Some(_) => MAX_PEERS.div_ceil(2),
        None => max_peers.div_ceil(options.vms),
    });
    layout::check_memory(options.memory)?;
    let spare = quota::spare(&image, options.memory, threads);
    let own_lives = if socket.is_none() { Some(Lives::new()?) } else { None };
    let readers = Readers::default();
    let mut machines = Vec::new();
    for _ in 0..options.vms {
        let memory = options.memory - spare;
        machines.push(machine(host.as_ref(), &readers, &image, &file, memory, own_lives.as_ref())?);
    }
    let khz = machines[0].khz;
    let clock = || clock::since(clock_began, khz);
    let mut joined = match (socket, &options.group) {
        (Some(socket), Some(meeting)) => {
            Some(join(socket, meeting, clock(), backend, spare, options)?)
        }
        _ => None,
    };
    let (first, tokens, lives, group_clock, limit) = match &mut joined {
        Some(joined) => {
            let tokens = std::mem::take(&mut joined.tokens).into();
            (joined.first, tokens, joined.lives.clone(), Some(joined.clock), joined.limit)
        }
        None => {
            let lives = own_lives.clone().present("a run without a group has no table of peers")?;
            (0, tokens(max_peers, options.vms, backend)?, lives, None, max_peers)
        }
    };
    let generation = |position: usize| joined.as_ref().map_or(1, |j| j.generations[position]);
    let mut starters = Vec::new();
    let mut peers = Vec::new();
    for (number, Machine { memory, space, start, .. }) in (first..).zip(machines) {
        if own_lives.is_none() {
            memory.set_lives(lives.file())?;
        }
        let (kick, must_end, devices) =
            (OnceLock::new(), AtomicBool::new(false), Devices::default());
        let (family, generation, bound) = (number, generation(number - first), None);
        let bond = Bond::default();
        peers.push(Peer {
            memory,
            space,
            kick,
            must_end,
            family,
            generation,
            bound,
            bond,
            devices,
        });
        starters.push(start);
    }
    let own: Vec<_> = tokens.all().into_iter().skip(first).collect();
    options.devices.make(&mut peers, &own)?;
    let arguments = boot::arguments(&words, &options.environment)?;
    let mut group = Group::new(Peers::new(first, peers, tokens, lives));
    group.pins = pins;
    let (count, mapped) = match joined {
        Some(joined) => set_up_member(&mut group, joined)?,
        None => {
            group.local.quota = Quota::new(options.vms, max_peers, options.threads, spare);
            set_up_alone(&mut group, options)?
        }
    };
    let event = || EventFd::new(libc::EFD_CLOEXEC).context("eventfd");
    let (done, stop) = (event()?, event()?);
    let core = options.core.as_deref();
    confine::give_up_files(core)?;
    let mut cpus = Vec::new();
    for ((_, peer), start) in group.peers.table.all().iter().zip(starters) {
        let queues: Vec<_> = peer.devices.doorbells().collect();
        cpus.push(start(&peer.memory, &group.peers.tokens.all(), &queues)?);
    }
    // As late as possible: if the rate of the time-stamp counter is unknown, it is measured over the time since the
    // start.
    group.peers.clock = group_clock.unwrap_or_else(clock);
    let group = Arc::new(group);
    let boot = Boot {
        backend,
        peers: count,
        arguments,
        argument_count: words.len(),
        environment_count: options.environment.len(),
        limit,
        spawn: limit > options.vms,
        cpus: parallelism,
    };
    for (number, peer) in group.peers.table.all() {
        boot.write(&group, number, &peer, &mapped)?;
    }
    let file = Arc::new(file);
    let spawns = match backend {
        _ if !boot.spawn => Spawns::Nothing,
        Backend::Kvm => Spawns::Machines,
        Backend::Process => Spawns::Processes,
    };
    let processes = backend == Backend::Process;
    if boot.spawn {
        let weak = Arc::downgrade(&group);
        let spawner = Spawner::new(weak, image, file.clone(), host, readers, boot);
        let _ = group.spawner.set(Arc::new(spawner));
    } else {
        drop((host, readers));
    }
    let socket = group.member.as_ref().map(|member| member.descriptor());
    let (core_file, disks) = (core.is_some(), !options.devices.blocks.is_empty());
    let pin = !group.pins.is_empty();
    let needs = Needs { processes, core_file, disks, pin, socket, spawns };
    confine::give_up_calls(&needs)?;

    let start = began.elapsed();
    let deadline = options.time_limit.map(|limit| Instant::now() + limit);
    let run = || execute(&group, cpus, &file, core, (&signals, &done), deadline);
    let (ends, woken) = with_devices(&group, &stop, run)??;
    if let Some(member) = &group.member {
        member.leave();
    }
    let killed = group.member.as_ref().is_some_and(|m| m.killed.load(Ordering::SeqCst));
    let woken = if killed { Woken::Signal(libc::SIGTERM as u8) } else { woken };
    summary(backend, ends, woken, options, start, began.elapsed() - start)
}

/// Tokens of a group that no other run joins, with at most `room` peers, and `vms` guests at the start.
fn tokens(room: usize, vms: usize, backend: Backend) -> Result<Tokens> {
    // A guest in a process can ring only tokens that it has from its start on.
    Tokens::new(room, if backend == Backend::Process { room } else { vms })
}

/// Sets up a group that no other run joins. Returns the highest number of a peer plus 1, and the regions that all
/// guests have mapped.
fn set_up_alone(group: &mut Group, options: &Options) -> Result<(usize, Vec<SharedRegion>)> {
    if let Some(limit) = options.group_memory {
        let guests = options.memory.saturating_mul(options.vms as u64);
        let all = options.regions.iter().map(|r| r.bytes).fold(guests, u64::saturating_add);
        let (all, max) = (all.div_ceil(1 << 10), limit >> 10);
        ensure!(
            Options,
            all <= max,
            "guests and regions have {all}K, more than the {max}K of --group-memory: raise it, or lower --memory"
        );
    }
    for region in &options.regions {
        group.local.add(&group.peers, &region.name, region.bytes, region.address, region.write)?;
    }
    Ok((options.vms, group.mapped_by(0)))
}

/// Joins a group that other runs can join, too.
fn join(
    socket: Socket,
    meeting: &Meeting,
    clock: Clock,
    backend: Backend,
    spare: u64,
    options: &Options,
) -> Result<Joined> {
    let wanted = |r: &RegionOption| RegionRequest {
        name: r.name.clone(),
        bytes: r.bytes,
        at: r.address,
        write: r.write,
    };
    let regions = options.regions.iter().map(wanted).collect();
    let image = options.image.display().to_string();
    let guests =
        Guests { count: options.vms, memory: options.memory, spare, threads: options.threads };
    Joined::new(socket, meeting, clock, (&image, backend.name()), guests, regions)
}

/// Sets up a group that this run has joined. Returns the same as [`set_up_alone`].
fn set_up_member(group: &mut Group, joined: Joined) -> Result<(usize, Vec<SharedRegion>)> {
    let peers = group.peers.table.all();
    for (_, peer) in &peers {
        peer.space.set_lifeline(joined.member.lifeline())?;
    }
    let mut mapped = Vec::new();
    for (known, block) in &joined.regions {
        for (number, peer) in &peers {
            joined.member.map_at_start(*number, peer, known, block)?;
        }
        mapped.push(shared_region(known));
    }
    group.member = Some(joined.member);
    Ok((joined.peers, mapped))
}

/// Calls `run` while each device has a thread; these threads end before this function returns.
fn with_devices<T>(group: &Group, stop: &EventFd, run: impl FnOnce() -> T) -> Result<T> {
    let mut peers = group.peers.table.all();
    peers.retain(|(_, peer)| peer.devices.iter().next().is_some());
    std::thread::scope(|scope| {
        for device in peers.iter().flat_map(|(_, peer)| peer.devices.iter()) {
            scope.spawn(|| device.work(stop));
        }
        let done = run();
        stop.write(1).context("eventfd")?;
        Ok(done)
    })
}

/// Runs all guests until they have ended. The first runs on this thread, because a new thread takes time to start; each
/// other guest has its own. One more thread waits for signals and for the deadline.
fn execute(
    group: &Group,
    cpus: Vec<Box<dyn Cpu>>,
    file: &[u8],
    core: Option<&Path>,
    (signals, done): (&OwnedFd, &EventFd),
    deadline: Option<Instant>,
) -> Result<(Vec<End>, Woken)> {
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let woken = signals::wait(signals, done, deadline);
            if !matches!(woken, Ok(Woken::Done)) {
                group.stop();
            }
            woken
        });
        if let Some(member) = &group.member {
            member.send(&ToKeeper::Started);
            scope.spawn(|| member.serve(&group.peers, done));
        }
        let mut guests = group.peers.table.all().into_iter().zip(cpus);
        let run = move |((number, peer), cpu): ((usize, Arc<Peer>), _)| {
            guest::run(group, number, &peer, cpu, file, core)
        };
        let first = guests.next();
        let others: Vec<_> = guests.map(|guest| scope.spawn(move || run(guest))).collect();
        let mut ends: Vec<_> = first.map(run).into_iter().collect();
        for other in others {
            let panicked = |_| End::Failed(Error::Internal("a guest's thread panicked".into()));
            ends.push(other.join().unwrap_or_else(panicked));
        }
        if let Some(spawner) = group.spawner.get() {
            spawner.wait_all();
        }
        done.write(1).context("eventfd")?;
        let woken = watch
            .join()
            .map_err(|_| Error::Internal("the thread that waits for signals panicked".into()))??;
        Ok((ends, woken))
    })
}

/// The summary of a run, or the error of the first guest that the tender could not continue.
fn summary(
    backend: Backend,
    ends: Vec<End>,
    woken: Woken,
    options: &Options,
    start: Duration,
    ran: Duration,
) -> Result<Summary> {
    let stopped = match woken {
        Woken::Done => STATUS_CRASH as u8,
        Woken::Signal(signal) => 128 + signal,
        Woken::TimeOver => {
            let limit = options.time_limit.unwrap_or_default().as_secs_f64();
            console::message(&format!("kyozon: the time limit of {limit} s has passed"));
            STATUS_TIMEOUT as u8
        }
    };
    let mut guests = Vec::new();
    for end in ends {
        guests.push(match end {
            End::Exit { status, .. } => status,
            End::Crash { status, .. } => status as u8,
            End::Stopped => stopped,
            End::WithBound(status) => status,
            End::Failed(error) => return Err(error),
        });
    }
    let status = match woken {
        Woken::Done => guests.iter().copied().find(|status| *status != 0).unwrap_or(0),
        _ => stopped,
    };
    Ok(Summary { backend, status, guests, start, ran })
}
