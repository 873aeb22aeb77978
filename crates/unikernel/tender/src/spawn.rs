//! Threads of execution that join a family: peers of the same image and the same memory.
//!
//! The new peer's thread makes what is its own; the parent waits until it is ready to run, and meanwhile asks KVM for
//! a machine. A process is made by the thread that will trace it.

use crate::backend::{Cpu, Space};
use crate::boot::Boot;
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

/// What peers are made of.
pub struct Spawner {
    /// The group, which has this.
    pub group: Weak<Group>,
    /// The image.
    pub image: Image,
    /// Its file.
    pub file: Arc<Vec<u8>>,
    /// Where virtual machines come from; none where guests run in processes.
    pub host: Option<kvm::Host>,
    /// What processes map of regions.
    pub readers: Readers,
    /// What boot blocks say.
    pub boot: Boot,
    running: Mutex<usize>,
    ended: Condvar,
}

/// One that is to be made.
struct New {
    number: usize,
    generation: u32,
    parent: usize,
    bound: Option<(usize, u32)>,
    layout: Layout,
    /// Where its machine comes from, if it is one.
    machine: Receiver<Result<BareMachine>>,
}

/// A made one, but for its start.
struct Made {
    peer: Arc<Peer>,
    cpu: Option<Box<dyn Cpu>>,
    process: Option<Arc<ProcessSpace>>,
}

impl Spawner {
    /// One that has made nothing.
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

    fn ended(&self) {
        *self.running() -= 1;
        self.ended.notify_all();
    }

    /// A peer's life, on its own thread.
    fn live(&self, group: &Group, new: New, ready: &SyncSender<bool>) {
        let number = new.number;
        let Some((peer, cpu)) = self.begin(group, new) else {
            group.release(number);
            let _ = ready.send(false);
            return;
        };
        let _ = ready.send(true);
        if let Err(error) = guest::work(group, number, &peer, cpu, &self.file, None).failure() {
            eprintln!("kyozon: guest {number} ended: {error}");
        }
    }

    /// Makes a peer, ready to run and known to all; nothing is left where it cannot be.
    fn begin(&self, group: &Group, new: New) -> Option<(Arc<Peer>, Box<dyn Cpu>)> {
        let number = new.number;
        let made = self.make(group, new).and_then(|made| self.start(group, number, made));
        match made {
            Ok((peer, cpu)) if group.peers.table.occupy(number, peer.clone()) => Some((peer, cpu)),
            Ok(_) => None,
            Err(error) => {
                eprintln!("kyozon: guest {number} cannot begin: {error}");
                None
            }
        }
    }

    fn make(&self, group: &Group, new: New) -> Result<Made> {
        let New { number, generation, parent, bound, layout, machine } = new;
        let asked = group.peers.table.get(parent);
        let Some(asked) = asked else { bail!(Internal, "the parent is gone") };
        let memory = Arc::new(asked.memory.spawned(&self.image, &self.file, layout)?);
        let word = memory.layout.stack_top() - 8;
        ensure!(Internal, memory.write(word, &[0; 8]).is_ok(), "the stack is not the guest's");
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
            family: asked.family,
            generation,
            bound,
            devices: Devices::default(),
        });
        group.peers.tokens.make(number)?;
        if let Some(member) = &group.member {
            peer.space.set_lifeline(member.lifeline())?;
        }
        group.inherit(parent, number, &peer)?;
        Ok(Made { peer, cpu, process })
    }

    fn start(&self, group: &Group, number: usize, made: Made) -> Result<(Arc<Peer>, Box<dyn Cpu>)> {
        let Made { peer, cpu, process } = made;
        self.boot.write(group, number, &peer, &group.mapped_by(number))?;
        let cpu = match (cpu, process) {
            (Some(cpu), _) => cpu,
            (None, Some(process)) => {
                Box::new(process.start(&peer.memory, &group.peers.tokens.all(), &[])?)
            }
            (None, None) => bail!(Internal, "a peer without a processor"),
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
        let asking = group.peers.table.get(parent).ok_or(ERROR_FULL)?;
        let layout = asking.memory.origin.spawned(entry, argument, stack)?;
        let bound = match bound.checked_sub(1) {
            None => None,
            Some(to) => {
                let to = usize::try_from(to).map_err(|_| ERROR_NAME)?;
                let peer = group.peers.table.get(to).ok_or(ERROR_NAME)?;
                if peer.family != asking.family {
                    return Err(ERROR_RIGHT);
                }
                Some((to, peer.generation))
            }
        };
        let (number, generation) = group.reserve(parent, layout.bytes).ok_or(ERROR_FULL)?;
        let (give, machine) = sync_channel(1);
        let new = New { number, generation, parent, bound, layout, machine };
        let (ready, made) = sync_channel(1);
        *self.running() += 1;
        let (spawner, of) = (self.clone(), group.clone());
        let thread = std::thread::Builder::new().spawn(move || {
            spawner.live(&of, new, &ready);
            spawner.ended();
        });
        if thread.is_err() {
            group.release(number);
            self.ended();
            return Err(ERROR_FULL);
        }
        if let Some(host) = &self.host {
            // It is dropped if the new thread could not go on.
            let _ = give.send(host.create_bare());
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
