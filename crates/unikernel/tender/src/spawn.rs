//! Spawns peers that join a family: they run the same image in the same memory.
//!
//! The new peer's thread makes its private memory and its processor. The parent's thread creates the virtual machine in
//! the meantime, then waits until the peer is ready to run. A process is made by the thread that will trace it.

use crate::backend::{Cpu, Space};
use crate::bond::Bond;
use crate::boot::Boot;
use crate::console;
use crate::device::Devices;
use crate::elf::Image;
use crate::error::{bail, ensure, Result};
use crate::group::{Answer, Group, Spawn};
use crate::guest;
use crate::kvm::{self, BareMachine, KvmSpace};
use crate::layout::Layout;
use crate::peer::Peer;
use crate::process::{ProcessSpace, Readers};
use kyozon_abi::unikernel::*;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{sync_channel, Receiver, SyncSender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, Weak};

/// Makes spawned peers.
pub struct Spawner {
    /// The group, which owns this spawner.
    pub group: Weak<Group>,
    /// The image.
    pub image: Image,
    /// The image's file.
    pub file: Arc<Vec<u8>>,
    /// `/dev/kvm`; `None` if guests run in processes.
    pub host: Option<kvm::Host>,
    /// Descriptors from which guests in processes map regions.
    pub readers: Readers,
    /// Fields that all boot blocks share.
    pub boot: Boot,
    /// Number of threads of spawned peers.
    running: Mutex<usize>,
    /// Such a thread has ended, or a peer is gone.
    ended: Condvar,
}

/// A peer that is to be made.
struct PeerPlan {
    number: usize,
    generation: u32,
    parent: usize,
    bound: Option<(usize, u32)>,
    layout: Layout,
    /// Delivers its machine, unless it runs in a process.
    machine: Receiver<Result<BareMachine>>,
}

/// A peer that is made but not started.
struct UnstartedPeer {
    peer: Arc<Peer>,
    cpu: Option<Box<dyn Cpu>>,
    process: Option<Arc<ProcessSpace>>,
}

impl Spawner {
    /// A spawner that has made no peer yet.
    pub fn new(
        group: Weak<Group>,
        image: Image,
        file: Arc<Vec<u8>>,
        host: Option<kvm::Host>,
        readers: Readers,
        boot: Boot,
    ) -> Self {
        let (running, ended) = (Mutex::new(0), Condvar::new());
        Self { group, image, file, host, readers, boot, running, ended }
    }

