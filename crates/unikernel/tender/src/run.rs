//! All of it, from an image to an exit status.
//!
//! The calling thread builds everything, and gives up what it does not need any more. Another waits for signals, and
//! for the time to be over. Each guest has a thread that runs its processor, the first the calling one. Nothing of a
//! guest outlives [`run`].

use crate::backend::{Cpu, Event, Reason, Space};
use crate::calls::{self, Outcome};
use crate::clock::{self, Clock};
use crate::confine::{self, Later, Needs};
use crate::device::options::DeviceOptions;
use crate::device::Devices;
use crate::elf::{self, Image};
use crate::group::{Group, Peer};
use crate::kvm::{self, KvmSpace};
use crate::layout::{system, Layout};
use crate::member::{self, Joined, Meeting};
use crate::memory::{system_address, Memory};
use crate::pins::Pins;
use crate::process::{self, ProcessSpace, Readers};
use crate::spawn::Spawner;
use crate::tokens::Tokens;
use crate::{core_file, report, wire};
use anyhow::{anyhow, bail, ensure, Context, Result};
use kyozon_abi::unikernel::*;
use kyozon_join::message::{Ask, Wanted};
use kyozon_join::socket::Socket;
use std::fs::File;
use std::io::{Error, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use vmm_sys_util::eventfd::EventFd;
use vmm_sys_util::signal::{register_signal_handler, SIGRTMIN};

/// An image is not larger, in the file.
const IMAGE_BYTES: u64 = 512 << 20;

/// What runs guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// A virtual machine.
    Kvm,
    /// A confined process.
    Process,
}

impl Backend {
    /// Its name, as it is asked for.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kvm => "kvm",
            Self::Process => "process",
        }
    }
}

/// A region of the group's, which every guest has from the start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegionOption {
    /// Its name.
    pub name: String,
    /// Bytes, with the header's page.
    pub bytes: u64,
    /// Where, or anywhere.
    pub at: Option<u64>,
    /// Whether guests may write.
    pub write: bool,
}

/// What to run, and how.
#[derive(Clone, Debug)]
pub struct Options {
    /// The image.
    pub image: PathBuf,
    /// What runs it; where it is not said, a virtual machine if there can be one.
    pub backend: Option<Backend>,
    /// Bytes that each guest may have.
    pub memory: u64,
    /// How long all of it may take.
    pub time_limit: Option<Duration>,
    /// Where a core file goes, when a guest crashes.
    pub core: Option<PathBuf>,
    /// The group's regions.
    pub regions: Vec<RegionOption>,
    /// Its guests' devices.
    pub devices: DeviceOptions,
    /// How many guests at the start.
    pub vms: usize,
    /// The group that this run shares with others.
    pub group: Option<Meeting>,
    /// Bytes of all guests and regions, at most.
    pub group_memory: Option<u64>,
    /// How many peers at once, with those that guests spawn; not fewer than `vms`.
    pub peers: usize,
    /// CPUs, one for each guest in turn; none: wherever the kernel likes.
    pub pin: Vec<usize>,
    /// Their arguments.
    pub arguments: Vec<String>,
}

/// How it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// What ran it.
    pub backend: Backend,
    /// For the caller to exit with.
    pub status: u8,
    /// By peer.
    pub guests: Vec<u8>,
    /// From the beginning to when the first guest was entered.
    pub start: Duration,
    /// From there to the end of the last.
    pub ran: Duration,
}

/// The signal that interrupts a processor.
pub fn kick_signal() -> i32 {
    SIGRTMIN()
}

extern "C" fn interrupted(_: libc::c_int, _: *mut libc::siginfo_t, _: *mut libc::c_void) {}

/// How one guest ended.
pub(crate) enum End {
    /// By its own will.
    Exit(u8),
    /// It gave up, or crashed: what there is to say.
    Crash { status: u64, text: String },
    /// It was ended.
    Stopped,
    /// The tender could not go on.
    Failed(anyhow::Error),
}

impl End {
    /// Why the tender could not go on with it.
    pub(crate) fn failure(self) -> Result<()> {
        match self {
            Self::Failed(error) => Err(error),
            _ => Ok(()),
        }
    }
}

