//! What the module passed at the launch, and the structures that the hypervisor shares with it and with the layer.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering::Relaxed};
use kyozon_abi::layer::{Range, Trip};
use kyozon_abi::vmm::{HostEntry, HostStatus, HOST_IOMMU_BYTES, HOST_WINDOW_BASE};

static ENTRY: AtomicPtr<HostEntry> = AtomicPtr::new(ptr::null_mut());

/// Keeps the module's structure. Called once, before anything else.
pub fn set(entry: *mut HostEntry) {
    ENTRY.store(entry, Relaxed);
}

/// A pointer to physical address `address`, in the hypervisor's window.
pub fn at<T>(address: u64) -> *mut T {
    (HOST_WINDOW_BASE + address) as *mut T
}

/// What the module passed.
pub fn entry() -> &'static HostEntry {
    // SAFETY: set before anything else. The module writes it only in entries, which it makes one after the other.
    unsafe { &*ENTRY.load(Relaxed) }
}

/// A list of ranges of the entry.
pub fn list(ranges: &'static [Range], count: u32) -> &'static [Range] {
    &ranges[..(count as usize).min(ranges.len())]
}

/// Whether `address` lies in one of `ranges`.
pub fn lies_in(ranges: &[Range], address: u64) -> bool {
    ranges.iter().any(|r| address.wrapping_sub(r.base) < r.bytes)
}

/// The registers of each IOMMU that is driven.
pub fn iommus() -> impl Iterator<Item = Range> {
    let registers = entry().iommu.registers.into_iter().take_while(|registers| *registers != 0);
    registers.map(|base| Range { base, bytes: HOST_IOMMU_BYTES })
}

/// The trip that layer and hypervisor share.
pub fn trip() -> *mut Trip {
    at(entry().trip)
}

/// The status page, which Linux may read. Its fields are written one by one.
pub fn status() -> *mut HostStatus {
    at(entry().status)
}

/// Counts an exit of kind `reason`, `EXIT_*`.
pub fn count(reason: usize) {
    // SAFETY: a field of the status, which is accessed by atomics only.
    unsafe { AtomicU64::from_ptr(&raw mut (*status()).exits[reason]) }.fetch_add(1, Relaxed);
}

/// Says whether the NMI that CPU `index` gets now may not be Linux's.
pub fn set_doubtful_nmi(index: u32, doubtful: bool) {
    // SAFETY: as above.
    let all = unsafe { AtomicU64::from_ptr(&raw mut (*status()).doubtful_nmis) };
    if doubtful {
        all.fetch_or(1 << index, Relaxed);
    } else {
        all.fetch_and(!(1 << index), Relaxed);
    }
}

/// Counts an attempt of Linux that was stopped.
pub fn count_finding() {
    // SAFETY: as in `count`.
    unsafe { AtomicU64::from_ptr(&raw mut (*status()).findings) }.fetch_add(1, Relaxed);
}
