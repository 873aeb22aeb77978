//! A task's first instructions, and its last.

use crate::{heap, report, task};
use core::panic::PanicInfo;
use kyozon_abi::task::{StartInfo, TASK_VERSION};

/// Says what a task does: a function of type `fn(&'static StartInfo)`.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        #[no_mangle]
        extern "C" fn task_entry(info: &'static $crate::StartInfo) -> ! {
            // SAFETY: the kernel's call, on the stack that it made, with the page that it filled.
            unsafe { $crate::start::start(info, $run) }
        }
    };
}

/// What [`main!`] does.
///
/// # Safety
///
/// Once, by the first thread, with what the kernel gave it.
pub unsafe fn start(info: &'static StartInfo, run: fn(&'static StartInfo)) -> ! {
    if info.version == TASK_VERSION {
        // SAFETY: the caller's promise.
        unsafe { heap::set_up(info) };
        run(info);
    }
    task::exit(0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = report!("task panicked: {info}");
    task::exit(1)
}