/// Doorbells of peers, then those of queues.
type Starter = Box<dyn FnOnce(&Memory, &[&EventFd], &[&EventFd]) -> Result<Box<dyn Cpu>>>;

/// A guest that has not begun.
struct Machine {
    memory: Arc<Memory>,
    space: Arc<dyn Space>,
    start: Starter,
    khz: Option<u64>,
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    // Looked at before it is opened: to open a pipe would wait for somebody.
    let about = std::fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
    ensure!(about.is_file(), "{name} is no file");
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut bytes = Vec::with_capacity(about.len().min(IMAGE_BYTES) as usize + 1);
    file.take(IMAGE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    ensure!(bytes.len() as u64 <= IMAGE_BYTES, "{name} has more than {}M", IMAGE_BYTES >> 20);
    Ok(bytes)
}

/// `/dev/kvm`, where the backend is or can be a virtual machine.
fn host(backend: Option<Backend>) -> Result<Option<kvm::Host>> {
    if backend == Some(Backend::Process) {
        return Ok(None);
    }
    match (kvm::Host::open(), backend) {
        (Ok(host), _) => Ok(Some(host)),
        (Err(error), None) => {
            eprintln!("kyozon: {error:#}: guests run in confined processes");
            Ok(None)
        }
        (Err(error), Some(_)) => {
            Err(error.context("no virtual machines here (--backend process needs none)"))
        }
    }
}

fn machine(
    host: Option<&kvm::Host>,
    readers: &Readers,
    image: &Image,
    file: &[u8],
    memory: u64,
) -> Result<Machine> {
    let layout = Layout::new(image, memory)?;
    let memory = Arc::new(Memory::new(image, file, layout, host.is_none())?);
    let Some(host) = host else {
        let space = ProcessSpace::new(readers);
        let process = space.clone();
        let start: Starter = Box::new(move |memory, tokens, queues| {
            Ok(Box::new(process.start(memory, tokens, queues)?))
        });
        return Ok(Machine { memory, space, start, khz: None });
    };
    let (space, cpu) = KvmSpace::new(host, host.bare()?, &memory)?;
    let khz = cpu.khz();
    Ok(Machine { memory, space, start: Box::new(|_, _, _| Ok(Box::new(cpu))), khz })
}

/// Arguments as the guest finds them.
fn arguments(options: &Options) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for argument in &options.arguments {
        bytes.extend(argument.bytes());
        bytes.push(0);
    }
    let most = system::ARGUMENTS_BYTES;
    ensure!(bytes.len() as u64 <= most, "arguments have more than {}K", most >> 10);
    Ok(bytes)
}

/// What boot blocks say, whosever they are.
pub struct Boot {
    /// What runs guests.
    pub backend: Backend,
    /// Highest number that a peer of the group has at the start, and 1.
    pub peers: usize,
    /// Arguments, as guests find them.
    pub arguments: Vec<u8>,
    /// How many they are.
    pub argument_count: usize,
    /// Peers that the group can have at once.
    pub limit: usize,
    /// Whether there can be more peers than at the start.
    pub spawn: bool,
}

impl Boot {
    /// Writes a guest's boot block.
    pub fn write(
        &self,
        group: &Group,
        number: usize,
        peer: &Peer,
        mapped: &[SharedRegion],
    ) -> Result<()> {
        let Peer { memory, space, generation, .. } = peer;
        let Layout { image, stack, tls, heap, thread, argument, .. } = memory.layout;
        let (hypercall, doorbell) = match self.backend {
            Backend::Kvm => (kvm::DOOR, kvm::DOORBELL),
            Backend::Process => (process::DOOR, process::DOORBELL),
        };
        let clock = &group.clock;
        let bit = |on: bool, bit| if on { bit } else { 0 };
        let mut regions = [SharedRegion::default(); MAX_REGIONS];
        regions[..mapped.len()].copy_from_slice(mapped);
        memory.put_system(system::ARGUMENTS, &self.arguments)?;
        let base = system_address(system::ARGUMENTS);
        let boot = GuestBoot {
            magic: BOOT_MAGIC,
            version: UNIKERNEL_VERSION,
            backend: if self.backend == Backend::Kvm { BACKEND_KVM } else { BACKEND_PROCESS },
            features: space.features()
                | bit(clock.steady, FEATURE_TSC)
                | bit(self.spawn, FEATURE_SPAWN),
            peer: number as u32,
            peers: self.peers as u32,
            hypercall: system_address(hypercall),
            doorbell: system_address(doorbell),
            call: system_address(system::CALL),
            thread,
            image,
            stack,
            tls,
            heap,
            tsc_khz: clock.khz,
            tsc_offset: 0,
            clock_tsc: clock.tsc,
            clock_ns: clock.ns,
            clock_scale: clock.scale,
            arguments: Area { base, bytes: self.arguments.len() as u64 },
            argument_count: self.argument_count as u64,
            region_count: mapped.len() as u64,
            regions,
            argument,
            peer_table: system_address(system::LIFE),
            generation: *generation,
            limit: self.limit as u32,
        };
        wire::put_boot(&memory.block, system::BOOT, boot)
    }
}

