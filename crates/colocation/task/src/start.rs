//! Start and end of a task.

use crate::{heap, report, task};
use core::panic::PanicInfo;
use kyozon_abi::task::{StartInfo, EXIT_PANICKED, EXIT_VERSION, TASK_VERSION};

/// Defines the task's entry, which calls a function of type `fn(&'static StartInfo)`.
#[macro_export]
macro_rules! main {
    ($run:path) => {
        #[no_mangle]
        extern "C" fn task_entry(info: &'static $crate::StartInfo) -> ! {
            // SAFETY: the kernel enters here once, on its stack, with its information page.
            unsafe { $crate::start::start(info, $run) }
        }
    };
}

/// The implementation of [`main!`].
///
/// # Safety
///
/// Must be called once, by the first thread, with the kernel's `info`.
pub unsafe fn start(info: &'static StartInfo, run: fn(&'static StartInfo)) -> ! {
    if info.version != TASK_VERSION {
        task::exit(EXIT_VERSION);
    }
    // SAFETY: the caller's promise.
    unsafe { heap::set_up(info) };
    run(info);
    task::exit(0)
}

#[panic_handler]
fn panic(info: &PanicInfo<'_>) -> ! {
    let _ = report!("task panicked: {info}");
    task::exit(EXIT_PANICKED)
}
