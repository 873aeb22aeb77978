//! Chooses the backend and builds the machines of the first guests.

use crate::backend::{Cpu, Space};
use crate::console;
use crate::elf::Image;
use crate::error::{Context, Result};
use crate::kvm::{self, KvmSpace};
use crate::layout::Layout;
use crate::lives::Lives;
use crate::memory::Memory;
use crate::options::Backend;
use crate::process::{ProcessSpace, Readers};
use std::sync::Arc;
use vmm_sys_util::eventfd::EventFd;

/// Starts a guest with its memory, the doorbells of peers and the doorbells of queues.
pub type Starter = Box<dyn FnOnce(&Memory, &[&EventFd], &[&EventFd]) -> Result<Box<dyn Cpu>>>;

/// A guest that has not started.
pub struct Machine {
    /// The guest's memory.
    pub memory: Arc<Memory>,
    /// The guest's address space.
    pub space: Arc<dyn Space>,
    /// Starts the guest.
    pub start: Starter,
    /// Rate of the time-stamp counter in kHz, if the backend knows it.
    pub khz: Option<u64>,
}

/// Opens `/dev/kvm`. `None` selects the process backend: the operator chose it, or chose none and `/dev/kvm` cannot
/// be used.
///
/// # Errors
///
/// The operator chose KVM, and `/dev/kvm` cannot be used.
pub fn host(backend: Option<Backend>) -> Result<Option<kvm::Host>> {
    if backend == Some(Backend::Process) {
        return Ok(None);
    }
    match (kvm::Host::open(), backend) {
        (Ok(host), _) => Ok(Some(host)),
        (Err(error), None) => {
            console::message(&format!("kyozon: {error}: guests run in confined processes"));
            Ok(None)
        }
        (Err(error), Some(_)) => Err(error)
            .context("cannot run virtual machines (use --backend process, which needs none)"),
    }
}

/// Builds the memory and the address space of one of the first guests, with `memory` bytes beside its family's spare
/// memory; without `host` for the process backend. The group's table of peers is mapped if it is known already, because
/// KVM must forget a page that is mapped once its memory slot exists.
///
/// # Errors
///
/// The memory does not fit the image, or Linux refuses the memory or the machine.
pub fn machine(
    host: Option<&kvm::Host>,
    readers: &Readers,
    image: &Image,
    file: &[u8],
    memory: u64,
    lives: Option<&Lives>,
) -> Result<Machine> {
    let layout = Layout::new(image, memory)?;
    let memory = Arc::new(Memory::new(image, file, layout, host.is_none())?);
    lives.map_or(Ok(()), |lives| memory.set_lives(lives.file()))?;
    let Some(host) = host else {
        let space = ProcessSpace::new(readers);
        let process = space.clone();
        let start: Starter = Box::new(move |memory, tokens, queues| {
            Ok(Box::new(process.start(memory, tokens, queues)?))
        });
        return Ok(Machine { memory, space, start, khz: None });
    };
    let (space, cpu) = KvmSpace::new(host, host.create_bare()?, &memory)?;
    let khz = cpu.khz();
    Ok(Machine { memory, space, start: Box::new(|_, _, _| Ok(Box::new(cpu))), khz })
}