/// Standard output is the console. Whoever closed it does not listen.
fn console(text: &[u8]) {
    let mut out = std::io::stdout().lock();
    let _ = out.write_all(text).and_then(|()| out.flush());
}

/// Runs one guest until it ends.
fn guest(
    group: &Group,
    peer: usize,
    at: &Peer,
    cpu: &mut dyn Cpu,
    file: &[u8],
    core: Option<&Path>,
) -> Result<End> {
    loop {
        if group.is_over(peer) {
            return Ok(End::Stopped);
        }
        let reason = match cpu.enter()? {
            Event::Interrupted => continue,
            Event::Doorbell(to) => {
                rung(group, at, to as usize)?;
                continue;
            }
            Event::Crash(reason) => reason,
            Event::Call => match calls::answer(group, peer, &mut console)? {
                Outcome::Answered => continue,
                Outcome::Exit(status) => return Ok(End::Exit(status)),
                Outcome::Panic(why) => {
                    let why = report::printable(&why);
                    let why = format!("gave up: {why}");
                    return crash(at, peer, cpu, file, core, STATUS_PANIC, &why);
                }
            },
        };
        // A process that was killed while all ends is no crash.
        if group.is_over(peer) && matches!(reason, Reason::Killed(_)) {
            return Ok(End::Stopped);
        }
        return crash(at, peer, cpu, file, core, STATUS_CRASH, &format!("crashed: {reason}"));
    }
}

/// A guest rang, and the backend did not: this time it is done here, from now on there.
fn rung(group: &Group, peer: &Peer, to: usize) -> Result<()> {
    let Peer { space, devices, .. } = peer;
    let queue = to.checked_sub(QUEUE_DOORBELL as usize);
    let bell = match queue {
        Some(queue) => devices.bells().nth(queue),
        None => group.tokens.get(to),
    };
    let Some(bell) = bell else { return Ok(()) };
    // A counter that is full was rung.
    let _ = bell.write(1);
    space.doorbell(to, bell)
}

/// The report of a crash, and a core file where one is wanted.
fn crash(
    at: &Peer,
    peer: usize,
    cpu: &mut dyn Cpu,
    file: &[u8],
    core: Option<&Path>,
    status: u64,
    what: &str,
) -> Result<End> {
    let registers = cpu.registers()?;
    let memory = &at.memory;
    let frames = report::backtrace(memory, &registers);
    let mut text = format!("kyozon: guest {peer} {what}");
    if status == STATUS_CRASH {
        text += &format!(
            ", in {}\n{}",
            report::place(file, registers.rip),
            report::registers(&registers)
        );
    } else {
        text.push('\n');
    }
    if registers.rip == 0 {
        let at = report::place(file, registers.rcx);
        text += &format!("  on some hosts the instruction `syscall` leads here, and leaves its place in rcx: {at}\n");
    }
    text += &report::calls(file, &frames);
    if let Some(path) = core {
        let written = File::create(path)
            .map_err(Into::into)
            .and_then(|mut to| core_file::write(&mut to, memory, &registers));
        text += &match written {
            Ok(()) => format!("core file: {}\n", path.display()),
            Err(error) => format!("no core file: {}: {error:#}\n", path.display()),
        };
    }
    Ok(End::Crash { status, text })
}

