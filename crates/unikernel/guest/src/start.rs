//! A guest's first instructions.

use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use kyozon_abi::unikernel::*;

/// Says what a unikernel does: a function of type `fn() -> u8`, whose value is the guest's status.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        #[no_mangle]
        extern "C" fn kyozon_entry(boot: &'static $crate::GuestBoot) -> ! {
            // SAFETY: the tender's entry, on the stack that it made, with the page that it filled.
            unsafe { $crate::start(boot, $run) }
        }
    };
}

/// The note that makes this a unikernel: [`NOTE_VERSION`], of the name `Kyozon`.
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

/// What [`main!`](crate::main) does.
///
/// # Safety
///
/// Once, with what the tender gave.
pub unsafe fn start(boot: &'static GuestBoot, run: fn() -> u8) -> ! {
    FIRST.store(crate::clock::counter(), Ordering::Relaxed);
    BOOT.store(core::ptr::from_ref(boot).cast_mut(), Ordering::Relaxed);
    // A tender of another version refused the image, by its note.
    #[cfg(feature = "guest")]
    // SAFETY: the heap is nobody else's, and nothing was allocated before.
    unsafe {
        crate::heap::set_up(boot)
    };
    crate::exit(run())
}

/// What the tender said at the start.
///
/// # Panics
///
/// Where there is no tender, below a program of the host.
pub fn boot() -> &'static GuestBoot {
    // SAFETY: null, or a page that is mapped, read-only, as long as the guest lives.
    unsafe { BOOT.load(Ordering::Relaxed).as_ref() }.expect("not a guest")
}

/// Number of this peer in its group.
pub fn me() -> usize {
    boot().peer as usize
}

/// Peers that the group had at this guest's start: 0 to this, exclusive. Others may join it later.
pub fn peers() -> usize {
    boot().peers as usize
}