    fn running(&self) -> MutexGuard<'_, usize> {
        self.running.lock().unwrap_or_else(|e| e.into_inner())
    }

    /// Counts an ended thread.
    fn thread_ended(&self) {
        *self.running() -= 1;
        self.ended.notify_all();
    }

    /// Makes, runs and removes a peer, on its own thread. Sends whether it is ready to run.
    fn thread(&self, group: &Group, plan: PeerPlan, ready: &SyncSender<bool>) {
        let number = plan.number;
        let Some((peer, cpu)) = self.prepare(group, plan) else {
            group.release(number);
            let _ = ready.send(false);
            return;
        };
        let _ = ready.send(true);
        if let Err(error) = guest::run(group, number, &peer, cpu, &self.file, None).failure() {
            console::message(&format!("kyozon: guest {number} failed: {error}"));
        }
    }

    /// Makes a peer that is ready to run, and adds it to the group. Leaves nothing behind if that fails.
    fn prepare(&self, group: &Group, plan: PeerPlan) -> Option<(Arc<Peer>, Box<dyn Cpu>)> {
        let number = plan.number;
        let made = self.make(group, plan).and_then(|made| self.start(group, number, made));
        match made {
            Ok((peer, cpu)) if group.peers.table.occupy(number, peer.clone()) => Some((peer, cpu)),
            Ok(_) => None,
            Err(error) => {
                console::message(&format!("kyozon: guest {number} cannot start: {error}"));
                None
            }
        }
    }

    /// Makes a peer, with the regions that it inherits.
    fn make(&self, group: &Group, plan: PeerPlan) -> Result<UnstartedPeer> {
        let PeerPlan { number, generation, parent, bound, layout, machine } = plan;
        let parent_peer = group.peers.table.get(parent);
        let Some(parent_peer) = parent_peer else { bail!(Internal, "the parent is gone") };
        let memory = Arc::new(parent_peer.memory.spawned(&self.image, &self.file, layout)?);
        // Before KVM gets the memory: see `machine::machine`.
        memory.set_lives(group.peers.table.lives().file())?;
        let word = memory.layout.stack_top() - 8;
        ensure!(
            Internal,
            memory.write(word, &[0; 8]).is_ok(),
            "the stack is not in the guest's memory"
        );
        let (space, cpu, process): (Arc<dyn Space>, _, _) = match &self.host {
            Some(host) => {
                let (space, cpu) = KvmSpace::new(host, machine.recv()??, &memory)?;
                (space, Some(Box::new(cpu) as Box<dyn Cpu>), None)
            }
            None => {
                let space = ProcessSpace::new(&self.readers);
                (space.clone(), None, Some(space))
            }
        };
        let peer = Arc::new(Peer {
            memory,
            space,
            kick: OnceLock::new(),
            must_end: AtomicBool::new(false),
            family: parent_peer.family,
            generation,
            bound,
            bond: Bond::default(),
            devices: Devices::default(),
        });
        group.peers.tokens.make(number)?;
        if let Some(member) = &group.member {
            peer.space.set_lifeline(member.lifeline())?;
        }
        group.inherit(parent, number, &peer)?;
        Ok(UnstartedPeer { peer, cpu, process })
    }

    /// Writes the peer's boot block, and starts its process if it runs in one.
    fn start(
        &self,
        group: &Group,
        number: usize,
        made: UnstartedPeer,
    ) -> Result<(Arc<Peer>, Box<dyn Cpu>)> {
        let UnstartedPeer { peer, cpu, process } = made;
        self.boot.write(group, number, &peer, &group.mapped_by(number))?;
        let cpu = match (cpu, process) {
            (Some(cpu), _) => cpu,
            (None, Some(process)) => {
                Box::new(process.start(&peer.memory, &group.peers.tokens.all(), &[])?)
            }
            (None, None) => bail!(Internal, "the peer has neither a machine nor a process"),
        };
        Ok((peer, cpu))
    }
}

impl Spawn for Spawner {
    fn spawn(
        self: Arc<Self>,
        parent: usize,
        entry: u64,
        argument: u64,
        stack: Area,
        bound: u64,
    ) -> Answer {
        let group = self.group.upgrade().ok_or(ERROR_FULL)?;
        let caller = group.peers.table.get(parent).ok_or(ERROR_FULL)?;
        let layout = caller.memory.origin.spawned(entry, argument, stack)?;
        let bound = match bound.checked_sub(1) {
            None => None,
            Some(other) => {
                let other = usize::try_from(other).map_err(|_| ERROR_NAME)?;
                let peer = group.peers.table.get(other).ok_or(ERROR_NAME)?;
                if peer.family != caller.family {
                    return Err(ERROR_RIGHT);
                }
                Some((other, peer.generation))
            }
        };
        let (number, generation) = group.reserve(parent, layout.bytes).ok_or(ERROR_FULL)?;
        let (machine_sender, machine) = sync_channel(1);
        let plan = PeerPlan { number, generation, parent, bound, layout, machine };
        let (ready, made) = sync_channel(1);
        *self.running() += 1;
        let (spawner, thread_group) = (self.clone(), group.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            spawner.thread(&thread_group, plan, &ready);
            spawner.thread_ended();
        });
        if thread.is_err() {
            group.release(number);
            self.thread_ended();
            return Err(ERROR_FULL);
        }
        if let Some(host) = &self.host {
            // If the new thread has failed, the machine is dropped.
            let _ = machine_sender.send(host.create_bare());
        }
        match made.recv() {
            Ok(true) => Ok(u64::from(generation & 0x7fff_ffff) << 32 | number as u64),
            _ => Err(ERROR_FULL),
        }
    }

    fn notify(&self) {
        drop(self.running.lock());
        self.ended.notify_all();
    }

    fn wait_until(&self, holds: &dyn Fn() -> bool) {
        let mut running = self.running();
        while !holds() {
            running = self.ended.wait(running).unwrap_or_else(|e| e.into_inner());
        }
    }

    fn wait_all(&self) {
        let mut running = self.running();
        while *running != 0 {
            running = self.ended.wait(running).unwrap_or_else(|e| e.into_inner());
        }
    }
}