/// SIGINT, SIGTERM and SIGHUP as a descriptor, for this thread and those it will make.
fn signals() -> Result<OwnedFd> {
    // SAFETY: a set of this function's; the descriptor is new, and its owner's alone.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&mut set);
        for signal in [libc::SIGINT, libc::SIGTERM, libc::SIGHUP] {
            libc::sigaddset(&mut set, signal);
        }
        libc::pthread_sigmask(libc::SIG_BLOCK, &set, std::ptr::null_mut());
        let fd = libc::signalfd(-1, &set, libc::SFD_CLOEXEC);
        ensure!(fd >= 0, "signalfd: {}", Error::last_os_error());
        Ok(OwnedFd::from_raw_fd(fd))
    }
}

/// Why the main thread stopped waiting.
enum Woken {
    Done,
    Signal(u8),
    TimeOver,
}

/// Waits for a guest to end, a signal, or the time to be over.
fn wait(signals: &OwnedFd, done: &EventFd, until: Option<Instant>) -> Result<Woken> {
    loop {
        let left = until.map(|until| until.saturating_duration_since(Instant::now()));
        let time = left.map(|left| libc::timespec {
            tv_sec: left.as_secs().min(1 << 32) as libc::time_t,
            tv_nsec: left.subsec_nanos().into(),
        });
        let poll = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        let mut polls = [poll(signals.as_raw_fd()), poll(done.as_raw_fd())];
        let limit = time.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: structures of this function's.
        let ready = unsafe { libc::ppoll(polls.as_mut_ptr(), 2, limit, std::ptr::null()) };
        if ready < 0 {
            let error = Error::last_os_error();
            ensure!(error.raw_os_error() == Some(libc::EINTR), "ppoll: {error}");
        } else if polls[0].revents != 0 {
            let mut info = [0_u8; 128];
            // SAFETY: room for one structure of 128 bytes, whose first word is the signal.
            unsafe { libc::read(signals.as_raw_fd(), info.as_mut_ptr().cast(), info.len()) };
            return Ok(Woken::Signal(info[0]));
        } else if polls[1].revents != 0 {
            return Ok(Woken::Done);
        } else if ready == 0 && until.is_some_and(|until| Instant::now() >= until) {
            return Ok(Woken::TimeOver);
        }
    }
}

