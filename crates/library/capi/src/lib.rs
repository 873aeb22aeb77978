//! Linux as a library, for C: `include/kyozon/linux.h`.
//!
//! Every function checks its pointers for NULL, and never unwinds into C. What else C must keep is in the header.

use kyozon_devices::block::{Block, BlockDevice};
use kyozon_devices::disk::FileDisk;
use liblinux::{Config, Instance, Thread};
use std::cell::RefCell;
use std::ffi::{c_char, c_int, c_long, c_void, CStr, CString};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::path::Path;
use std::{ptr, slice};

/// `struct kyozon_linux_disk`.
#[repr(C)]
pub struct Disk {
    path: *const c_char,
    read_only: c_int,
}

/// `struct kyozon_linux_options`.
#[repr(C)]
pub struct Options {
    image: *const c_char,
    memory: u64,
    command_line: *const c_char,
    disks: *const Disk,
    disk_count: usize,
    log: Option<extern "C" fn(*mut c_void, *const c_char, usize)>,
    log_context: *mut c_void,
}

thread_local! {
    static ERROR: RefCell<CString> = RefCell::default();
}

/// Runs a function of the interface: 0, or -1 with its reason for [`kyozon_linux_error`].
fn checked(run: impl FnOnce() -> Result<(), String>) -> c_int {
    let result = catch_unwind(AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err("a defect of the library".into()));
    match result {
        Ok(()) => 0,
        Err(text) => {
            let text = CString::new(text.replace('\0', "")).unwrap_or_default();
            ERROR.with(|error| *error.borrow_mut() = text);
            -1
        }
    }
}

/// A C string.
///
/// # Safety
///
/// `text` is NULL or a string that lives as long as the result is used.
unsafe fn string<'a>(text: *const c_char, what: &str) -> Result<&'a str, String> {
    if text.is_null() {
        return Err(format!("{what} is NULL"));
    }
    // SAFETY: the caller's promise.
    unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| format!("{what} is not UTF-8"))
}

/// The context of C's log function, which C promised to make usable on any thread.
struct Context(*mut c_void);
// SAFETY: the header demands it.
unsafe impl Send for Context {}
// SAFETY: the same.
unsafe impl Sync for Context {}

/// # Safety
///
/// `options` is valid as the header describes.
unsafe fn config(options: &Options) -> Result<Config, String> {
    // SAFETY: the caller's promise, for each string and for the disks.
    let (image, disks) = unsafe {
        let disks = match options.disk_count {
            0 => &[][..],
            _ if options.disks.is_null() => return Err("disks is NULL".into()),
            count => slice::from_raw_parts(options.disks, count),
        };
        (string(options.image, "image")?, disks)
    };
    let mut config = Config::new(image);
    if options.memory != 0 {
        config = config.memory(usize::try_from(options.memory).map_err(|_| "memory is too large")?);
    }
    if !options.command_line.is_null() {
        // SAFETY: the caller's promise.
        config = config.option(unsafe { string(options.command_line, "command_line") }?);
    }
    for (number, disk) in disks.iter().enumerate() {
        // SAFETY: the caller's promise.
        let path = unsafe { string(disk.path, "a disk's path") }?;
        let file = FileDisk::open(Path::new(path), disk.read_only == 0)
            .map_err(|error| format!("{path}: {error}"))?;
        let block = Block::new(Box::new(file), disk.read_only != 0, &format!("disk{number}"))
            .extended()
            .ends_at_error();
        config = config
            .device(BlockDevice::threaded(block).map_err(|error| format!("{path}: {error}"))?);
    }
    if let Some(log) = options.log {
        let context = Context(options.log_context);
        config = config.log(move |text| {
            let context = &context;
            log(context.0, text.as_ptr().cast(), text.len());
        });
    }
    Ok(config)
}

/// See the header.
///
/// # Safety
///
/// The pointers are valid as the header describes.
#[no_mangle]
pub unsafe extern "C" fn kyozon_linux_boot(
    options: *const Options,
    kernel: *mut *mut Instance,
    thread: *mut *mut Thread,
) -> c_int {
    checked(|| {
        if options.is_null() || kernel.is_null() || thread.is_null() {
            return Err("a pointer is NULL".into());
        }
        // SAFETY: they are not NULL, and valid by the caller's promise.
        unsafe {
            let (instance, attached) =
                Instance::in_process(config(&*options)?).map_err(|error| error.to_string())?;
            *kernel = Box::into_raw(Box::new(instance));
            *thread = Box::into_raw(Box::new(attached));
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
///
/// The pointers are valid as the header describes.
#[no_mangle]
pub unsafe extern "C" fn kyozon_linux_attach(
    kernel: *const Instance,
    thread: *mut *mut Thread,
) -> c_int {
    checked(|| {
        if kernel.is_null() || thread.is_null() {
            return Err("a pointer is NULL".into());
        }
        // SAFETY: they are not NULL, and valid by the caller's promise.
        unsafe {
            let attached = (*kernel).attach().map_err(|error| error.to_string())?;
            *thread = Box::into_raw(Box::new(attached));
        }
        Ok(())
    })
}

/// See the header.
///
/// # Safety
///
/// The thread is the calling one's, and the arguments are those of the system call.
#[no_mangle]
pub unsafe extern "C" fn kyozon_linux_syscall(
    thread: *const Thread,
    number: c_long,
    arguments: *const [u64; 6],
) -> c_long {
    if thread.is_null() || arguments.is_null() {
        return -c_long::from(libc::EINVAL);
    }
    // SAFETY: they are not NULL, and valid by the caller's promise.
    unsafe { (*thread).syscall(number, *arguments) }
}

/// See the header.
///
/// # Safety
///
/// The thread is the calling one's, and is not used again.
#[no_mangle]
pub unsafe extern "C" fn kyozon_linux_detach(thread: *mut Thread) {
    if !thread.is_null() {
        // SAFETY: it was made by Box::into_raw, and the caller gives it up.
        drop(unsafe { Box::from_raw(thread) });
    }
}

/// See the header.
///
/// # Safety
///
/// The thread is the calling one's; neither is used again.
#[no_mangle]
pub unsafe extern "C" fn kyozon_linux_halt(kernel: *mut Instance, thread: *mut Thread) -> c_int {
    checked(|| {
        if kernel.is_null() || thread.is_null() {
            return Err("a pointer is NULL".into());
        }
        // SAFETY: both were made by Box::into_raw, and the caller gives them up.
        let (kernel, thread) = unsafe { (Box::from_raw(kernel), Box::from_raw(thread)) };
        kernel.halt(*thread).map_err(|error| error.to_string())
    })
}

/// See the header.
#[no_mangle]
pub extern "C" fn kyozon_linux_error() -> *const c_char {
    ERROR.try_with(|error| error.borrow().as_ptr()).unwrap_or(ptr::null())
}
