//! Chooses the backend and builds the first guests' machines with it.

use crate::backend::{Cpu, Space};
use crate::elf::Image;
use crate::error::{Context, Result};
use crate::kvm::{self, KvmSpace};
use crate::layout::Layout;
use crate::memory::Memory;
use crate::options::Backend;
use crate::process::{ProcessSpace, Readers};
use std::sync::Arc;
use vmm_sys_util::eventfd::EventFd;

/// Doorbells of peers, then those of queues.
pub type Starter = Box<dyn FnOnce(&Memory, &[&EventFd], &[&EventFd]) -> Result<Box<dyn Cpu>>>;

/// A guest that has not begun.
pub struct Machine {
    pub memory: Arc<Memory>,
    pub space: Arc<dyn Space>,
    pub start: Starter,
    pub khz: Option<u64>,
}

/// `/dev/kvm`, where the backend is or can be a virtual machine.
pub fn host(backend: Option<Backend>) -> Result<Option<kvm::Host>> {
    if backend == Some(Backend::Process) {
        return Ok(None);
    }
    match (kvm::Host::open(), backend) {
        (Ok(host), _) => Ok(Some(host)),
        (Err(error), None) => {
            eprintln!("kyozon: {error}: guests run in confined processes");
            Ok(None)
        }
        (Err(error), Some(_)) => {
            Err(error).context("no virtual machines here (--backend process needs none)")
        }
    }
}

/// Builds the memory and the address space of one of the first guests.
pub fn machine(
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
    let (space, cpu) = KvmSpace::new(host, host.create_bare()?, &memory)?;
    let khz = cpu.khz();
    Ok(Machine { memory, space, start: Box::new(|_, _, _| Ok(Box::new(cpu))), khz })
}
