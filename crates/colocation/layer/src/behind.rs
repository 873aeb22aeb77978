//! The layer as a guest beside Linux, with nested paging in between: what only the hypervisor can do is asked of it.
//!
//! All else, a trip, a tick, a service, is as without isolation: see [`crate::hal`].

use crate::hal::{self, Hal, Services};
use crate::linux::Linux;
use core::arch::asm;
use core::mem::offset_of;
use kyozon_abi::events::CheckStatus;
use kyozon_abi::layer::{Range, RepairRequest, Report, SERVICE_BAD_ADDRESS};
use kyozon_abi::vmm::{Mailbox, CALL_PUBLISH, CALL_REPORT, CALL_WRITE};

/// Services behind nested paging.
pub(crate) static SERVICES: Services =
    Services { window: hal::linux_window, repair, report, publish, keeps_user_state: false };

fn call(number: u64, first: u64, second: u64) -> u64 {
    let result;
    // SAFETY: the hypervisor changes no register but this one. AMD APM 3, VMMCALL.
    unsafe {
        asm!("vmmcall", inout("rax") number => result, in("rdi") first, in("rsi") second, options(nostack));
    }
    result
}

/// The Linux on the other side: it is read through the window and stopped by the module's word, and written by the
/// hypervisor only.
struct Behind(Hal);

impl Linux for Behind {
    fn ram(&self) -> &[Range] {
        self.0.ram()
    }

    fn read(&mut self, address: u64) -> u64 {
        self.0.read(address)
    }

    fn write(&mut self, address: u64, value: u64) {
        call(CALL_WRITE, address, value);
    }

    fn park(&mut self) -> bool {
        self.0.park()
    }

    fn release(&mut self) {
        self.0.release();
    }
}

extern "C" fn repair(request: *const RepairRequest) -> i64 {
    hal::repair_in(&mut Behind(Hal), request)
}

fn mailbox() -> *mut Mailbox {
    hal::entry().mailbox as *mut Mailbox
}

extern "C" fn report(wanted: *const Report) -> i64 {
    let Some((wanted, line)) = hal::reported(wanted) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: the page that is shared with the hypervisor, which reads it only while it is called.
    unsafe {
        let to = &mut *mailbox();
        (to.kind, to.code, to.bytes) = (wanted.kind, wanted.code, wanted.bytes);
        to.text[..line.len()].copy_from_slice(line);
    }
    call(CALL_REPORT, 0, 0);
    0
}

extern "C" fn publish(check: u64, status: *const CheckStatus) -> i64 {
    const _: () = assert!(size_of::<CheckStatus>() == size_of::<[u64; 16]>());
    let Some(status) = hal::published(check, status) else { return SERVICE_BAD_ADDRESS };
    // SAFETY: as above; the place has the size of a status.
    unsafe {
        mailbox().byte_add(offset_of!(Mailbox, check)).cast::<CheckStatus>().write(status);
    }
    call(CALL_PUBLISH, check, 0);
    0
}
