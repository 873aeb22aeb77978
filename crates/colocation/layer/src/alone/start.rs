//! From the loader to the first tick.

use super::host::{self, ENTRY, TRIP};
use super::memory::Free;
use super::pvh::{self, Physical};
use super::serial::{line, Serial};
use super::services;
use super::timer;
use super::world::{self, Pages};
use super::{command, image};
use crate::arch::x86_64 as arch;
use crate::cokernel::start::{init, Start};
use crate::linux::contains;
use crate::owned::Owned;
use kyozon_abi::events::{EventRecord, EventRing, EVENTS_VERSION, RECORDS_OFFSET};
use kyozon_abi::layer::*;

/// The boot page tables map every physical address below this one.
const MAPPED: u64 = 4 << 30;
/// Memory below this address belongs to firmware.
const LOW: u64 = 1 << 20;
const RECORDS: usize = 256;

#[repr(C)]
struct EventMemory {
    ring: EventRing,
    gap: [u8; RECORDS_OFFSET as usize - size_of::<EventRing>()],
    records: [EventRecord; RECORDS],
}

// SAFETY: integers only, for which zeros are values.
static EVENTS: Owned<EventMemory> = Owned::new(unsafe { core::mem::zeroed() });

/// Memory as the boot page tables map it.
struct Identity;

impl Physical for Identity {
    fn read(&self, address: u64, into: &mut [u8]) -> bool {
        let ours = address.checked_add(into.len() as u64).is_some_and(|end| end <= MAPPED);
        // Page zero is left alone: nothing lies at a null pointer.
        if !ours || address == 0 {
            return false;
        }
        // SAFETY: mapped. An address without RAM gives useless bytes, which is harmless on this machine.
        unsafe {
            into.as_mut_ptr().copy_from_nonoverlapping(address as *const u8, into.len());
        }
        true
    }
}

/// Called by the boot code, on this image's stack, with all addresses below 4 GiB mapped to themselves.
#[no_mangle]
extern "C" fn alone_start(start_info: u64) -> ! {
    Serial::set_up();
    match boot(start_info) {
        Ok(never) => match never {},
        Err(why) => {
            line!("alone: {why}");
            arch::power_off()
        }
    }
}

fn boot(start_info: u64) -> Result<core::convert::Infallible, &'static str> {
    let start = pvh::read(&Identity, start_info)?;
    let options = command::parse(start.command()?).map_err(|bad| {
        line!("alone: '{}': wanted {}", bad.word, bad.wanted);
        "the command line has an unknown or invalid word"
    })?;
    let module = start.module;
    let own = world::image();
    let own = Range { base: own[0], bytes: own[3] - own[0] };
    if !contains(&[Range { base: LOW, bytes: MAPPED - LOW }], module.base, module.bytes) {
        return Err("the cokernel's image lies above 4 GiB: give the machine less memory");
    }
    // SAFETY: RAM, mapped, and not used otherwise until it is copied.
    let bytes =
        unsafe { core::slice::from_raw_parts(module.base as *const u8, module.bytes as usize) };
    let images = image::Images::read(bytes)
        .inspect_err(|_| line!("alone: the first module is not a cokernel with tasks"))?;
    let header = images.header;

    arch::alone::set_features();
    // SAFETY: mapped at the physical addresses.
    let (timer, route) = unsafe { timer::take(timer::REGISTERS) }?;
    let rates = timer.rates();
    let within = Range { base: LOW, bytes: MAPPED - LOW };
    let mut pages = Pages(Free::new(start.ram.as_slice(), within, &[own, module]));
    let (page_table, pieces) =
        world::make(&mut pages, &images, options.memory, timer::REGISTERS)
            .ok_or("memory is too small, or in too many pieces: reduce memory=")?;
    // SAFETY: no other code runs yet.
    let (entry, trip, events) = unsafe { (ENTRY.get(), TRIP.get(), EVENTS.get()) };
    events.ring.version = EVENTS_VERSION;
    events.ring.records = RECORDS as u32;
    events.ring.tsc_khz = rates.tsc_khz;
    events.ring.loaded_tsc = arch::tsc();
    host::fill_entry(entry, &timer, &rates, &options, &header, page_table);
    entry.events = (&raw const *events) as u64;
    entry.events_bytes = size_of::<EventMemory>() as u64;
    for (slot, (base, task)) in entry.tasks.iter_mut().zip(world::tasks(&images)) {
        *slot = Range { base, bytes: task.len() as u64 };
        entry.task_count += 1;
    }
    entry.piece_count = pieces.as_slice().len() as u64;
    entry.pieces[..pieces.as_slice().len()].copy_from_slice(pieces.as_slice());
    trip.guard_tsc = arch::tsc();
    line!(
        "alone: {} guard {} hz {} budget {} parameter {:#x} memory {} tsc_khz {} period_fs {}",
        route,
        timer.guard(),
        options.hz,
        options.budget_us,
        options.parameter,
        options.memory,
        rates.tsc_khz,
        rates.period_fs
    );
    // SAFETY: the tables map this image, and the timer at `world::TIMER`; no other memory is used from here on.
    let timer = unsafe {
        world::enter(page_table);
        timer.moved(world::TIMER)
    };
    host::run(timer, &rates, &options)
}

/// The first trip, with the services of mode alone.
#[no_mangle]
extern "C" fn alone_init(from: *mut LayerEntry, trip: *mut Trip) -> Start {
    init(from, trip, &services::SERVICES)
}

/// This program itself failed.
pub fn panicked(info: &core::panic::PanicInfo<'_>) -> ! {
    line!("alone: {info}");
    arch::power_off()
}