/// Runs guests, and says how it went.
pub fn run(options: &Options) -> Result<Summary> {
    let began = Instant::now();
    let clock_began = crate::clock::Moment::now();
    // Threads allocate little here: an arena for each would cost more to make than it saves.
    // SAFETY: a number of the allocator's, before there are threads.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
    let most = options.vms.max(options.peers);
    ensure!(options.vms > 0 && most <= MAX_PEERS, "a group has 1 to {MAX_PEERS} guests");
    let pins = Pins::new(&options.pin, options.vms).context("--pin")?;
    let name = options.image.display();
    let file = read(&options.image)?;
    let image = elf::parse(&file).with_context(|| format!("cannot run {name}"))?;
    let socket = options.group.as_ref().map(member::meet).transpose()?;
    let host = host(options.backend)?;
    let backend = if host.is_some() { Backend::Kvm } else { Backend::Process };
    let signals = signals()?;
    register_signal_handler(kick_signal(), interrupted).context("sigaction")?;

    let readers = Readers::default();
    let mut machines = Vec::new();
    for _ in 0..options.vms {
        machines.push(machine(host.as_ref(), &readers, &image, &file, options.memory)?);
    }
    let khz = machines[0].khz;
    let clock = || clock::since(clock_began, khz);
    let mut joined = match (socket, &options.group) {
        (Some(socket), Some(meeting)) => Some(join(socket, meeting, clock(), backend, options)?),
        _ => None,
    };
    let (first, tokens, group_clock, limit) = match &mut joined {
        Some(joined) => {
            let tokens = std::mem::take(&mut joined.tokens).into();
            (joined.first, tokens, Some(joined.clock), joined.limit)
        }
        None => (0, tokens(most, options.vms, backend)?, None, most),
    };
    let mut starters = Vec::new();
    let mut peers = Vec::new();
    for (family, Machine { memory, space, start, .. }) in (first..).zip(machines) {
        let (kick, lost, generation) = (OnceLock::new(), AtomicBool::new(false), 1);
        let devices = Devices::default();
        peers.push(Peer { memory, space, kick, lost, family, generation, bound: None, devices });
        starters.push(start);
    }
    let own: Vec<_> = tokens.all().into_iter().skip(first).collect();
    options.devices.make(&mut peers, &own)?;
    let arguments = arguments(options)?;
    let mut group = Group::new(first, peers, tokens);
    group.pins = pins;
    let (count, mapped) = match joined {
        Some(joined) => member(&mut group, joined)?,
        None => alone(&mut group, options)?,
    };
    let event = || EventFd::new(libc::EFD_CLOEXEC).context("eventfd");
    let (done, stop) = (event()?, event()?);
    let core = options.core.as_deref();
    confine::give_up_files(core)?;
    let mut cpus = Vec::new();
    for ((_, peer), start) in group.seats.all().iter().zip(starters) {
        let queues: Vec<_> = peer.devices.bells().collect();
        cpus.push(start(&peer.memory, &group.tokens.all(), &queues)?);
    }
    // As late as can be: to learn an unknown rate takes time, which has passed in part.
    group.clock = group_clock.unwrap_or_else(clock);
    let group = Arc::new(group);
    let boot = Boot {
        backend,
        peers: count,
        arguments,
        argument_count: options.arguments.len(),
        limit,
        spawn: limit > options.vms,
    };
    for (number, peer) in group.seats.all() {
        boot.write(&group, number, &peer, &mapped)?;
    }
    let file = Arc::new(file);
    let later = match backend {
        _ if !boot.spawn => Later::Nothing,
        Backend::Kvm => Later::Machines,
        Backend::Process => Later::Processes,
    };
    let processes = backend == Backend::Process;
    if boot.spawn {
        let spawner =
            Spawner::new(Arc::downgrade(&group), image, file.clone(), host, readers, boot);
        let _ = group.spawner.set(spawner);
    } else {
        drop((host, readers));
    }
    let socket = group.member.as_ref().map(|member| member.descriptor());
    let (core_file, disks) = (core.is_some(), !options.devices.blocks.is_empty());
    let pin = !group.pins.is_empty();
    let needs = Needs { processes, core: core_file, disks, pin, socket, later };
    confine::give_up_calls(&needs)?;

    let start = began.elapsed();
    let until = options.time_limit.map(|limit| Instant::now() + limit);
    let run = || execute(&group, cpus, &file, core, (&signals, &done), until);
    let (ends, woken) = with_devices(&group, &stop, run)??;
    if let Some(member) = &group.member {
        member.leave();
    }
    let killed = group.member.as_ref().is_some_and(|m| m.killed.load(Ordering::SeqCst));
    let woken = if killed { Woken::Signal(libc::SIGTERM as u8) } else { woken };
    summary(backend, ends, woken, options, start, began.elapsed() - start)
}

/// Tokens of a group that nobody joins, with so many peers at most and at the start.
fn tokens(room: usize, vms: usize, backend: Backend) -> Result<Tokens> {
    // A process can ring whom it has the descriptor of.
    Tokens::new(room, if backend == Backend::Process { room } else { vms })
}

/// A group that nobody joins: its regions are this run's.
fn alone(group: &mut Group, options: &Options) -> Result<(usize, Vec<SharedRegion>)> {
    if let Some(limit) = options.group_memory {
        let guests = options.memory.saturating_mul(options.vms as u64);
        let all = options.regions.iter().map(|r| r.bytes).fold(guests, u64::saturating_add);
        let (all, most) = (all.div_ceil(1 << 10), limit >> 10);
        ensure!(
            all <= most,
            "guests and regions have {all}K, more than the {most}K of --group-memory"
        );
        group.limit = limit;
    }
    for region in &options.regions {
        group.add(&region.name, region.bytes, region.at, region.write)?;
    }
    Ok((options.vms, group.mapped_by(0)))
}

/// Joins a group that other runs have joined, or will.
fn join(
    socket: Socket,
    meeting: &Meeting,
    clock: Clock,
    backend: Backend,
    options: &Options,
) -> Result<Joined> {
    let wanted = |r: &RegionOption| Wanted {
        name: r.name.clone(),
        bytes: r.bytes,
        at: r.at,
        write: r.write,
    };
    let regions = options.regions.iter().map(wanted).collect();
    let image = options.image.display().to_string();
    let guests = (options.vms, options.memory);
    Joined::new(socket, meeting, clock, (&image, backend.name()), guests, regions)
}

