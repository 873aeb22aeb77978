//! Reads the image, and writes the arguments and the boot block that a guest finds at its start.

use crate::error::{ensure, Context, Result};
use crate::group::Group;
use crate::layout::{system, Layout};
use crate::memory::system_address;
use crate::options::Backend;
use crate::peer::Peer;
use crate::{kvm, process, wire};
use kyozon_abi::unikernel::*;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Maximum bytes of an image file.
const IMAGE_BYTES: u64 = 512 << 20;

/// Reads the image's file.
///
/// # Errors
///
/// It is not a regular file, has more than 512 MiB, or cannot be read.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let name = path.display();
    // The check comes before the open: opening a pipe would wait for a writer.
    let about = std::fs::metadata(path).with_context(|| format!("cannot open {name}"))?;
    ensure!(Image, about.is_file(), "{name} is not a regular file: give the path of an image");
    let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let mut bytes = Vec::with_capacity(about.len().min(IMAGE_BYTES) as usize + 1);
    file.take(IMAGE_BYTES + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    ensure!(
        Image,
        bytes.len() as u64 <= IMAGE_BYTES,
        "{name} has more than {}M: give the path of an image",
        IMAGE_BYTES >> 20
    );
    Ok(bytes)
}

/// The arguments and the environment in the form that the guest reads: one after the other, each with a zero byte at
/// its end.
///
/// # Errors
///
/// They do not fit into the guest's page range for arguments.
pub fn arguments(words: &[String], environment: &[String]) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for argument in words.iter().chain(environment) {
        bytes.extend(argument.bytes());
        bytes.push(0);
    }
    let max = system::ARGUMENTS_BYTES;
    ensure!(
        Options,
        bytes.len() as u64 <= max,
        "arguments and environment have more than {}K: pass fewer",
        max >> 10
    );
    Ok(bytes)
}

/// Fields that all boot blocks share.
pub struct Boot {
    /// The guests' backend.
    pub backend: Backend,
    /// The highest number of a peer at the start, plus 1.
    pub peers: usize,
    /// The arguments, as from [`arguments`].
    pub arguments: Vec<u8>,
    /// Number of arguments.
    pub argument_count: usize,
    /// Number of strings of the environment behind them.
    pub environment_count: usize,
    /// Maximum number of peers at the same time.
    pub limit: usize,
    /// Whether guests can spawn peers.
    pub spawn: bool,
    /// Number of CPUs that the tender may use.
    pub cpus: usize,
}

impl Boot {
    /// Writes a guest's arguments and boot block; `mapped` are the regions that it has mapped.
    pub fn write(
        &self,
        group: &Group,
        number: usize,
        peer: &Peer,
        mapped: &[SharedRegion],
    ) -> Result<()> {
        let Peer { memory, space, generation, .. } = peer;
        let Layout { image, stack, tls, heap, thread, argument, program, .. } = memory.layout;
        let (hypercall, doorbell) = match self.backend {
            Backend::Kvm => (kvm::DOOR, kvm::DOORBELL),
            Backend::Process => (process::DOOR, process::DOORBELL),
        };
        let clock = &group.peers.clock;
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
            peer_table: system_address(system::PEERS),
            generation: *generation,
            limit: self.limit as u32,
            program: Area { base: program.base, bytes: program.bytes },
            program_entry: program.entry,
            cpus: self.cpus as u32,
            environment_count: self.environment_count as u32,
        };
        wire::put_boot(&memory.block, system::BOOT, boot)
    }
}
