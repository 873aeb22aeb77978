//! A loaded kernel: the calls of both sides.

use crate::Host;
use alloc::{boxed::Box, ffi::CString};
use core::cell::UnsafeCell;
use core::marker::PhantomData;
use core::sync::atomic::{AtomicU32, Ordering};
use kyozon_abi::library::{
    LibraryHost, LibraryKernel, LibraryThread, LIBRARY_ATTACH, LIBRARY_DETACH, LIBRARY_NEVER,
    LIBRARY_SYSCALL, LIBRARY_VERSION,
};

/// An error number of Linux, positive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub i32);

fn result(value: i64) -> Result<u64, Errno> {
    if (-4095..0).contains(&value) {
        Err(Errno(-value as i32))
    } else {
        Ok(value as u64)
    }
}

/// A kernel whose entry has been called.
pub struct Kernel<H: Host> {
    host: Box<H>,
    kernel: LibraryKernel,
    /// The kernel reads both until it has booted.
    _table: Box<LibraryHost>,
    _command_line: CString,
}

// SAFETY: the kernel's functions may be called by any thread; the host is Sync.
unsafe impl<H: Host + Send> Send for Kernel<H> {}
// SAFETY: the same.
unsafe impl<H: Host> Sync for Kernel<H> {}

/// The kernel's record of a host thread. It is pinned by its box; only its own thread calls with it.
pub struct Record(Box<UnsafeCell<LibraryThread>>, PhantomData<*mut ()>);

impl Default for Record {
    fn default() -> Self {
        Self(Box::new(UnsafeCell::new(LibraryThread::default())), PhantomData)
    }
}

impl<H: Host> Kernel<H> {
    /// Calls the entry of an image.
    ///
    /// # Safety
    ///
    /// An image of [`Image::parse`](crate::image::Image::parse) is at `memory`, relocated; behind it there are zeros up
    /// to `bytes`. The memory is aligned to
    /// [`LIBRARY_MEMORY_ALIGN`](kyozon_abi::library::LIBRARY_MEMORY_ALIGN) and belongs to the kernel until this value
    /// is dropped. `entry` is the image's.
    pub unsafe fn new(
        host: H,
        memory: *mut u8,
        bytes: usize,
        entry: u64,
        command_line: CString,
        seed: [u8; 32],
    ) -> Result<Self, Errno> {
        let host = Box::new(host);
        let table = Box::new(LibraryHost {
            version: LIBRARY_VERSION,
            reserved: 0,
            memory: memory as u64,
            memory_bytes: bytes as u64,
            command_line: command_line.as_ptr() as u64,
            context: &raw const *host as u64,
            now: now::<H> as *const () as u64,
            realtime: realtime::<H> as *const () as u64,
            print: print::<H> as *const () as u64,
            park: park::<H> as *const () as u64,
            unpark: unpark::<H> as *const () as u64,
            wait: wait::<H> as *const () as u64,
            mmio_read: mmio_read::<H> as *const () as u64,
            mmio_write: mmio_write::<H> as *const () as u64,
            barrier: barrier::<H> as *const () as u64,
            seed,
        });
        let mut kernel = LibraryKernel::default();
        type Entry = unsafe extern "sysv64" fn(*const LibraryHost, *mut LibraryKernel) -> i64;
        // SAFETY: the caller's promise: this is an image's entry, of the type that the interface states.
        let status = unsafe {
            let entry = core::mem::transmute::<*mut u8, Entry>(memory.add(entry as usize));
            entry(&raw const *table, &raw mut kernel)
        };
        result(status)?;
        Ok(Self { host, kernel, _table: table, _command_line: command_line })
    }

    /// The host.
    pub fn host(&self) -> &H {
        &self.host
    }

    fn with_thread(&self, function: u64, thread: &Record) -> i64 {
        type Call = unsafe extern "sysv64" fn(*mut LibraryThread) -> i64;
        // SAFETY: the address is one of the kernel's functions of this type. The record is this thread's own, and lives
        // as long as the call.
        unsafe { core::mem::transmute::<*const (), Call>(function as *const ())(thread.0.get()) }
    }

    /// Boots, once, and attaches the calling thread. Returns its thread id.
    pub fn start(&self, thread: &Record) -> Result<u64, Errno> {
        result(self.with_thread(self.kernel.start, thread))
    }

    /// Performs a system call, number and arguments as on x86-64.
    ///
    /// # Safety
    ///
    /// The kernel reads and writes the memory that the arguments name, as the system call is specified. An address that
    /// is not mapped gives EFAULT if the host handles faults by [`fixup`](Kernel::fixup).
    #[inline]
    pub unsafe fn syscall(&self, thread: &Record, number: u64, arguments: [u64; 6]) -> i64 {
        let record = thread.0.get();
        // SAFETY: the record is this thread's own. A signal handler that interrupted a call of this thread must not
        // change the request, so it is left alone then.
        unsafe {
            if (*record).inside != 0 {
                return -35; // EDEADLK
            }
            (*record).kind = LIBRARY_SYSCALL;
            (*record).number = number;
            (*record).arguments = arguments;
        }
        self.with_thread(self.kernel.call, thread)
    }