/// A group that was joined: its regions are the keeper's.
fn member(group: &mut Group, joined: Joined) -> Result<(usize, Vec<SharedRegion>)> {
    let peers = group.seats.all();
    for (_, peer) in &peers {
        peer.space.hold(joined.member.lifeline())?;
    }
    let mut mapped = Vec::new();
    for (known, block) in &joined.regions {
        for (number, peer) in &peers {
            joined.member.map(*number, peer, known, block)?;
        }
        mapped.push(member::shared(known));
    }
    group.member = Some(joined.member);
    Ok((joined.peers, mapped))
}

/// What a guest's thread does. `at` is its peer.
pub(crate) fn work(
    group: &Group,
    peer: usize,
    at: &Peer,
    mut cpu: Box<dyn Cpu>,
    file: &[u8],
    core: Option<&Path>,
) -> End {
    let _ = at.kick.set(cpu.kick());
    // Of several core files, the last guest's would stand: only the first has one.
    let core = core.filter(|_| peer == group.first);
    // A family's first is one of the start, in the order of their numbers.
    let number = (at.family == peer).then(|| peer - group.first);
    let pinned = group.pins.pin(number, cpu.child());
    let end = pinned
        .and_then(|()| guest(group, peer, at, &mut *cpu, file, core))
        .unwrap_or_else(End::Failed);
    if let End::Crash { text, .. } = &end {
        eprint!("{text}");
    }
    // Nobody enters its processor any more, so it can be said that it is gone before all of it is.
    let state = if matches!(end, End::Exit(_)) { PEER_LEFT } else { PEER_DEAD };
    group.gone(peer, state);
    drop(cpu);
    end
}

/// Does something while devices have threads, which end with it.
fn with_devices<T>(group: &Group, stop: &EventFd, run: impl FnOnce() -> T) -> Result<T> {
    // Who has no device is not kept here.
    let mut peers = group.seats.all();
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

/// Runs all guests to their ends: the first on this thread, as a thread takes time to begin, each other on one of its
/// own. One more thread watches for signals and the time.
fn execute(
    group: &Group,
    cpus: Vec<Box<dyn Cpu>>,
    file: &[u8],
    core: Option<&Path>,
    (signals, done): (&OwnedFd, &EventFd),
    until: Option<Instant>,
) -> Result<(Vec<End>, Woken)> {
    std::thread::scope(|scope| {
        let watch = scope.spawn(|| {
            let woken = wait(signals, done, until);
            if !matches!(woken, Ok(Woken::Done)) {
                group.stop();
            }
            woken
        });
        if let Some(member) = &group.member {
            member.say(&Ask::Started);
            scope.spawn(|| member.serve(group, done));
        }
        let mut guests = group.seats.all().into_iter().zip(cpus);
        let run = move |((peer, at), cpu): ((usize, Arc<Peer>), _)| {
            work(group, peer, &at, cpu, file, core)
        };
        let first = guests.next();
        let others: Vec<_> = guests.map(|guest| scope.spawn(move || run(guest))).collect();
        let mut ends: Vec<_> = first.map(run).into_iter().collect();
        for other in others {
            let broke = |_| End::Failed(anyhow!("the thread of a guest broke"));
            ends.push(other.join().unwrap_or_else(broke));
        }
        if let Some(spawner) = group.spawner.get() {
            spawner.wait();
        }
        done.write(1).context("eventfd")?;
        let woken = watch.join().map_err(|_| anyhow!("the watching thread broke"))??;
        Ok((ends, woken))
    })
}

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
            eprintln!("kyozon: the time limit of {limit} s is over");
            STATUS_TIMEOUT as u8
        }
    };
    let mut guests = Vec::new();
    for end in ends {
        guests.push(match end {
            End::Exit(status) => status,
            End::Crash { status, .. } => status as u8,
            End::Stopped => stopped,
            End::Failed(error) => bail!(error),
        });
    }
    let status = match woken {
        Woken::Done => guests.iter().copied().find(|status| *status != 0).unwrap_or(0),
        _ => stopped,
    };
    Ok(Summary { backend, status, guests, start, ran })
}
