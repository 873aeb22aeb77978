//! A guest's first instructions.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use kyozon_abi::unikernel::*;

/// Makes a function of type `fn() -> u8` the unikernel's main function. Its value is the exit status.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        #[no_mangle]
        extern "C" fn kyozon_entry(boot: &'static $crate::GuestBoot) -> ! {
            // SAFETY: the tender calls this once, on the stack and with the boot block that it prepared.
            unsafe { $crate::start(boot, $run) }
        }
    };
}

/// The ELF note that marks an image as a unikernel: type [`NOTE_VERSION`], name `Kyozon`.
#[repr(C)]
struct Note {
    name_bytes: u32,
    bytes: u32,
    kind: u32,
    name: [u8; 8],
    version: u32,
}

#[cfg_attr(feature = "guest", link_section = ".note.kyozon")]
#[used]
static NOTE: Note = Note {
    name_bytes: 7,
    bytes: 4,
    kind: NOTE_VERSION,
    name: *b"Kyozon\0\0",
    version: UNIKERNEL_VERSION,
};

static BOOT: AtomicPtr<GuestBoot> = AtomicPtr::new(core::ptr::null_mut());
/// The time-stamp counter at the first instruction.
pub(crate) static FIRST: AtomicU64 = AtomicU64::new(0);

/// Sets up the guest, runs its main function and ends it. [`main!`](crate::main) calls this.
///
/// # Safety
///
/// Must be called once, with the tender's boot block.
pub unsafe fn start(boot: &'static GuestBoot, run: fn() -> u8) -> ! {
    FIRST.store(crate::clock::counter(), Ordering::Relaxed);
    // Neither the calls nor the exit of another version can be relied on: the fault ends the guest, and the tender
    // reports it.
    if boot.version != UNIKERNEL_VERSION {
        // SAFETY: an undefined instruction; Intel SDM 2B, UD.
        unsafe { core::arch::asm!("ud2", options(noreturn)) };
    }
    BOOT.store(core::ptr::from_ref(boot).cast_mut(), Ordering::Relaxed);
    #[cfg(feature = "guest")]
    // SAFETY: nothing else uses the heap, and nothing was allocated before.
    unsafe {
        crate::heap::set_up(boot)
    };
    crate::exit(run())
}

/// The tender's boot block. The reference must not reach another machine, which has another block at this address.
///
/// # Panics
///
/// Panics in a host program, which has no tender.
#[inline]
pub(crate) fn own_boot() -> &'static GuestBoot {
    // SAFETY: null, or a page that stays mapped read-only as long as the guest lives.
    unsafe { BOOT.load(Ordering::Relaxed).as_ref() }.expect("not a guest")
}

/// A copy of the tender's boot block, some kilobytes. Its version was compared at the start.
///
/// There is no way to get a reference, as another machine has another block at that address:
///
/// ```compile_fail,E0308
/// let boot: &'static kyozon_unikernel::GuestBoot = kyozon_unikernel::boot();
/// ```
///
/// # Panics
///
/// Panics in a host program, which has no tender.
pub fn boot() -> GuestBoot {
    *own_boot()
}

/// Address of the boot block, the same in all machines of a family.
pub fn boot_address() -> u64 {
    core::ptr::from_ref(own_boot()) as u64
}

/// The number of this peer in its group.
pub fn me() -> usize {
    own_boot().peer as usize
}

/// The number of peers at this guest's start: their numbers are 0 to this, exclusive. Others may join later.
pub fn peers() -> usize {
    own_boot().peers as usize
}