    /// Makes a task for the calling thread. Returns its thread id.
    pub fn attach(&self, thread: &Record) -> Result<u64, Errno> {
        self.request(thread, LIBRARY_ATTACH)
    }

    /// Ends the calling thread's task.
    pub fn detach(&self, thread: &Record) -> Result<u64, Errno> {
        self.request(thread, LIBRARY_DETACH)
    }

    fn request(&self, thread: &Record, kind: u32) -> Result<u64, Errno> {
        // SAFETY: the record is this thread's own.
        unsafe { (*thread.0.get()).kind = kind };
        result(self.with_thread(self.kernel.call, thread))
    }

    /// Keeps time until the kernel halts. One host thread must call this after [`start`](Kernel::start).
    pub fn service(&self) {
        self.with_thread(self.kernel.service, &Record::default());
    }

    /// The address of the function that raises an interrupt, from any thread, while this value lives. The calling
    /// thread may run kernel code until the kernel is idle, so it must hold no lock that [`Host::mmio_read`] or
    /// [`Host::mmio_write`] take, unless it is inside one of them.
    pub fn interrupt(&self) -> extern "sysv64" fn(u32) {
        // SAFETY: the address is the kernel's function of this type; it takes any number.
        unsafe {
            core::mem::transmute::<*const (), extern "sysv64" fn(u32)>(
                self.kernel.interrupt as *const (),
            )
        }
    }

    /// The address of the function that says where a fault at an instruction continues. It may be called from a signal
    /// handler, and keeps its meaning while this value lives.
    pub fn fixup(&self) -> extern "sysv64" fn(u64) -> u64 {
        // SAFETY: the address is the kernel's function of this type; it only searches a table.
        unsafe {
            core::mem::transmute::<*const (), extern "sysv64" fn(u64) -> u64>(
                self.kernel.fixup as *const (),
            )
        }
    }

    /// How the kernel ended: not at all, by a power-off, or by a panic.
    pub fn halted(&self) -> Halted {
        // SAFETY: the address is a word in the image, which lives as long as this value.
        let word = unsafe { AtomicU32::from_ptr(self.kernel.halted as *mut u32) };
        match word.load(Ordering::Acquire) {
            0 => Halted::Running,
            1 => Halted::PoweredOff,
            _ => Halted::Panicked,
        }
    }
}

/// How a kernel ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Halted {
    /// It runs.
    Running,
    /// By a power-off or a restart.
    PoweredOff,
    /// By a panic. The log has the reason.
    Panicked,
}

// The kernel's calls. `context` is the host's address, from Kernel::new.

extern "sysv64" fn now<H: Host>(context: *const H) -> u64 {
    // SAFETY: the kernel passes the context back.
    unsafe { &*context }.now()
}

extern "sysv64" fn realtime<H: Host>(context: *const H) -> u64 {
    // SAFETY: the kernel passes the context back.
    unsafe { &*context }.realtime()
}

extern "sysv64" fn print<H: Host>(context: *const H, text: *const u8, bytes: u64) {
    // SAFETY: the kernel passes the context back, and text of its own.
    unsafe { (*context).print(core::slice::from_raw_parts(text, bytes as usize)) }
}

extern "sysv64" fn park<H: Host>(context: *const H, word: *mut u32, value: u32, deadline: u64) {
    // SAFETY: the kernel passes the context back; the word is the kernel's, or in a record whose thread this is.
    unsafe {
        (*context).park(
            AtomicU32::from_ptr(word),
            value,
            (deadline != LIBRARY_NEVER).then_some(deadline),
        )
    }
}

extern "sysv64" fn wait<H: Host>(context: *const H, word: *mut u32, value: u32, deadline: u64) {
    // SAFETY: the kernel passes the context back; the word is in a record whose thread this is.
    unsafe {
        (*context).wait(
            AtomicU32::from_ptr(word),
            value,
            (deadline != LIBRARY_NEVER).then_some(deadline),
        )
    }
}

extern "sysv64" fn unpark<H: Host>(context: *const H, word: *mut u32, count: u32) {
    // SAFETY: the kernel passes the context back. The word is only an address to the host.
    unsafe { (*context).unpark(AtomicU32::from_ptr(word), count) }
}

extern "sysv64" fn barrier<H: Host>(context: *const H) -> i64 {
    // SAFETY: the kernel passes the context back.
    if unsafe { &*context }.barrier() {
        0
    } else {
        -38 // ENOSYS
    }
}

extern "sysv64" fn mmio_read<H: Host>(context: *const H, address: u64, bytes: u32) -> u64 {
    // SAFETY: the kernel passes the context back.
    unsafe { &*context }.mmio_read(address, bytes)
}

extern "sysv64" fn mmio_write<H: Host>(context: *const H, address: u64, bytes: u32, value: u64) {
    // SAFETY: the kernel passes the context back.
    unsafe { &*context }.mmio_write(address, bytes, value)
}
